//! Values as every store writes them: JSON as text, times that sort as text, messages with what is looked for in them.

use haft_types::{ContentHash, Message, MessageId, ShortId, Timestamp};
use serde::Serialize;

use crate::error::StoreError;

/// A message ready to be inserted: encoded by the caller's thread, not by the writer's.
pub(crate) struct MessageRow {
    pub(crate) id: MessageId,
    pub(crate) role: String,
    pub(crate) hash: ContentHash,
    pub(crate) body: String,
}

impl MessageRow {
    pub(crate) fn new(message: &Message) -> Result<Self, StoreError> {
        Ok(Self {
            id: message.message_id,
            role: message.role.to_string(),
            hash: message.content_hash(),
            body: encode("a message", message)?,
        })
    }
}

/// The JSON form of a value.
pub(crate) fn encode<T: Serialize + ?Sized>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|source| StoreError::Encoding { what, source })
}

/// A time as stored: with all nine decimals, so that times sort as text.
pub(crate) fn write_time(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// A short id as stored.
pub(crate) fn short(id: ShortId) -> i64 {
    i64::from(id.0)
}
