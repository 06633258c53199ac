//! A model's reply: in pieces while it arrives, and complete.

use std::time::Duration;

use haft_types::{Part, StopReason, Usage};

/// A piece of a reply, reported as soon as it arrives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Delta {
    /// A piece of the answer.
    Text(String),
    /// A piece of the reasoning.
    Thinking(String),
    /// The start of a tool call.
    CallStarted {
        /// The id of the call.
        id: String,
        /// The name of the tool.
        name: String,
    },
    /// A piece of a tool call's arguments.
    CallArguments {
        /// The id of the call.
        id: String,
        /// The new piece, as received.
        piece: String,
    },
    /// The end of a tool call, as announced by the wire protocol.
    CallFinished {
        /// The id of the call.
        id: String,
    },
    /// A failed attempt, which is repeated after the wait; everything received so far is void.
    Retry {
        /// The number of this retry, counted from 1.
        attempt: u32,
        /// The maximum number of retries, or `None` if there is no limit.
        limit: Option<u32>,
        /// The wait before this retry.
        delay_ms: u64,
        /// The error message of the failed attempt.
        reason: String,
        /// True if the provider may bill the failed attempt.
        billed: bool,
    },
    /// A rejected attempt, which is repeated at once without a field that the provider does not
    /// support. Later requests leave the field out, too.
    FieldOmitted {
        /// The name of the field in the request body.
        field: &'static str,
        /// The provider's error message.
        reason: String,
    },
}

/// A complete reply: the end of the message was received.
///
/// The arguments of its tool calls are the text as received, whether or not the text is valid JSON.
/// If `stop` is [`StopReason::Length`], the last part was truncated, and a tool call there must not
/// be run.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The content of the assistant message, in order.
    pub parts: Vec<Part>,
    /// The reason why the model stopped.
    pub stop: StopReason,
    /// The number of tokens used, as counted by the provider; all zero if the provider reported
    /// none.
    pub usage: Usage,
    /// The time between sending the request that got this reply and receiving the first piece of
    /// the reply. Earlier attempts are not included.
    pub time_to_first_token: Duration,
    /// The time between sending the request that got this reply and the end of the reply. Earlier
    /// attempts are not included.
    pub duration: Duration,
}
