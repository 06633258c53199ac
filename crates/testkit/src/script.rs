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

/// The replies of a script, with the rule that chooses one for a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Replies {
    /// Chooses the first reply that applies and is not used up.
    Listed(Vec<Reply>),
    /// Chooses the reply whose index is the number of assistant turns in the request. No state is
    /// kept between requests.
    Turns(Vec<Reply>),
}

impl Replies {
    pub(crate) fn as_slice(&self) -> &[Reply] {
        match self {
            Self::Listed(replies) | Self::Turns(replies) => replies,
        }
    }
}

/// The only model in the server's list if a script names no model.
pub(crate) const DEFAULT_MODEL: &str = "scripted-model";

impl Script {
    /// Builds a script whose replies are used in order, or according to their conditions.
    pub fn replies(replies: impl IntoIterator<Item = Reply>) -> Result<Self, ScriptError> {
        Self::new(Replies::Listed(replies.into_iter().collect()))
    }

    /// Builds a script indexed by the number of assistant turns in the request: a client that was
    /// killed and repeats its request gets an equal reply, and a restarted server continues where
    /// the client is.
    pub fn turns(replies: impl IntoIterator<Item = Reply>) -> Result<Self, ScriptError> {
        Self::new(Replies::Turns(replies.into_iter().collect()))
    }

    /// Sets the models in the server's listings.
    #[must_use]
    pub fn with_models(mut self, models: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// Parses a script from YAML; `file` is its name in errors.
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

/// One reply of the model, with its scripted faults.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// The conditions under which the reply applies; always if absent.
    pub when: Option<When>,
    /// Maximum number of times the reply can be given. If absent: one without `when`, unlimited
    /// with `when`.
    pub times: Option<u32>,

    /// The text of the reply.
    pub text: Option<String>,
    /// The reasoning before the text.
    pub thinking: Option<String>,
    /// The signature of the reasoning: generated if absent, omitted if empty.
    pub signature: Option<String>,
    /// The tool calls after the text.
    pub tool_calls: Vec<ScriptCall>,
    /// The parts in explicit order, instead of the four fields above.
    pub parts: Vec<ReplyPart>,
    /// The reported token usage; estimated from sizes if absent.
    #[serde(deserialize_with = "load::deserialize_usage")]
    pub usage: Option<Usage>,
    /// The stop reason. If absent: `tool_use` with tool calls, `end_turn` without.
    pub stop: Option<Stop>,

    /// The size of the pieces in which the body is sent, in bytes.
    pub chunk_bytes: Option<usize>,
    /// The size of the pieces in which text and arguments are streamed, in characters.
    pub delta_chars: Option<usize>,
    /// The delay before the first byte of the reply, in milliseconds.
    pub delay_ms: u64,
    /// The delay between the events of a stream, in milliseconds.
    pub delta_delay_ms: u64,
    /// The gate that holds the body back, for scripts written in Rust.
    #[serde(skip)]
    pub hold: Option<Hold>,

    /// The HTTP status of an error reply.
    pub status: Option<u16>,
    /// The error of an error reply.
    pub error: Option<ScriptedError>,
    /// Seconds in the `retry-after` header.
    pub retry_after: Option<f64>,
    /// The number of events after which an error event replaces the rest of the stream.
    pub error_event_after: Option<usize>,
    /// The number of bytes of the body after which the connection is dropped.
    pub drop_after_bytes: Option<usize>,
    /// The bytes to send as the body, whatever the API.
    pub garbage: Option<Garbage>,
    /// True if the stream ends without its end-of-message event.
    pub omit_end: bool,
    /// A replacement of bytes in the body, to insert bytes that are not valid UTF-8.
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

    /// Creates a reply with these parts, in this order.
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

    /// Adds reasoning before the text.
    #[must_use]
    pub fn with_thinking(mut self, thinking: impl Into<String>) -> Self {
        self.thinking = Some(thinking.into());
        self
    }

    /// Sets the reported token usage.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Restricts the reply to requests that meet these conditions.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = Some(when);
        self
    }

    /// Sets how often the reply can be given.
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

    /// Streams the reply in single characters and holds the second half back until the gate opens.
    #[must_use]
    pub fn held_halfway_by(mut self, gate: &Gate) -> Self {
        self.delta_chars = Some(1);
        self.hold = Some(Hold::Middle(gate.clone()));
        self
    }

    /// Returns the reply's parts in order, from `parts` or from the single fields.
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
    /// The model called tools.
    ToolUse,
    /// The output limit was reached.
    Length,
    /// The provider declined to answer.
    Refusal,
}

/// Conditions on a request. The reply applies if all given conditions hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// A tool of this name is offered.
    pub tool_offered: Option<String>,
    /// The role of the last message.
    pub last_role: Option<SeenRole>,
    /// The last message contains this text.
    pub last_contains: Option<String>,
    /// The number of assistant turns in the request.
    pub assistant_messages: Option<usize>,
    /// The number of tool results in the request.
    pub tool_results: Option<usize>,
    /// The number of the request, from 1; rejected requests are not counted.
    pub request: Option<u64>,
    pub api: Option<Api>,
    pub model: Option<String>,
}

/// The text of a scripted error, optionally with the provider's type and code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedError {
    pub message: String,
    /// The provider's error type (`status` for Gemini); derived from the HTTP status if absent.
    pub kind: Option<String>,
    /// The provider's error code, if its error shape has one.
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

/// A replacement in the body of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replace {
    /// The text whose first occurrence in each event is replaced.
    pub find: String,
    /// The bytes that replace `find`.
    pub with: Vec<u8>,
}
