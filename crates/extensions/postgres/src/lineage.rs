//! Reads the messages of a conversation from all its sources: its own rows, and those it shares
//! with the conversation it was forked from.

use std::collections::HashMap;

use haft_store::StoreError;
use haft_store::backend::{MessageSpan, decode_message_id, encode_short_id};
use haft_types::{ContentHash, ConversationId, Message, MessageId, ShortId};
use sqlx::PgConnection;

use crate::failure::{PostgresFailure, decode_json};

/// Makes a new conversation a source of its own messages, after the sources that it inherits.
pub(crate) async fn add_own_source(
    connection: &mut PgConnection,
    conversation: i64,
    step: i64,
) -> Result<(), PostgresFailure> {
    let sql = "INSERT INTO lineage VALUES ($1, $2, $1, $3, $3, $3)";
    sqlx::query(sql)
        .bind(conversation)
        .bind(step)
        .bind(MessageSpan::NO_END)
        .execute(connection)
        .await?;
    Ok(())
}

/// Gives the new conversation `child` the message sources of `parent` up to the position `last`,
/// followed by itself. The caller must prevent concurrent writes to the parent.
pub(crate) async fn inherit_sources(
    connection: &mut PgConnection,
    child: i64,
    parent: i64,
    last: i64,
) -> Result<(), PostgresFailure> {
    let sql = include_str!("statements/inherit.sql");
    let steps = sqlx::query(sql)
        .bind(child)
        .bind(parent)
        .bind(last)
        .execute(&mut *connection)
        .await?;
    add_own_source(connection, child, steps.rows_affected().cast_signed() + 1).await
}

/// Returns the messages of a span in order, each in its newest revision.
pub(crate) async fn read_messages(
    connection: &mut PgConnection,
    (key, id): (i64, &ConversationId),
    span: MessageSpan,
) -> Result<Vec<Message>, PostgresFailure> {
    let revised = read_newest_revisions(connection, key, span).await?;
    let sql = "SELECT messages.position, messages.body FROM lineage JOIN messages
               ON messages.conversation = lineage.source AND messages.position <= lineage.last_position
               WHERE lineage.conversation = $1 AND messages.position BETWEEN $2 AND $3
               ORDER BY messages.position";
    let rows: Vec<(i64, String)> = sqlx::query_as(sql)
        .bind(key)
        .bind(span.first)
        .bind(span.last)
        .fetch_all(connection)
        .await?;
    let read = |(position, body): (i64, String)| {
        let body = revised.get(&position).unwrap_or(&body);
        decode_json(
            || format!("message {position} of conversation `{id}`"),
            body,
        )
    };
    rows.into_iter().map(read).collect()
}

/// Returns the newest revisions of the messages in a span, by position. Messages that were never
/// revised are not included.
async fn read_newest_revisions(
    connection: &mut PgConnection,
    key: i64,
    span: MessageSpan,
) -> Result<HashMap<i64, String>, PostgresFailure> {
    let sql = include_str!("statements/revised.sql");
    let rows: Vec<(i64, String)> = sqlx::query_as(sql)
        .bind(key)
        .bind(span.first)
        .bind(span.last)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().collect())
}

/// Returns the position and full id of the message that has this short id, or `None` if there is
/// none.
pub(crate) async fn find_message(
    connection: &mut PgConnection,
    conversation: i64,
    short_id: ShortId,
) -> Result<Option<(i64, MessageId)>, PostgresFailure> {
    let sql = "SELECT messages.position, messages.message_id FROM lineage JOIN messages
               ON messages.conversation = lineage.source AND messages.short_id = $2
                  AND messages.position <= lineage.last_position
               WHERE lineage.conversation = $1";
    let found: Option<(i64, String)> = sqlx::query_as(sql)
        .bind(conversation)
        .bind(encode_short_id(short_id))
        .fetch_optional(connection)
        .await?;
    let read = |(position, id): (i64, String)| Ok((position, decode_message_id(&id)?));
    found.map(read).transpose()
}

/// Returns the position of a message in its conversation. Fails with [`StoreError::UnknownMessage`]
/// if there is no such message.
pub(crate) async fn require_position(
    connection: &mut PgConnection,
    (key, id): (i64, &ConversationId),
    message: MessageId,
) -> Result<i64, PostgresFailure> {
    match find_message(connection, key, message.short_id()).await? {
        Some((position, found)) if found == message => Ok(position),
        Some(_) | None => Err(StoreError::UnknownMessage {
            conversation: id.clone(),
            message,
        }
        .into()),
    }
}

/// Returns the original bodies of messages, without later revisions, by short id.
pub(crate) async fn read_first_bodies(
    connection: &mut PgConnection,
    conversation: i64,
    short_ids: &[i64],
) -> Result<HashMap<i64, String>, PostgresFailure> {
    let sql = "SELECT messages.short_id, messages.body FROM lineage JOIN messages
               ON messages.conversation = lineage.source AND messages.position <= lineage.last_position
               WHERE lineage.conversation = $1 AND messages.short_id = ANY ($2)";
    let rows: Vec<(i64, String)> = sqlx::query_as(sql)
        .bind(conversation)
        .bind(short_ids)
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().collect())
}

/// True if the original content of a message, without later revisions, has this hash.
pub(crate) async fn was_stored_with_hash(
    connection: &mut PgConnection,
    conversation: i64,
    message: MessageId,
    hash: ContentHash,
) -> Result<bool, PostgresFailure> {
    let sql = "SELECT EXISTS (SELECT 1 FROM lineage JOIN messages
               ON messages.conversation = lineage.source AND messages.short_id = $2
                  AND messages.position <= lineage.last_position
               WHERE lineage.conversation = $1 AND messages.message_id = $3 AND messages.hash = $4)";
    let query = sqlx::query_scalar(sql)
        .bind(conversation)
        .bind(encode_short_id(message.short_id()));
    Ok(query
        .bind(message.to_string())
        .bind(&hash.0[..])
        .fetch_one(connection)
        .await?)
}
