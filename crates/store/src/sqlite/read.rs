//! Everything that only reads, but the request log.

use haft_types::{ConversationId, Message};
use rusqlite::{Connection, OptionalExtension};
use serde_json::Value;

use super::failure::Failure;
use super::rows::{self, LISTED};
use crate::conversation::{Conversation, Found, Listed, namespace_name};
use crate::document::ConversationDocument;
use crate::fact::Fact;

/// The conversation with this id.
pub(super) fn get(connection: &Connection, id: &ConversationId) -> Result<Option<Conversation>, Failure> {
    Ok(rows::conversation(connection, id)?.map(|(_, conversation)| conversation))
}

/// The conversations of a namespace, or of all.
pub(super) fn list(connection: &Connection, namespace: Option<&str>) -> Result<Vec<Listed>, Failure> {
    let sql = format!(
        "SELECT {LISTED} FROM conversations WHERE ?1 IS NULL OR namespace = ?1 ORDER BY updated_at DESC, key DESC"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    statement.query_and_then([namespace], rows::listed)?.collect()
}

/// What a person means by this text.
pub(super) fn find(connection: &mut Connection, text: &str, namespace: Option<&str>) -> Result<Found, Failure> {
    if text.is_empty() {
        return Ok(Found::Nothing);
    }
    let transaction = connection.transaction()?;
    if let Some(exact) = get(&transaction, &ConversationId::new(text))? {
        return Ok(Found::One(Box::new(exact)));
    }
    let sql = format!(
        "SELECT {LISTED} FROM conversations
         WHERE (?2 IS NULL OR namespace = ?2) AND (name = ?1 OR substr(id, 1, length(?1)) = ?1)
         ORDER BY updated_at DESC, key DESC"
    );
    let candidates: Vec<Listed> =
        transaction.prepare_cached(&sql)?.query_and_then((text, namespace), rows::listed)?.collect::<Result<_, _>>()?;
    match candidates.as_slice() {
        [] => Ok(Found::Nothing),
        [one] => Ok(get(&transaction, &one.id)?.map_or(Found::Nothing, |found| Found::One(Box::new(found)))),
        [..] => Ok(Found::Several(candidates)),
    }
}

/// The messages of a conversation.
pub(super) fn messages(connection: &Connection, id: &ConversationId) -> Result<Vec<Message>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT position, body FROM messages
         WHERE conversation = (SELECT key FROM conversations WHERE id = ?1) ORDER BY position",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let position: i64 = row.get(0)?;
        let body = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        rows::decode(|| format!("message {position} of conversation `{id}`"), body)
    };
    statement.query_and_then([id.as_str()], read)?.collect()
}

/// What was noted of a conversation.
pub(super) fn facts(connection: &Connection, id: &ConversationId) -> Result<Vec<Fact>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT body FROM facts WHERE conversation = (SELECT key FROM conversations WHERE id = ?1) ORDER BY key",
    )?;
    let read = |row: &rusqlite::Row<'_>| {
        let body = row.get_ref(0)?.as_str().map_err(rusqlite::Error::from)?;
        rows::decode(|| format!("a fact of conversation `{id}`"), body)
    };
    statement.query_and_then([id.as_str()], read)?.collect()
}

/// A document.
pub(super) fn state(connection: &Connection, id: &ConversationId, name: &str) -> Result<Option<Value>, Failure> {
    let text: Option<String> = connection
        .prepare_cached(
            "SELECT value FROM states
             WHERE conversation = (SELECT key FROM conversations WHERE id = ?1) AND name = ?2",
        )?
        .query_row((id.as_str(), name), |row| row.get(0))
        .optional()?;
    text.map(|text| rows::decode(|| format!("the state `{name}` of conversation `{id}`"), &text)).transpose()
}

/// A document of a namespace.
pub(super) fn project_state(connection: &Connection, namespace: &str, name: &str) -> Result<Option<Value>, Failure> {
    let text: Option<String> = connection
        .prepare_cached("SELECT value FROM project_states WHERE namespace = ?1 AND name = ?2")?
        .query_row((namespace, name), |row| row.get(0))
        .optional()?;
    text.map(|text| rows::decode(|| format!("the state `{name}` of namespace `{namespace}`"), &text)).transpose()
}

/// The current conversation of a namespace.
pub(super) fn current(connection: &Connection, namespace: &str) -> Result<Option<ConversationId>, Failure> {
    let id: Option<String> = connection
        .prepare_cached(
            "SELECT id FROM current_conversations JOIN conversations ON key = conversation
             WHERE current_conversations.namespace = ?1",
        )?
        .query_row([namespace_name(namespace)], |row| row.get(0))
        .optional()?;
    Ok(id.map(ConversationId::new))
}

/// A whole conversation as it is at one moment.
pub(super) fn export(
    connection: &mut Connection,
    id: &ConversationId,
) -> Result<Option<ConversationDocument>, Failure> {
    let transaction = connection.transaction()?;
    let Some(conversation) = get(&transaction, id)? else { return Ok(None) };
    Ok(Some(ConversationDocument {
        id: conversation.id,
        name: conversation.name,
        description: conversation.description,
        created_at: conversation.created_at,
        updated_at: conversation.updated_at,
        metadata: conversation.metadata,
        messages: messages(&transaction, id)?,
    }))
}
