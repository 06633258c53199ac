//! What a model says: piece by piece, and whole.

use std::time::Duration;

use haft_types::{Part, StopReason, Usage};

/// A piece of a reply, as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// Words of the answer.
    Text(String),
    /// Words of the reasoning.
    Thinking(String),
    /// The model named a tool.
    CallStarted {
        /// The call's id.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// A piece of a call's arguments.
    CallArguments {
        /// The call's id.
        id: String,
        /// The new piece, as received.
        piece: String,
    },
    /// The protocol closed the call.
    CallFinished {
        /// The call's id.
        id: String,
    },
    /// The request failed and is sent again after the wait. Everything received before is void.
    Retry {
        /// Which retry this is, from 1.
        attempt: u32,
        /// How many there may be; `None` without limit.
        limit: Option<u32>,
        /// The wait before it.
        delay_ms: u64,
        /// What went wrong.
        reason: String,
        /// Whether the provider may bill the try that failed.
        billed: bool,
    },
}

/// A whole reply: its message was ended by the protocol.
///
/// The arguments of its tool calls are the text received, whether it parses or not. When `stop` is
/// [`StopReason::Length`] the last part was cut, and a call there must not be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// What the assistant message holds, in order.
    pub parts: Vec<Part>,
    /// Why the model stopped.
    pub stop: StopReason,
    /// What it cost, as the provider counted; all zero where it did not.
    pub usage: Usage,
    /// From sending the request that was answered to its first piece.
    pub time_to_first_token: Duration,
    /// From sending the request that was answered to the end of the reply.
    pub duration: Duration,
}
