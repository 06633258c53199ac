//! Scripts for the scripted model: a list of replies, the conditions under which each reply
//! applies, and the faults of its transmission.
//!
//! A script is a YAML file or is built in Rust. Invariant: every [`Script`] has been checked, so
//! that serving it cannot fail because of the script.

use haft_types::{Api, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::seen::SeenRole;

mod gate;
mod load;
mod part;

pub use gate::{Gate, Hold};
pub use load::ScriptError;
pub(crate) use part::signature_or_generated;
pub use part::{ReplyPart, ScriptCall};

#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(crate) replies: Replies,
    pub(crate) models: Vec<String>,
}

/// The replies of a script, and the way in which a reply is chosen for a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Replies {
    /// The reply for a request is the first one whose conditions hold and that is not used up.
    Listed(Vec<Reply>),
    /// The reply for a request is the one whose index is the number of assistant turns in the
    /// request. No state is kept between requests.
    Turns(Vec<Reply>),
}

impl Replies {
    pub(crate) fn as_slice(&self) -> &[Reply] {
        match self {
            Self::Listed(replies) | Self::Turns(replies) => replies,
        }
    }
}

/// The only model that the server lists if the script names no model.
pub(crate) const DEFAULT_MODEL: &str = "scripted-model";

impl Script {
    /// Builds a script whose replies are used in order, unless their conditions determine another
    /// order.
    pub fn replies(replies: impl IntoIterator<Item = Reply>) -> Result<Self, ScriptError> {
        Self::new(Replies::Listed(replies.into_iter().collect()))
    }

    /// Builds a script in which the number of assistant turns in a request is the index of its
    /// reply. A client that was killed and repeats its request gets an equal reply, and a restarted
    /// server continues where the client is.
    pub fn turns(replies: impl IntoIterator<Item = Reply>) -> Result<Self, ScriptError> {
        Self::new(Replies::Turns(replies.into_iter().collect()))
    }

    /// Sets the models that the server lists.
    #[must_use]
    pub fn with_models(mut self, models: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// Parses a script from YAML. `file` is the name of the script in errors.
    pub fn from_yaml(file: &str, text: &str) -> Result<Self, ScriptError> {
        load::from_yaml(file, text)
    }

    fn new(replies: Replies) -> Result<Self, ScriptError> {
        for (index, reply) in replies.as_slice().iter().enumerate() {
            load::check_reply(reply, &replies).map_err(|problem| ScriptError::Reply {
                number: index + 1,
                field: problem.field,
                what: problem.what,
            })?;
        }
        Ok(Self {
            replies,
            models: vec![DEFAULT_MODEL.to_owned()],
        })
    }
}

/// One reply of the scripted model, including deliberate faults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// The conditions under which the reply applies; if absent, it always applies.
    pub when: Option<When>,
    /// The number of times that the reply can be given. The default is one if `when` is absent, and
    /// unlimited otherwise.
    pub times: Option<u32>,

    /// The text of the reply.
    pub text: Option<String>,
    /// The reasoning, which comes before the text.
    pub thinking: Option<String>,
    /// The signature of the reasoning: generated if absent, omitted if empty.
    pub signature: Option<String>,
    /// The tool calls, which come after the text.
    pub tool_calls: Vec<ScriptCall>,
    /// The parts of the reply in any order. They replace the fields `text`, `thinking`, `signature`
    /// and `tool_calls`.
    pub parts: Vec<ReplyPart>,
    /// The token usage that the reply reports. By default, it is estimated from sizes.
    #[serde(deserialize_with = "load::deserialize_usage")]
    pub usage: Option<Usage>,
    /// The reported stop reason. The default is `tool_use` for a reply with tool calls and
    /// `end_turn` for any other.
    pub stop: Option<Stop>,

    /// The size in bytes of the pieces in which the body is sent.
    pub chunk_bytes: Option<usize>,
    /// The size in characters of the pieces in which text and arguments are streamed.
    pub delta_chars: Option<usize>,
    /// The delay before the first byte of the reply, in milliseconds.
    pub delay_ms: u64,
    /// The delay between the events of a stream, in milliseconds.
    pub delta_delay_ms: u64,
    /// The gate that holds the body back. Available only in scripts written in Rust.
    #[serde(skip)]
    pub hold: Option<Hold>,

    /// The HTTP status of an error reply.
    pub status: Option<u16>,
    /// The message, type and code of an error reply.
    pub error: Option<ScriptedError>,
    /// The value of the `retry-after` header in seconds.
    pub retry_after: Option<f64>,
    /// The number of events after which the stream is replaced by an error event.
    pub error_event_after: Option<usize>,
    /// The number of bytes of the body after which the connection is dropped.
    pub drop_after_bytes: Option<usize>,
    /// The bytes that are sent as the body, regardless of the API.
    pub garbage: Option<Garbage>,
    /// True if the stream ends without its end-of-message event.
    pub omit_end: bool,
    /// A replacement of a text in the body by bytes that may be invalid UTF-8.
    pub replace: Option<Replace>,
}

impl Reply {
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// Creates a summary in the form that haft accepts, with `text` in its first section.
    pub fn summary(text: &str) -> Self {
        Self::text(format!(
            "## Objectives & Status\n{text}\n\n## Technical Context\nA test project.\n\n\
             ## Completed Milestones\n- the rounds before – answered"
        ))
    }

    /// Creates a reply with tool calls.
    pub fn calls(calls: impl IntoIterator<Item = ScriptCall>) -> Self {
        Self {
            tool_calls: calls.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Creates a reply with one tool call.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::calls([ScriptCall::new(name, arguments)])
    }

    /// Creates a reply that consists of these parts, in this order.
    pub fn parts(parts: impl IntoIterator<Item = ReplyPart>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
            ..Self::default()
        }
    }

    /// Creates a reply that is an HTTP error.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        Self {
            status: Some(status),
            error: Some(ScriptedError::new(message)),
            ..Self::default()
        }
    }

    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Adds reasoning, which is sent before the text.
    #[must_use]
    pub fn with_thinking(mut self, thinking: impl Into<String>) -> Self {
        self.thinking = Some(thinking.into());
        self
    }

    /// Sets the token usage that the reply reports.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Restricts the reply to requests that meet the conditions `when`.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = Some(when);
        self
    }

    /// Sets the number of times that the reply can be given.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// Holds the whole body back until the gate opens.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.hold = Some(Hold::Start(gate.clone()));
        self
    }

    /// Streams the reply in single characters, and holds the second half back until the gate opens.
    #[must_use]
    pub fn held_halfway_by(mut self, gate: &Gate) -> Self {
        self.delta_chars = Some(1);
        self.hold = Some(Hold::Middle(gate.clone()));
        self
    }

    /// Returns the parts of the reply in order: those in `parts`, or those made from the single
    /// fields.
    pub(crate) fn ordered_parts(&self) -> Vec<ReplyPart> {
        if !self.parts.is_empty() {
            return self.parts.clone();
        }
        let thinking = self.thinking.as_ref().map(|text| ReplyPart::Thinking {
            text: text.clone(),
            signature: self.signature.clone(),
        });
        let text = self.text.as_ref().map(|text| ReplyPart::Text {
            text: text.clone(),
            signature: None,
        });
        let calls = self.tool_calls.iter().cloned().map(ReplyPart::ToolCall);
        thinking.into_iter().chain(text).chain(calls).collect()
    }
}

/// The stop reason of a scripted reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    EndTurn,
    /// The model stopped to have its tool calls run.
    ToolUse,
    /// The output limit was reached.
    Length,
    /// The provider declined to answer.
    Refusal,
}

/// Conditions on a request. A reply with conditions applies only if all conditions that are set
/// hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// The name of a tool that must be offered.
    pub tool_offered: Option<String>,
    /// The role that the last message must have.
    pub last_role: Option<SeenRole>,
    /// A text that the last message must contain.
    pub last_contains: Option<String>,
    /// The number of assistant turns that the request must have.
    pub assistant_messages: Option<usize>,
    /// The number of tool results that the request must have.
    pub tool_results: Option<usize>,
    /// The number that the request must have, counted from 1. Rejected requests are not counted.
    pub request: Option<u64>,
    pub api: Option<Api>,
    pub model: Option<String>,
}

/// The text of a scripted error, optionally with the provider's type and code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedError {
    pub message: String,
    /// The provider's error type (`status` for Gemini). By default, it is derived from the HTTP
    /// status.
    pub kind: Option<String>,
    /// The provider's error code, for providers whose errors have one.
    pub code: Option<String>,
}

impl ScriptedError {
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

/// A response body that is not a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage {
    pub body: Vec<u8>,
    /// The value of the `content-type` header.
    pub content_type: String,
}

/// A replacement of a text by bytes in the body of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replace {
    /// The text to replace. Its first occurrence in each event is replaced.
    pub find: String,
    /// The bytes that replace `find`.
    pub with: Vec<u8>,
}
