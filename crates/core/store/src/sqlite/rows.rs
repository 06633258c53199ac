//! Converts values to columns and columns to values.

use haft_types::ConversationId;
use rusqlite::{Connection, OptionalExtension, Row};
use serde::de::DeserializeOwned;

use super::failure::SqliteFailure;
use crate::conversation::{Conversation, ConversationRow};
use crate::encoding;
pub(super) use crate::encoding::{
    LISTED_COLUMNS, ListedRow, MessageRow, decode_count, decode_message_id, encode_json,
    encode_short_id, encode_time,
};
use crate::error::StoreError;

/// Parses the JSON form of a value. `what` is a name for the value, used in the error message.
pub(super) fn decode_json<T: DeserializeOwned>(
    what: impl FnOnce() -> String,
    text: &str,
) -> Result<T, SqliteFailure> {
    Ok(encoding::decode_json(what, text)?)
}

/// Returns the text in a column without copying it.
pub(super) fn text_column<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a str, SqliteFailure> {
    Ok(row
        .get_ref(column)?
        .as_str()
        .map_err(rusqlite::Error::from)?)
}

/// Reads the first columns of a row, which must be the [`LISTED_COLUMNS`].
fn read_listed_columns<'a>(row: &'a Row<'_>) -> Result<ListedRow<'a>, SqliteFailure> {
    Ok(ListedRow {
        id: row.get(0)?,
        name: row.get(1)?,
        namespace: row.get(2)?,
        created_at: text_column(row, 3)?,
        updated_at: text_column(row, 4)?,
        messages: row.get(5)?,
    })
}

/// Reads a row of a list of conversations.
pub(super) fn read_listed_conversation(row: &Row<'_>) -> Result<ConversationRow, SqliteFailure> {
    Ok(read_listed_columns(row)?.decode()?)
}

/// The columns of a complete conversation, as read by [`read_conversation`].
const CONVERSATION_COLUMNS: &str =
    "id, name, namespace, created_at, updated_at, messages, key, description, metadata, revisions";

/// Returns the database key and the values of a conversation; `None` if it does not exist or is in
/// the trash.
pub(super) fn find_conversation(
    connection: &Connection,
    id: &ConversationId,
) -> Result<Option<(i64, Conversation)>, SqliteFailure> {
    let sql = format!(
        "SELECT {CONVERSATION_COLUMNS} FROM conversations WHERE id = ?1 AND deleted_at IS NULL"
    );
    read_conversation(connection, &sql, id)
}

/// Returns the database key and the values of a conversation in the trash; `None` if the trash does
/// not contain it.
pub(super) fn find_trashed(
    connection: &Connection,
    id: &ConversationId,
) -> Result<Option<(i64, Conversation)>, SqliteFailure> {
    let sql = format!(
        "SELECT {CONVERSATION_COLUMNS} FROM conversations WHERE id = ?1 AND deleted_at IS NOT NULL"
    );
    read_conversation(connection, &sql, id)
}

fn read_conversation(
    connection: &Connection,
    sql: &str,
    id: &ConversationId,
) -> Result<Option<(i64, Conversation)>, SqliteFailure> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id.as_str()])?;
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let conversation = read_listed_columns(row)?.decode_conversation(
        row.get(7)?,
        text_column(row, 8)?,
        row.get(9)?,
    )?;
    Ok(Some((row.get(6)?, conversation)))
}

/// Returns the database key of a conversation, or an error if the conversation does not exist.
pub(super) fn require_key(
    connection: &Connection,
    id: &ConversationId,
) -> Result<i64, SqliteFailure> {
    find_key(connection, id)?
        .ok_or_else(|| StoreError::UnknownConversation { id: id.clone() }.into())
}

/// Returns the database key of a conversation; `None` if it does not exist or is in the trash.
pub(super) fn find_key(
    connection: &Connection,
    id: &ConversationId,
) -> Result<Option<i64>, SqliteFailure> {
    let key = connection
        .prepare_cached("SELECT key FROM conversations WHERE id = ?1 AND deleted_at IS NULL")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()?;
    Ok(key)
}
