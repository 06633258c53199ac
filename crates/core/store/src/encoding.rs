//! Values as every store writes them and reads them back: JSON as text, times that sort as text,
//! messages with what is looked for in them.

use haft_types::{ContentHash, ConversationId, Message, MessageId, ShortId, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::conversation::{Conversation, ConversationRow};
use crate::error::StoreError;

/// A row that cannot be what was written, and why: the database is damaged, or something else wrote
/// to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DamagedRow(pub String);

/// A message ready to be inserted: encoded by the caller's thread, not by the writer's.
pub struct MessageRow {
    /// The id, which must be free in its conversation, and so must its short form.
    pub id: MessageId,
    /// The role in its JSON spelling.
    pub role: String,
    /// The hash of the content, by which logged requests refer to it.
    pub hash: ContentHash,
    /// The whole message as JSON.
    pub body: String,
}

impl MessageRow {
    /// Encodes a message.
    pub fn new(message: &Message) -> Result<Self, StoreError> {
        Ok(Self {
            id: message.message_id,
            role: message.role.to_string(),
            hash: message.content_hash(),
            body: encode("a message", message)?,
        })
    }
}

/// The columns of a [`ListedRow`], in its order.
pub const LISTED_COLUMNS: &str = "id, name, namespace, created_at, updated_at, messages";

/// A conversation in a list, as its columns hold it.
pub struct ListedRow<'a> {
    /// The conversation's id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its namespace under the stored name.
    pub namespace: String,
    /// A time as [`encode_time`] writes it.
    pub created_at: &'a str,
    /// A time as [`encode_time`] writes it.
    pub updated_at: &'a str,
    /// A count, which databases keep signed.
    pub messages: i64,
}

impl ListedRow<'_> {
    /// The value the row stands for.
    pub fn decode(self) -> Result<ConversationRow, DamagedRow> {
        Ok(ConversationRow {
            id: ConversationId::new(self.id),
            name: self.name,
            namespace: self.namespace,
            created_at: decode_time(self.created_at)?,
            updated_at: decode_time(self.updated_at)?,
            messages: decode_count(self.messages)?,
        })
    }

    /// The whole conversation, with the columns a list does not have.
    pub fn decode_whole(
        self,
        description: String,
        metadata: &str,
        revisions: i64,
    ) -> Result<Conversation, DamagedRow> {
        let ConversationRow {
            id,
            name,
            namespace,
            created_at,
            updated_at,
            messages,
        } = self.decode()?;
        let metadata = decode(|| format!("the metadata of conversation `{id}`"), metadata)?;
        let revisions = decode_count(revisions)?;
        Ok(Conversation {
            id,
            name,
            namespace,
            description,
            metadata,
            created_at,
            updated_at,
            messages,
            revisions,
        })
    }
}

/// The JSON form of a value; `what` names it in the error.
pub fn encode<T: Serialize + ?Sized>(what: &'static str, value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|source| StoreError::Encoding { what, source })
}

/// A value from the JSON form [`encode`] gave; `what` names it in the error.
pub fn decode<T: DeserializeOwned>(
    what: impl FnOnce() -> String,
    text: &str,
) -> Result<T, DamagedRow> {
    serde_json::from_str(text)
        .map_err(|error| DamagedRow(format!("{} cannot be read: {error}", what())))
}

/// A time as stored: with all nine decimals, so that times sort as text.
pub fn encode_time(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// A stored time.
pub fn decode_time(text: &str) -> Result<Timestamp, DamagedRow> {
    text.parse()
        .map_err(|_| DamagedRow(format!("`{text}` is not a time")))
}

/// A counter, which databases keep signed.
pub fn decode_count(count: i64) -> Result<u64, DamagedRow> {
    u64::try_from(count).map_err(|_| DamagedRow(format!("{count} is not a count")))
}

/// A stored message id.
pub fn decode_message_id(text: &str) -> Result<MessageId, DamagedRow> {
    text.parse()
        .map_err(|_| DamagedRow(format!("`{text}` is not a message id")))
}

/// A short id as stored.
pub fn encode_short_id(id: ShortId) -> i64 {
    i64::from(id.0)
}
