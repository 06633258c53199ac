//! What becomes known of a message after it was stored. Messages never change, so each fact is a
//! row of its own.

use haft_types::{MessageId, Outcome};
use serde::{Deserialize, Serialize};

/// Something learnt about a stored message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Fact {
    /// A tool call of this message was begun. Without a result it is uncertain whether it had an
    /// effect.
    ToolStarted {
        /// The assistant message that holds the call.
        message_id: MessageId,
        /// The call.
        call_id: String,
    },
    /// The turn is over, and this was its last message.
    TurnEnded {
        /// The last message.
        message_id: MessageId,
        /// How it ended.
        outcome: Outcome,
    },
}

impl Fact {
    /// The message this is about.
    pub fn message_id(&self) -> MessageId {
        match self {
            Self::ToolStarted { message_id, .. } | Self::TurnEnded { message_id, .. } => {
                *message_id
            }
        }
    }
}
