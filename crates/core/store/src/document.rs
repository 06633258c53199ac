//! A conversation as one JSON document: the export format.

use haft_types::{ConversationId, Message, Metadata, Timestamp};
use serde::{Deserialize, Serialize};

/// A whole conversation, in the JSON form that exports use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationDocument {
    /// Its id.
    pub id: ConversationId,
    /// Its name.
    pub name: String,
    /// What it is about.
    #[serde(default)]
    pub description: String,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was created or last appended to.
    pub updated_at: Timestamp,
    /// Free metadata.
    #[serde(default)]
    pub metadata: Metadata,
    /// Its messages, in order.
    pub messages: Vec<Message>,
}
