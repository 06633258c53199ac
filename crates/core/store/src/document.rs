//! The JSON document of a whole conversation, as used by exports.

use haft_types::{ConversationId, Message, Metadata, Timestamp};
use serde::{Deserialize, Serialize};

/// A whole conversation in the JSON form of exports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConversationDocument {
    /// The id of the conversation.
    pub id: ConversationId,
    /// The name of the conversation.
    pub name: String,
    /// A summary of the topic; may be empty.
    #[serde(default)]
    pub description: String,
    /// The time of creation.
    pub created_at: Timestamp,
    /// The time of creation or of the last append.
    pub updated_at: Timestamp,
    /// Arbitrary metadata of the conversation's creator.
    #[serde(default)]
    pub metadata: Metadata,
    /// The messages, in order.
    pub messages: Vec<Message>,
}

impl ConversationDocument {
    /// Marks every message with tool calls as imported. Calls that have a result are marked, too: a
    /// fork can begin before the result.
    pub(crate) fn with_marked_calls(self) -> Self {
        let mark = |message: Message| {
            if message.tool_calls().next().is_some() {
                message.marked_imported()
            } else {
                message
            }
        };
        Self {
            messages: self.messages.into_iter().map(mark).collect(),
            ..self
        }
    }
}
