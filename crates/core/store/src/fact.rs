//! Facts about messages that become known after a message was stored. Messages never change, so
//! each fact is a separate row.

use haft_types::{MessageId, Outcome};
use serde::{Deserialize, Serialize};

/// A fact about a stored message. Facts are stored separately, because messages are not changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Fact {
    /// A tool call in the message was started. If the call has no result, it may or may not have
    /// had an effect.
    ToolStarted {
        /// The assistant message that contains the call.
        message_id: MessageId,
        /// The id of the call.
        call_id: String,
    },
    /// A turn ended with this message.
    TurnEnded {
        /// The last message of the turn.
        message_id: MessageId,
        /// The outcome of the turn.
        outcome: Outcome,
    },
}

impl Fact {
    /// Returns the message that the fact is about.
    pub fn message_id(&self) -> MessageId {
        match self {
            Self::ToolStarted { message_id, .. } | Self::TurnEnded { message_id, .. } => {
                *message_id
            }
        }
    }
}
