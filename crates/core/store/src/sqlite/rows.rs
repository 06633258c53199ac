//! Between our values and what the columns hold.

use haft_types::{ConversationId, Timestamp};
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;

use super::failure::Failure;
use crate::conversation::{Conversation, Listed};
pub(super) use crate::encoding::{MessageRow, encode, short, write_time};
use crate::error::StoreError;

/// A value from the JSON form we wrote.
pub(super) fn decode<T: DeserializeOwned>(what: impl FnOnce() -> String, text: &str) -> Result<T, Failure> {
    serde_json::from_str(text).map_err(|error| Failure::Damaged(format!("{} cannot be read: {error}", what())))
}

/// The text in a column, without a copy.
pub(super) fn text<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, Failure> {
    Ok(row.get_ref(column)?.as_str().map_err(rusqlite::Error::from)?)
}

/// A stored time.
pub(super) fn read_time(text: &str) -> Result<Timestamp, Failure> {
    text.parse().map_err(|_| Failure::Damaged(format!("`{text}` is not a time")))
}

/// A counter, which SQLite keeps signed.
pub(super) fn read_count(count: i64) -> Result<u64, Failure> {
    u64::try_from(count).map_err(|_| Failure::Damaged(format!("{count} is not a count")))
}

/// The columns [`listed`] reads.
pub(super) const LISTED: &str = "id, name, namespace, created_at, updated_at, messages";

/// A row of [`LISTED`].
pub(super) fn listed(row: &Row<'_>) -> Result<Listed, Failure> {
    Ok(Listed {
        id: ConversationId::new(row.get::<_, String>(0)?),
        name: row.get(1)?,
        namespace: row.get(2)?,
        created_at: read_time(text(row, 3)?)?,
        updated_at: read_time(text(row, 4)?)?,
        messages: read_count(row.get(5)?)?,
    })
}

/// The columns [`conversation`] reads.
const CONVERSATION: &str =
    "id, name, namespace, created_at, updated_at, messages, key, description, metadata, revisions";

/// The key and the whole row of a conversation that is not in the trash.
pub(super) fn conversation(
    connection: &Connection,
    id: &ConversationId,
) -> Result<Option<(i64, Conversation)>, Failure> {
    let sql = format!("SELECT {CONVERSATION} FROM conversations WHERE id = ?1 AND deleted_at IS NULL");
    read_conversation(connection, &sql, id)
}

/// The same of one that is.
pub(super) fn trashed(connection: &Connection, id: &ConversationId) -> Result<Option<(i64, Conversation)>, Failure> {
    let sql = format!("SELECT {CONVERSATION} FROM conversations WHERE id = ?1 AND deleted_at IS NOT NULL");
    read_conversation(connection, &sql, id)
}

fn read_conversation(
    connection: &Connection,
    sql: &str,
    id: &ConversationId,
) -> Result<Option<(i64, Conversation)>, Failure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let Listed { id, name, namespace, created_at, updated_at, messages } = listed(row)?;
    let metadata = decode(|| format!("the metadata of conversation `{id}`"), text(row, 8)?)?;
    let conversation = Conversation {
        id,
        name,
        namespace,
        description: row.get(7)?,
        metadata,
        created_at,
        updated_at,
        messages,
        revisions: read_count(row.get(9)?)?,
    };
    Ok(Some((row.get(6)?, conversation)))
}

/// The key of a conversation, which must exist.
pub(super) fn key(connection: &Connection, id: &ConversationId) -> Result<i64, Failure> {
    find_key(connection, id)?.ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

/// The key of a conversation.
pub(super) fn find_key(connection: &Connection, id: &ConversationId) -> Result<Option<i64>, Failure> {
    let key = connection
        .prepare_cached("SELECT key FROM conversations WHERE id = ?1 AND deleted_at IS NULL")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    Ok(key)
}
