//! Reads the messages of a conversation: its own, and those it shares with the conversation it was
//! forked from.
//!
//! Invariant: the sources of a conversation are read oldest first, each up to its last position.
//! The positions of each source end where those of the next source begin, so this order yields the
//! messages in order.

use std::collections::HashMap;

use haft_types::{ContentHash, ConversationId, Message, MessageId, ShortId};
use rusqlite::{Connection, OptionalExtension};

use super::failure::SqliteFailure;
use super::rows;
use crate::error::StoreError;
use crate::message::MessageSpan;

/// Makes a new conversation the last of its own sources. The sources of a conversation are the
/// conversations that contain its messages.
pub(super) fn add_own_source(
    connection: &Connection,
    conversation: i64,
    step: i64,
) -> Result<(), SqliteFailure> {
    connection
        .prepare_cached(
            "INSERT INTO lineage (conversation, step, source, last_position, last_revision, last_fact)
             VALUES (?1, ?2, ?1, ?3, ?3, ?3)",
        )?
        .execute((conversation, step, MessageSpan::NO_END))?;
    Ok(())
}

/// Copies the message sources of `parent` to the new conversation `child`, up to the position
/// `last`.
pub(super) fn inherit_sources(
    connection: &Connection,
    child: i64,
    parent: i64,
    last: i64,
) -> Result<(), SqliteFailure> {
    connection
        .prepare_cached(
            "INSERT INTO lineage (conversation, step, source, last_position, last_revision, last_fact)
             SELECT ?1, step, source, min(last_position, ?3),
                    min(last_revision, (SELECT coalesce(max(key), 0) FROM revisions)),
                    min(last_fact, (SELECT coalesce(max(key), 0) FROM facts))
             FROM lineage WHERE conversation = ?2",
        )?
        .execute((child, parent, last))?;
    let steps: i64 = connection
        .prepare_cached("SELECT max(step) FROM lineage WHERE conversation = ?1")?
        .query_row([child], |row| row.get(0))?;
    add_own_source(connection, child, steps + 1)
}

/// Returns the messages of a span, in order, each in its newest revision.
pub(super) fn load_messages(
    connection: &Connection,
    (key, id): (i64, &ConversationId),
    span: MessageSpan,
) -> Result<Vec<Message>, SqliteFailure> {
    let revised = load_revisions(connection, key, span)?;
    let mut statement = connection.prepare_cached(
        "SELECT messages.position, messages.body FROM lineage CROSS JOIN messages
         ON messages.conversation = lineage.source AND messages.position <= lineage.last_position
         WHERE lineage.conversation = ?1 AND messages.position BETWEEN ?2 AND ?3
         ORDER BY lineage.step, messages.position",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let position: i64 = row.get(0)?;
        let body = match revised.get(&position) {
            Some(body) => body,
            None => rows::text_column(row, 1)?,
        };
        rows::decode_json(
            || format!("message {position} of conversation `{id}`"),
            body,
        )
    };
    statement
        .query_and_then((key, span.first, span.last), read)?
        .collect()
}

/// Returns the newest revision of each revised message of a span, by position. A revision made in a
/// fork takes precedence over one made in the original conversation.
fn load_revisions(
    connection: &Connection,
    key: i64,
    span: MessageSpan,
) -> Result<HashMap<i64, String>, SqliteFailure> {
    let mut statement = connection.prepare_cached(
        "SELECT revisions.position, revisions.body FROM lineage CROSS JOIN revisions
         ON revisions.conversation = lineage.source AND revisions.position <= lineage.last_position
            AND revisions.key <= lineage.last_revision
         WHERE lineage.conversation = ?1 AND revisions.position BETWEEN ?2 AND ?3
         ORDER BY lineage.step, revisions.key",
    )?;
    let rows = statement.query_map((key, span.first, span.last), |row| {
        Ok((row.get(0)?, row.get(1)?))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Returns the position and the full id of the message with this short id.
pub(super) fn find_message(
    connection: &Connection,
    conversation: i64,
    short_id: ShortId,
) -> Result<Option<(i64, MessageId)>, SqliteFailure> {
    let found: Option<(i64, String)> = connection
        .prepare_cached(
            "SELECT messages.position, messages.message_id FROM lineage CROSS JOIN messages
             ON messages.conversation = lineage.source AND messages.short_id = ?2
                AND messages.position <= lineage.last_position
             WHERE lineage.conversation = ?1",
        )?
        .query_row((conversation, rows::encode_short_id(short_id)), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let read = |(position, id): (i64, String)| Ok((position, rows::decode_message_id(&id)?));
    found.map(read).transpose()
}

/// Returns the position of a message, or an error if the message does not exist.
pub(super) fn message_position(
    connection: &Connection,
    (key, id): (i64, &ConversationId),
    message: MessageId,
) -> Result<i64, SqliteFailure> {
    match find_message(connection, key, message.short_id())? {
        Some((position, found)) if found == message => Ok(position),
        Some(_) | None => Err(StoreError::UnknownMessage {
            conversation: id.clone(),
            message,
        }
        .into()),
    }
}

/// Returns the original body of a message, before any revision.
pub(super) fn load_original_body(
    connection: &Connection,
    conversation: i64,
    short_id: ShortId,
) -> Result<Option<String>, SqliteFailure> {
    let body = connection
        .prepare_cached(
            "SELECT messages.body FROM lineage CROSS JOIN messages
             ON messages.conversation = lineage.source AND messages.short_id = ?2
                AND messages.position <= lineage.last_position
             WHERE lineage.conversation = ?1",
        )?
        .query_row((conversation, rows::encode_short_id(short_id)), |row| {
            row.get(0)
        })
        .optional()?;
    Ok(body)
}

/// True if the content of a message, before any revision, has this hash.
pub(super) fn has_original_content(
    connection: &Connection,
    conversation: i64,
    message: MessageId,
    hash: ContentHash,
) -> Result<bool, SqliteFailure> {
    let stored = connection
        .prepare_cached(
            "SELECT 1 FROM lineage CROSS JOIN messages
             ON messages.conversation = lineage.source AND messages.short_id = ?2
                AND messages.position <= lineage.last_position
             WHERE lineage.conversation = ?1 AND messages.message_id = ?3 AND messages.hash = ?4",
        )?
        .exists((
            conversation,
            rows::encode_short_id(message.short_id()),
            message.to_string(),
            &hash.0,
        ))?;
    Ok(stored)
}
