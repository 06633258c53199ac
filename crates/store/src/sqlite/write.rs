//! Everything that changes the database but the request log. Each function is one transaction.

use haft_types::{ConversationId, MessageId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use serde_json::Value;

use super::failure::Failure;
use super::read;
use super::rows::{self, MessageRow};
use crate::conversation::{Conversation, namespace_name};
use crate::error::StoreError;
use crate::store::Swap;

/// A transaction that has the right to write from its first statement, so that it cannot fail for that later.
pub(crate) fn begin(connection: &mut Connection) -> Result<Transaction<'_>, Failure> {
    Ok(connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

/// Inserts a conversation whose message count is still zero, and then its messages.
pub(super) fn create(
    connection: &mut Connection,
    mut new: Conversation,
    metadata: &str,
    messages: &[MessageRow],
    make_current: bool,
) -> Result<Conversation, Failure> {
    let transaction = begin(connection)?;
    let inserted = transaction
        .prepare_cached(
            "INSERT INTO conversations (id, namespace, name, description, metadata, created_at, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO NOTHING RETURNING key",
        )?
        .query_row(
            (
                new.id.as_str(),
                &new.namespace,
                &new.name,
                &new.description,
                metadata,
                rows::write_time(new.created_at),
                rows::write_time(new.updated_at),
            ),
            |row| row.get(0),
        )
        .optional()?;
    let Some(key) = inserted else { return Err(StoreError::IdTaken { id: new.id }.into()) };
    for message in messages {
        let position = count_message(&transaction, &new.id, new.updated_at)?.1;
        insert_message(&transaction, (key, &new.id), position, message)?;
    }
    if make_current {
        point_current_at(&transaction, &new.namespace, key)?;
    }
    transaction.commit()?;
    new.messages = messages.len() as u64;
    Ok(new)
}

/// Appends one message.
pub(super) fn append(
    connection: &mut Connection,
    id: &ConversationId,
    message: &MessageRow,
    now: Timestamp,
) -> Result<(), Failure> {
    let transaction = begin(connection)?;
    let (key, position) = count_message(&transaction, id, now)?;
    insert_message(&transaction, (key, id), position, message)?;
    transaction.commit()?;
    Ok(())
}

/// Makes room for one more message: the conversation's key and the new position.
fn count_message(connection: &Connection, id: &ConversationId, now: Timestamp) -> Result<(i64, i64), Failure> {
    // A clock that was set back must not move a conversation down the list.
    connection
        .prepare_cached(
            "UPDATE conversations SET messages = messages + 1, updated_at = max(updated_at, ?2) WHERE id = ?1
             RETURNING key, messages",
        )?
        .query_row((id.as_str(), rows::write_time(now)), |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?
        .ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

fn insert_message(
    connection: &Connection,
    (key, id): (i64, &ConversationId),
    position: i64,
    message: &MessageRow,
) -> Result<(), Failure> {
    if let Some(taken_by) = rows::message_with(connection, key, message.id.short())? {
        return Err(StoreError::MessageIdTaken { conversation: id.clone(), message: message.id, taken_by }.into());
    }
    connection
        .prepare_cached(
            "INSERT INTO messages (conversation, position, short_id, message_id, role, hash, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            key,
            position,
            rows::short(message.id.short()),
            message.id.to_string(),
            &message.role,
            &message.hash.0,
            &message.body,
        ))?;
    Ok(())
}

/// Notes a fact about a message that must exist.
pub(super) fn note(
    connection: &mut Connection,
    id: &ConversationId,
    about: MessageId,
    fact: &str,
    now: Timestamp,
) -> Result<(), Failure> {
    let transaction = begin(connection)?;
    let key = rows::key(&transaction, id)?;
    if rows::message_with(&transaction, key, about.short())? != Some(about) {
        return Err(StoreError::UnknownMessage { conversation: id.clone(), message: about }.into());
    }
    transaction.prepare_cached("INSERT INTO facts (conversation, noted_at, body) VALUES (?1, ?2, ?3)")?.execute((
        key,
        rows::write_time(now),
        fact,
    ))?;
    transaction.commit()?;
    Ok(())
}

/// Keeps a document.
pub(super) fn set_state(
    connection: &mut Connection,
    id: &ConversationId,
    name: &str,
    value: &str,
) -> Result<(), Failure> {
    let transaction = begin(connection)?;
    let key = rows::key(&transaction, id)?;
    transaction
        .prepare_cached(
            "INSERT INTO states (conversation, name, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (conversation, name) DO UPDATE SET value = excluded.value",
        )?
        .execute((key, name, value))?;
    transaction.commit()?;
    Ok(())
}

/// Keeps a document of a namespace.
pub(super) fn set_project_state(
    connection: &mut Connection,
    namespace: &str,
    name: &str,
    value: &str,
) -> Result<(), Failure> {
    let transaction = begin(connection)?;
    put_project_state(&transaction, namespace, name, value)?;
    transaction.commit()?;
    Ok(())
}

/// Keeps a document of a namespace if nobody changed the one before.
pub(super) fn swap_project_state(
    connection: &mut Connection,
    (namespace, name): (&str, &str),
    before: Option<&Value>,
    value: &str,
) -> Result<Swap, Failure> {
    let transaction = begin(connection)?;
    if read::project_state(&transaction, namespace, name)?.as_ref() != before {
        return Ok(Swap::Overtaken);
    }
    put_project_state(&transaction, namespace, name, value)?;
    transaction.commit()?;
    Ok(Swap::Done)
}

fn put_project_state(connection: &Connection, namespace: &str, name: &str, value: &str) -> Result<(), Failure> {
    connection
        .prepare_cached(
            "INSERT INTO project_states (namespace, name, value) VALUES (?1, ?2, ?3)
             ON CONFLICT (namespace, name) DO UPDATE SET value = excluded.value",
        )?
        .execute((namespace, name, value))?;
    Ok(())
}

/// Makes a conversation current.
pub(super) fn set_current(connection: &mut Connection, namespace: &str, id: &ConversationId) -> Result<(), Failure> {
    let transaction = begin(connection)?;
    let key = rows::key(&transaction, id)?;
    point_current_at(&transaction, namespace_name(namespace), key)?;
    transaction.commit()?;
    Ok(())
}

fn point_current_at(transaction: &Transaction<'_>, namespace: &str, key: i64) -> Result<(), Failure> {
    transaction
        .prepare_cached(
            "INSERT INTO current_conversations (namespace, conversation) VALUES (?1, ?2)
             ON CONFLICT (namespace) DO UPDATE SET conversation = excluded.conversation",
        )?
        .execute((namespace, key))?;
    Ok(())
}
