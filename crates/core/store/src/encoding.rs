//! The encoding of values that all stores share: JSON as text, sortable times, and message rows.

use haft_types::{ContentHash, ConversationId, Message, MessageId, ShortId, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::conversation::{Conversation, ConversationRow};
use crate::error::StoreError;

/// A row whose content cannot have been written by haft: the database is damaged, or another
/// program wrote to it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DamagedRow(pub String);

/// A message that is ready to be inserted. The caller's thread encodes it, to relieve the writer's
/// thread.
pub struct MessageRow {
    /// The id. Neither the id nor its short form may already exist in the conversation.
    pub id: MessageId,
    /// The role in its JSON spelling.
    pub role: String,
    /// The hash of the content. Logged requests refer to the message by this hash.
    pub hash: ContentHash,
    /// The whole message as JSON.
    pub body: String,
}

impl MessageRow {
    /// Encodes a message as the row to insert.
    pub fn new(message: &Message) -> Result<Self, StoreError> {
        Ok(Self {
            id: message.message_id,
            role: message.role.to_string(),
            hash: message.content_hash(),
            body: encode_json("a message", message)?,
        })
    }
}

/// The names of the columns of a [`ListedRow`], in the order of its fields.
pub const LISTED_COLUMNS: &str = "id, name, namespace, created_at, updated_at, messages";

/// The columns that are read for each row of a list of conversations.
pub struct ListedRow<'a> {
    /// The id of the conversation.
    pub id: String,
    /// The name of the conversation.
    pub name: String,
    /// The stored name of the namespace.
    pub namespace: String,
    /// The time of creation, as written by [`encode_time`].
    pub created_at: &'a str,
    /// The time of the last change, as written by [`encode_time`].
    pub updated_at: &'a str,
    /// The number of messages, as a signed integer as stored in the database.
    pub messages: i64,
}

impl ListedRow<'_> {
    /// Decodes the columns into a row of a list of conversations.
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

    /// Decodes a complete conversation from these columns and from the columns that lists don't
    /// read.
    pub fn decode_conversation(
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
        let metadata = decode_json(|| format!("the metadata of conversation `{id}`"), metadata)?;
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

/// Returns the JSON form of a value. `what` is a name for the value, used in the error message.
pub fn encode_json<T: Serialize + ?Sized>(
    what: &'static str,
    value: &T,
) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|source| StoreError::Encoding { what, source })
}

/// Parses the JSON form written by [`encode_json`]. `what` is a name for the value, used in the
/// error message.
pub fn decode_json<T: DeserializeOwned>(
    what: impl FnOnce() -> String,
    text: &str,
) -> Result<T, DamagedRow> {
    serde_json::from_str(text)
        .map_err(|error| DamagedRow(format!("{} cannot be read: {error}", what())))
}

/// Encodes a time with all nine decimals, so that sorting the texts sorts the times.
pub fn encode_time(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// Parses a time encoded by [`encode_time`].
pub fn decode_time(text: &str) -> Result<Timestamp, DamagedRow> {
    text.parse()
        .map_err(|_| DamagedRow(format!("`{text}` is not a time")))
}

/// Converts a count from the signed integer in which databases store it. Fails if the count is
/// negative.
pub fn decode_count(count: i64) -> Result<u64, DamagedRow> {
    u64::try_from(count).map_err(|_| DamagedRow(format!("{count} is not a count")))
}

/// Parses a message id as stored in the database.
pub fn decode_message_id(text: &str) -> Result<MessageId, DamagedRow> {
    text.parse()
        .map_err(|_| DamagedRow(format!("`{text}` is not a message id")))
}

/// Converts a short id to a signed integer, the form in which databases store it.
pub fn encode_short_id(id: ShortId) -> i64 {
    i64::from(id.0)
}
