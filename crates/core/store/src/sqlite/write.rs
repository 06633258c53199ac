//! All statements that change the database, except for those of the request log. Each function runs
//! inside a transaction of its caller.
//!
//! Invariant: a message row is inserted once and never changed. A conversation's counters match the
//! number of its messages, and are updated in the transaction that changes that number.

use haft_types::{ConversationId, Message, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde_json::Value;

use super::failure::SqliteFailure;
use super::lineage;
use super::migrations::FORMAT_VERSION;
use super::read;
use super::rows::{self, MessageRow};
use crate::conversation::{Conversation, NewFork, namespace_name};
use crate::error::StoreError;
use crate::message::{MessageSpan, Revision};
use crate::store::Swap;

/// Begins a transaction that holds SQLite's write lock from the start, so that no later statement
/// fails because another connection holds the lock.
pub fn begin_immediate(connection: &mut Connection) -> Result<Transaction<'_>, SqliteFailure> {
    Ok(connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

/// Begins a transaction that writes conversations. Fails if a newer version of haft has changed the
/// format of the database.
pub(super) fn begin_write(connection: &mut Connection) -> Result<Transaction<'_>, SqliteFailure> {
    let transaction = begin_immediate(connection)?;
    // A newer version of haft may have changed the format since this process opened the file, and
    // would not find rows in the old format.
    let format: u32 = transaction
        .prepare_cached("SELECT user_version FROM pragma_user_version")?
        .query_row([], |row| row.get(0))?;
    if format > FORMAT_VERSION {
        Err(SqliteFailure::NewerFormat(format))
    } else {
        Ok(transaction)
    }
}

/// Runs `work` in one transaction and commits it if it succeeds.
pub(super) fn run_transaction<T>(
    connection: &mut Connection,
    work: impl FnOnce(&Connection) -> Result<T, SqliteFailure>,
) -> Result<T, SqliteFailure> {
    let transaction = begin_write(connection)?;
    let done = work(&transaction)?;
    transaction.commit()?;
    Ok(done)
}

/// Inserts a conversation and then its messages. The message count is zero at first and is
/// incremented with each message.
pub(super) fn create_conversation(
    connection: &Connection,
    mut new: Conversation,
    metadata: &str,
    messages: &[MessageRow],
    make_current: bool,
) -> Result<Conversation, SqliteFailure> {
    let key = insert_conversation(connection, &new, metadata)?;
    lineage::add_own_source(connection, key, 1)?;
    for message in messages {
        let position = reserve_position(connection, &new.id, new.updated_at)?.1;
        insert_message(connection, (key, &new.id), position, message)?;
    }
    if make_current {
        set_current_conversation_key(connection, &new.namespace, key)?;
    }
    new.messages = messages.len() as u64;
    Ok(new)
}

fn insert_conversation(
    connection: &Connection,
    new: &Conversation,
    metadata: &str,
) -> Result<i64, SqliteFailure> {
    connection
        .prepare_cached(
            "INSERT INTO conversations (id, namespace, name, description, metadata, created_at, updated_at, messages)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (id) DO NOTHING RETURNING key",
        )?
        .query_row(
            (
                new.id.as_str(),
                &new.namespace,
                &new.name,
                &new.description,
                metadata,
                rows::encode_time(new.created_at),
                rows::encode_time(new.updated_at),
                new.messages.cast_signed(),
            ),
            |row| row.get(0),
        )
        .optional()?
        .ok_or_else(|| StoreError::IdTaken { id: new.id.clone() }.into())
}

/// Appends one message.
pub(super) fn append_message(
    connection: &Connection,
    id: &ConversationId,
    message: &MessageRow,
    now: Timestamp,
) -> Result<(), SqliteFailure> {
    let (key, position) = reserve_position(connection, id, now)?;
    insert_message(connection, (key, id), position, message)?;
    Ok(())
}

/// Increments the message count. Returns the conversation's database key and the position of the
/// new message.
fn reserve_position(
    connection: &Connection,
    id: &ConversationId,
    now: Timestamp,
) -> Result<(i64, i64), SqliteFailure> {
    // The update time never decreases: a clock that was set back must not move a conversation down
    // the list.
    connection
        .prepare_cached(
            "UPDATE conversations SET messages = messages + 1, updated_at = max(updated_at, ?2)
             WHERE id = ?1 AND deleted_at IS NULL RETURNING key, messages",
        )?
        .query_row((id.as_str(), rows::encode_time(now)), |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?
        .ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

fn insert_message(
    connection: &Connection,
    (key, id): (i64, &ConversationId),
    position: i64,
    message: &MessageRow,
) -> Result<(), SqliteFailure> {
    if let Some((_, taken_by)) = lineage::find_message(connection, key, message.id.short_id())? {
        return Err(StoreError::MessageIdTaken {
            conversation: id.clone(),
            message: message.id,
            taken_by,
        }
        .into());
    }
    connection
        .prepare_cached(
            "INSERT INTO messages (conversation, position, short_id, message_id, role, hash, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            key,
            position,
            rows::encode_short_id(message.id.short_id()),
            message.id.to_string(),
            &message.role,
            &message.hash.0,
            &message.body,
        ))?;
    Ok(())
}

/// Stores a revision of a message. Fails if the message does not exist.
pub(super) fn revise_message(
    connection: &Connection,
    id: &ConversationId,
    message: MessageId,
    revision: Revision,
    now: Timestamp,
) -> Result<Message, SqliteFailure> {
    let key = rows::require_key(connection, id)?;
    let position = lineage::message_position(connection, (key, id), message)?;
    let stored =
        lineage::load_messages(connection, (key, id), MessageSpan::single(position))?.pop();
    let stored = stored.ok_or(StoreError::UnknownMessage {
        conversation: id.clone(),
        message,
    })?;
    let revised = revision.apply_to(stored);
    let row = MessageRow::new(&revised)?;
    connection
        .prepare_cached(
            "INSERT INTO revisions (conversation, position, made_at, hash, body) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute((key, position, rows::encode_time(now), &row.hash.0, &row.body))?;
    connection
        .prepare_cached(
            "UPDATE conversations SET revisions = revisions + 1, updated_at = max(updated_at, ?2) WHERE key = ?1",
        )?
        .execute((key, rows::encode_time(now)))?;
    Ok(revised)
}

/// Creates a fork: a conversation that begins with the messages of another conversation.
pub(super) fn fork_conversation(
    connection: &Connection,
    id: &ConversationId,
    fork: NewFork,
    now: Timestamp,
) -> Result<Conversation, SqliteFailure> {
    let unknown = || StoreError::UnknownConversation { id: id.clone() };
    let (parent, from) = rows::find_conversation(connection, id)?.ok_or_else(unknown)?;
    let last = match fork.at {
        Some(message) => rows::decode_count(lineage::message_position(
            connection,
            (parent, id),
            message,
        )?)?,
        None => from.messages,
    };
    let make_current = fork.make_current;
    let new = fork.into_conversation(from, last, now);
    let metadata = rows::encode_json("the metadata of a conversation", &new.metadata)?;
    let key = insert_conversation(connection, &new, &metadata)?;
    lineage::inherit_sources(connection, key, parent, last.cast_signed())?;
    connection
        .prepare_cached(
            "INSERT INTO states (conversation, name, value) SELECT ?1, name, value FROM states WHERE conversation = ?2",
        )?
        .execute((key, parent))?;
    if make_current {
        set_current_conversation_key(connection, &new.namespace, key)?;
    }
    Ok(new)
}

pub(super) fn rename_conversation(
    connection: &Connection,
    id: &ConversationId,
    name: &str,
) -> Result<(), SqliteFailure> {
    let key = rows::require_key(connection, id)?;
    connection
        .prepare_cached("UPDATE conversations SET name = ?2 WHERE key = ?1")?
        .execute((key, name))?;
    Ok(())
}

/// Moves a conversation to the trash.
pub(super) fn trash_conversation(
    connection: &Connection,
    id: &ConversationId,
    now: Timestamp,
) -> Result<(), SqliteFailure> {
    let key = rows::require_key(connection, id)?;
    connection
        .prepare_cached("UPDATE conversations SET deleted_at = ?2 WHERE key = ?1")?
        .execute((key, rows::encode_time(now)))?;
    Ok(())
}

/// Moves a conversation out of the trash. Does nothing if the conversation is not in the trash.
pub(super) fn restore_conversation(
    connection: &Connection,
    id: &ConversationId,
) -> Result<Conversation, SqliteFailure> {
    connection
        .prepare_cached("UPDATE conversations SET deleted_at = NULL WHERE id = ?1")?
        .execute([id.as_str()])?;
    let restored = read::get_conversation(connection, id)?;
    restored.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

/// Records a fact about a message. Fails if the message does not exist.
pub(super) fn insert_fact(
    connection: &Connection,
    id: &ConversationId,
    about: MessageId,
    fact: &str,
    now: Timestamp,
) -> Result<(), SqliteFailure> {
    let key = rows::require_key(connection, id)?;
    let position = lineage::message_position(connection, (key, id), about)?;
    connection
        .prepare_cached(
            "INSERT INTO facts (conversation, position, noted_at, body) VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute((key, position, rows::encode_time(now), fact))?;
    Ok(())
}

/// Stores a state of a conversation under `name`, replacing the previous state.
pub(super) fn set_state(
    connection: &Connection,
    id: &ConversationId,
    name: &str,
    value: &str,
) -> Result<(), SqliteFailure> {
    let key = rows::require_key(connection, id)?;
    connection
        .prepare_cached(
            "INSERT INTO states (conversation, name, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (conversation, name) DO UPDATE SET value = excluded.value",
        )?
        .execute((key, name, value))?;
    Ok(())
}

/// Stores a project state under `name` in a namespace, replacing the previous state.
pub(super) fn set_project_state(
    connection: &Connection,
    namespace: &str,
    name: &str,
    value: &str,
) -> Result<(), SqliteFailure> {
    connection
        .prepare_cached(
            "INSERT INTO project_states (namespace, name, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value",
        )?
        .execute((namespace, name, value))?;
    Ok(())
}

/// Stores a project state under `name` in a namespace, but only if the currently stored state
/// equals `before`.
pub(super) fn swap_project_state(
    connection: &Connection,
    namespace: &str,
    name: &str,
    before: Option<&Value>,
    value: &str,
) -> Result<Swap, SqliteFailure> {
    if read::load_project_state(connection, namespace, name)?.as_ref() != before {
        return Ok(Swap::Overtaken);
    }
    set_project_state(connection, namespace, name, value)?;
    Ok(Swap::Done)
}

/// Makes a conversation the current one of a namespace.
pub(super) fn set_current_conversation(
    connection: &Connection,
    namespace: &str,
    id: &ConversationId,
) -> Result<(), SqliteFailure> {
    let key = rows::require_key(connection, id)?;
    set_current_conversation_key(connection, namespace_name(namespace), key)
}

fn set_current_conversation_key(
    connection: &Connection,
    namespace: &str,
    key: i64,
) -> Result<(), SqliteFailure> {
    connection
        .prepare_cached(
            "INSERT INTO current_conversations (namespace, conversation) VALUES (?1, ?2)
             ON CONFLICT (namespace) DO UPDATE SET conversation = excluded.conversation",
        )?
        .execute((namespace, key))?;
    Ok(())
}
