//! All writes except those of the request log. The caller begins and commits the transaction of
//! each function.

use haft_store::backend::{
    MessageRow, MessageSpan, decode_count, encode_json, encode_short_id, encode_time,
};
use haft_store::{Conversation, NewFork, Revision, StoreError, Swap};
use haft_types::{ConversationId, Message, MessageId, Timestamp};
use serde_json::Value;
use sqlx::PgConnection;

use crate::connect;
use crate::failure::PostgresFailure;
use crate::lineage;
use crate::read;

/// Fails if the tables have a format that is newer than this build of haft.
pub(crate) async fn check_format(connection: &mut PgConnection) -> Result<(), PostgresFailure> {
    connect::check_format(
        sqlx::query_scalar("SELECT format FROM haft_format")
            .fetch_one(connection)
            .await?,
    )
}

/// Inserts a conversation with a message count of zero, then its messages.
pub(crate) async fn create_conversation(
    connection: &mut PgConnection,
    mut new: Conversation,
    metadata: &str,
    messages: &[MessageRow],
    make_current: bool,
) -> Result<Conversation, PostgresFailure> {
    let key = insert_conversation(connection, &new, metadata).await?;
    lineage::add_own_source(connection, key, 1).await?;
    for message in messages {
        let position = reserve_position(connection, &new.id, new.updated_at)
            .await?
            .1;
        insert_message(connection, (key, &new.id), position, message).await?;
    }
    if make_current {
        set_current_key(connection, &new.namespace, key).await?;
    }
    new.messages = messages.len() as u64;
    Ok(new)
}

async fn insert_conversation(
    connection: &mut PgConnection,
    new: &Conversation,
    metadata: &str,
) -> Result<i64, PostgresFailure> {
    let sql = include_str!("statements/create.sql");
    let query = sqlx::query_scalar(sql)
        .bind(new.id.as_str())
        .bind(&new.namespace)
        .bind(&new.name)
        .bind(&new.description)
        .bind(metadata)
        .bind(encode_time(new.created_at))
        .bind(encode_time(new.updated_at))
        .bind(new.messages.cast_signed());
    let inserted = query.fetch_optional(connection).await?;
    inserted.ok_or_else(|| StoreError::IdTaken { id: new.id.clone() }.into())
}

/// Appends one message to a conversation, at the next position.
pub(crate) async fn append_message(
    connection: &mut PgConnection,
    id: &ConversationId,
    message: &MessageRow,
    now: Timestamp,
) -> Result<(), PostgresFailure> {
    let (key, position) = reserve_position(connection, id, now).await?;
    insert_message(connection, (key, id), position, message).await
}

/// Increments the message count, and returns the conversation's key and the position for the new
/// message. Concurrent writers wait until the transaction ends.
async fn reserve_position(
    connection: &mut PgConnection,
    id: &ConversationId,
    now: Timestamp,
) -> Result<(i64, i64), PostgresFailure> {
    let sql =
        "UPDATE conversations SET messages = messages + 1, updated_at = greatest(updated_at, $2)
               WHERE id = $1 AND deleted_at IS NULL RETURNING key, messages";
    let counted = sqlx::query_as(sql)
        .bind(id.as_str())
        .bind(encode_time(now))
        .fetch_optional(connection)
        .await?;
    counted.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

async fn insert_message(
    connection: &mut PgConnection,
    (key, id): (i64, &ConversationId),
    position: i64,
    message: &MessageRow,
) -> Result<(), PostgresFailure> {
    if let Some((_, taken_by)) =
        lineage::find_message(connection, key, message.id.short_id()).await?
    {
        return Err(StoreError::MessageIdTaken {
            conversation: id.clone(),
            message: message.id,
            taken_by,
        }
        .into());
    }
    let sql = "WITH inserted AS (
                   INSERT INTO messages (conversation, position, short_id, message_id, role, hash, body)
                   VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING key)
               INSERT INTO unindexed SELECT key FROM inserted";
    let query = sqlx::query(sql)
        .bind(key)
        .bind(position)
        .bind(encode_short_id(message.id.short_id()))
        .bind(message.id.to_string())
        .bind(&message.role)
        .bind(&message.hash.0[..])
        .bind(&message.body);
    query.execute(connection).await?;
    Ok(())
}

/// Stores a revision of a message. Fails if the message does not exist.
pub(crate) async fn revise_message(
    connection: &mut PgConnection,
    id: &ConversationId,
    message: MessageId,
    revision: Revision,
    now: Timestamp,
) -> Result<Message, PostgresFailure> {
    let key = read::find_and_lock_key(connection, id).await?;
    let position = lineage::require_position(connection, (key, id), message).await?;
    let span = MessageSpan::single(position);
    let stored = lineage::read_messages(connection, (key, id), span)
        .await?
        .pop();
    let stored = stored.ok_or(StoreError::UnknownMessage {
        conversation: id.clone(),
        message,
    })?;
    let revised = revision.apply_to(stored);
    let row = MessageRow::new(&revised)?;
    let sql = "WITH inserted AS (
                   INSERT INTO revisions (conversation, position, made_at, hash, body)
                   VALUES ($1, $2, $3, $4, $5) RETURNING key)
               INSERT INTO unindexed SELECT -key FROM inserted";
    let query = sqlx::query(sql)
        .bind(key)
        .bind(position)
        .bind(encode_time(now))
        .bind(&row.hash.0[..])
        .bind(&row.body);
    query.execute(&mut *connection).await?;
    let sql = "UPDATE conversations SET revisions = revisions + 1, updated_at = greatest(updated_at, $2) WHERE key = $1";
    sqlx::query(sql)
        .bind(key)
        .bind(encode_time(now))
        .execute(connection)
        .await?;
    Ok(revised)
}

/// Creates a conversation that shares the first messages of another conversation.
pub(crate) async fn fork_conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
    fork: NewFork,
    now: Timestamp,
) -> Result<Conversation, PostgresFailure> {
    // The row lock keeps the parent from growing in the meantime.
    let parent = read::find_and_lock_key(connection, id).await?;
    let unknown = || StoreError::UnknownConversation { id: id.clone() };
    let (_, from) = read::read_conversation_with_key(connection, id)
        .await?
        .ok_or_else(unknown)?;
    let last = match fork.at {
        Some(message) => {
            decode_count(lineage::require_position(connection, (parent, id), message).await?)?
        }
        None => from.messages,
    };
    let make_current = fork.make_current;
    let new = fork.into_conversation(from, last, now);
    let metadata = encode_json("the metadata of a conversation", &new.metadata)?;
    let key = insert_conversation(connection, &new, &metadata).await?;
    lineage::inherit_sources(connection, key, parent, last.cast_signed()).await?;
    let sql = "INSERT INTO states SELECT $1, name, value FROM states WHERE conversation = $2";
    sqlx::query(sql)
        .bind(key)
        .bind(parent)
        .execute(&mut *connection)
        .await?;
    if make_current {
        set_current_key(connection, &new.namespace, key).await?;
    }
    Ok(new)
}

pub(crate) async fn rename_conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
    name: &str,
) -> Result<(), PostgresFailure> {
    let key = read::find_and_lock_key(connection, id).await?;
    let sql = "WITH renamed AS (UPDATE conversations SET name = $2 WHERE key = $1 RETURNING key)
               INSERT INTO unnamed SELECT key FROM renamed ON CONFLICT DO NOTHING";
    sqlx::query(sql)
        .bind(key)
        .bind(name)
        .execute(connection)
        .await?;
    Ok(())
}

/// Moves a conversation to the trash.
pub(crate) async fn trash_conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
    now: Timestamp,
) -> Result<(), PostgresFailure> {
    let key = read::find_and_lock_key(connection, id).await?;
    let sql = "UPDATE conversations SET deleted_at = $2 WHERE key = $1";
    sqlx::query(sql)
        .bind(key)
        .bind(encode_time(now))
        .execute(connection)
        .await?;
    Ok(())
}

/// Moves a conversation out of the trash. Does nothing if it is not in the trash.
pub(crate) async fn restore_conversation(
    connection: &mut PgConnection,
    id: &ConversationId,
) -> Result<Conversation, PostgresFailure> {
    let sql = "UPDATE conversations SET deleted_at = NULL WHERE id = $1";
    sqlx::query(sql)
        .bind(id.as_str())
        .execute(&mut *connection)
        .await?;
    let restored = read::get_conversation(connection, id).await?;
    restored.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

/// Stores a fact about a message. Fails if the message does not exist.
pub(crate) async fn insert_fact(
    connection: &mut PgConnection,
    id: &ConversationId,
    about: MessageId,
    fact: &str,
    now: Timestamp,
) -> Result<(), PostgresFailure> {
    let key = read::find_and_lock_key(connection, id).await?;
    let position = lineage::require_position(connection, (key, id), about).await?;
    let sql = "INSERT INTO facts (conversation, position, noted_at, body) VALUES ($1, $2, $3, $4)";
    sqlx::query(sql)
        .bind(key)
        .bind(position)
        .bind(encode_time(now))
        .bind(fact)
        .execute(connection)
        .await?;
    Ok(())
}

/// Sets the state with the name `name` of a conversation.
pub(crate) async fn set_state(
    connection: &mut PgConnection,
    id: &ConversationId,
    name: &str,
    value: &str,
) -> Result<(), PostgresFailure> {
    let key = read::find_and_lock_key(connection, id).await?;
    let sql = "INSERT INTO states VALUES ($1, $2, $3) ON CONFLICT (conversation, name) DO UPDATE SET value = excluded.value";
    sqlx::query(sql)
        .bind(key)
        .bind(name)
        .bind(value)
        .execute(connection)
        .await?;
    Ok(())
}

/// Sets the state with the name `name` of a namespace.
pub(crate) async fn set_project_state(
    connection: &mut PgConnection,
    namespace: &str,
    name: &str,
    value: &str,
) -> Result<(), PostgresFailure> {
    let sql = "INSERT INTO project_states VALUES ($1, $2, $3)
               ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value";
    sqlx::query(sql)
        .bind(namespace)
        .bind(name)
        .bind(value)
        .execute(connection)
        .await?;
    Ok(())
}

/// Sets the state with the name `name` of a namespace, but only if its current value is `before`.
pub(crate) async fn swap_project_state(
    connection: &mut PgConnection,
    namespace: &str,
    name: &str,
    before: Option<&Value>,
    value: &str,
) -> Result<Swap, PostgresFailure> {
    // There may be no row to lock, so an advisory lock on the state's name is taken until the
    // transaction ends.
    let sql = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ' state ' || $1 || ' ' || $2, 0))";
    sqlx::query(sql)
        .bind(namespace)
        .bind(name)
        .execute(&mut *connection)
        .await?;
    if read::read_project_state(connection, namespace, name)
        .await?
        .as_ref()
        != before
    {
        return Ok(Swap::Overtaken);
    }
    set_project_state(connection, namespace, name, value).await?;
    Ok(Swap::Done)
}

/// Makes a conversation the current conversation of a namespace.
pub(crate) async fn set_current_conversation(
    connection: &mut PgConnection,
    namespace: &str,
    id: &ConversationId,
) -> Result<(), PostgresFailure> {
    let key = read::find_key(connection, id).await?;
    let key = key.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() })?;
    set_current_key(connection, namespace, key).await
}

async fn set_current_key(
    connection: &mut PgConnection,
    namespace: &str,
    key: i64,
) -> Result<(), PostgresFailure> {
    let sql = "INSERT INTO current_conversations VALUES ($1, $2)
               ON CONFLICT (namespace) DO UPDATE SET conversation = excluded.conversation";
    sqlx::query(sql)
        .bind(namespace)
        .bind(key)
        .execute(connection)
        .await?;
    Ok(())
}
