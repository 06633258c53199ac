//! What the scripted model says: a list of replies, when each applies, and what goes wrong while it
//! is sent.
//!
//! A script is a YAML file or built in Rust. Invariant: a [`Script`] that exists has been checked,
//! so that serving it cannot fail for a reason that lies in the script.

use haft_types::{Api, Usage};
use serde::Deserialize;
use serde_json::Value;

use crate::seen::SeenRole;

mod gate;
mod load;
mod part;

pub use gate::{Gate, Hold};
pub use load::ScriptError;
pub(crate) use part::signature_or_made;
pub use part::{ReplyPart, ScriptCall};

/// A checked script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    pub(crate) replies: Replies,
    pub(crate) models: Vec<String>,
}

/// How replies are chosen.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Replies {
    /// The first that applies and is not used up.
    Listed(Vec<Reply>),
    /// By the number of assistant turns in the request: nothing is remembered between requests.
    Turns(Vec<Reply>),
}

impl Replies {
    pub(crate) fn all(&self) -> &[Reply] {
        match self {
            Self::Listed(replies) | Self::Turns(replies) => replies,
        }
    }
}

/// The model listed when a script names none.
pub(crate) const DEFAULT_MODEL: &str = "scripted-model";

impl Script {
    /// A script whose replies are taken in order, or as their conditions say.
    pub fn replies(replies: impl IntoIterator<Item = Reply>) -> Result<Self, ScriptError> {
        Self::checked(Replies::Listed(replies.into_iter().collect()))
    }

    /// A script indexed by the number of assistant turns in the request: a client that was killed
    /// and asks again gets the same reply, and a restarted server goes on where the client is.
    pub fn turns(replies: impl IntoIterator<Item = Reply>) -> Result<Self, ScriptError> {
        Self::checked(Replies::Turns(replies.into_iter().collect()))
    }

    /// The same script with these models in its listings.
    #[must_use]
    pub fn with_models(mut self, models: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// Reads a script from YAML text; `file` names it in errors.
    pub fn from_yaml(file: &str, text: &str) -> Result<Self, ScriptError> {
        load::from_yaml(file, text)
    }

    fn checked(replies: Replies) -> Result<Self, ScriptError> {
        for (index, reply) in replies.all().iter().enumerate() {
            load::check(reply, &replies).map_err(|problem| ScriptError::Reply {
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

/// One reply of the model, and what may go wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Reply {
    /// When it applies; always, when absent.
    pub when: Option<When>,
    /// How often it can be given: once when absent, without limit when absent and `when` is given.
    pub times: Option<u32>,

    /// The answer's text.
    pub text: Option<String>,
    /// The reasoning before it.
    pub thinking: Option<String>,
    /// The proof that goes with the reasoning; made up when absent, left out when empty.
    pub signature: Option<String>,
    /// The tools it calls, after the text.
    pub tool_calls: Vec<ScriptCall>,
    /// The parts in their own order, instead of the four above.
    pub parts: Vec<ReplyPart>,
    /// The tokens reported; estimated from sizes when absent.
    #[serde(deserialize_with = "load::usage")]
    pub usage: Option<Usage>,
    /// Why it stops; `tool_use` with calls and `end_turn` without, when absent.
    pub stop: Option<Stop>,

    /// The body is sent in pieces of this many bytes.
    pub chunk_bytes: Option<usize>,
    /// Text and arguments are streamed in pieces of this many characters.
    pub delta_chars: Option<usize>,
    /// Wait before the first byte of the reply.
    pub delay_ms: u64,
    /// Wait between the events of a stream.
    pub delta_delay_ms: u64,
    /// The gate that holds the body back, for scripts written in Rust.
    #[serde(skip)]
    pub hold: Option<Hold>,

    /// The HTTP status of an error reply.
    pub status: Option<u16>,
    /// What the error says.
    pub error: Option<ScriptedError>,
    /// Seconds a client is told to wait.
    pub retry_after: Option<f64>,
    /// An error event takes the place of everything after this many events.
    pub error_event_after: Option<usize>,
    /// The connection is dropped after this many bytes of the body.
    pub drop_after_bytes: Option<usize>,
    /// These bytes are the body, whatever the API.
    pub garbage: Option<Garbage>,
    /// The stream ends without its end-of-message event.
    pub omit_end: bool,
    /// Bytes of the body are replaced, to put in what no text can hold.
    pub replace: Option<Replace>,
}

impl Reply {
    /// A reply of this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: Some(text.into()),
            ..Self::default()
        }
    }

    /// An archive record in the form that haft accepts, with `text` in its first section.
    pub fn summary(text: &str) -> Self {
        Self::text(format!(
            "## Objectives & Status\n{text}\n\n## Technical Context\nA test project.\n\n\
             ## Completed Milestones\n- the rounds before – answered"
        ))
    }

    /// A reply that calls these tools.
    pub fn calls(calls: impl IntoIterator<Item = ScriptCall>) -> Self {
        Self {
            tool_calls: calls.into_iter().collect(),
            ..Self::default()
        }
    }

    /// A reply that calls one tool.
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::calls([ScriptCall::new(name, arguments)])
    }

    /// A reply of these parts, in this order.
    pub fn parts(parts: impl IntoIterator<Item = ReplyPart>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
            ..Self::default()
        }
    }

    /// An HTTP error.
    pub fn error(status: u16, message: impl Into<String>) -> Self {
        Self {
            status: Some(status),
            error: Some(ScriptedError::new(message)),
            ..Self::default()
        }
    }

    /// The same reply, with this text.
    #[must_use]
    pub fn with_text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// The same reply, with this reasoning before it.
    #[must_use]
    pub fn with_thinking(mut self, thinking: impl Into<String>) -> Self {
        self.thinking = Some(thinking.into());
        self
    }

    /// The same reply, reporting these tokens.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// The same reply, only when this applies.
    #[must_use]
    pub fn when(mut self, when: When) -> Self {
        self.when = Some(when);
        self
    }

    /// The same reply, given this often.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// The same reply, whose body is sent once the gate is open.
    #[must_use]
    pub fn held_by(mut self, gate: &Gate) -> Self {
        self.hold = Some(Hold::Start(gate.clone()));
        self
    }

    /// The same reply, streamed in single characters, whose second half is sent once the gate is
    /// open.
    #[must_use]
    pub fn held_halfway_by(mut self, gate: &Gate) -> Self {
        self.delta_chars = Some(1);
        self.hold = Some(Hold::Middle(gate.clone()));
        self
    }

    /// Its parts in order, however they were written.
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

/// Why a scripted reply stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The model is done.
    EndTurn,
    /// It waits for results.
    ToolUse,
    /// The output limit was reached.
    Length,
    /// The provider declines to answer.
    Refusal,
}

/// Conditions on a request; all that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct When {
    /// A tool of this name is offered.
    pub tool_offered: Option<String>,
    /// Who speaks last.
    pub last_role: Option<SeenRole>,
    /// The last message contains this text.
    pub last_contains: Option<String>,
    /// The number of assistant turns in the request.
    pub assistant_messages: Option<usize>,
    /// The number of tool results in the request.
    pub tool_results: Option<usize>,
    /// The number of the request, from 1; refused ones are not counted.
    pub request: Option<u64>,
    /// The wire protocol.
    pub api: Option<Api>,
    /// The model's name.
    pub model: Option<String>,
}

/// The text of a scripted error: a message, or a message with the provider's own words for its
/// kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScriptedError {
    /// What the error says.
    pub message: String,
    /// The provider's type (`status` for Gemini); follows from the HTTP status when absent.
    pub kind: Option<String>,
    /// The provider's code, where its shape has one.
    pub code: Option<String>,
}

impl ScriptedError {
    /// An error that says this.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }
}

/// A body that is not a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage {
    /// The bytes.
    pub body: Vec<u8>,
    /// Their declared type.
    pub content_type: String,
}

/// A replacement in the body of a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replace {
    /// The text whose first occurrence in each event is replaced.
    pub find: String,
    /// What takes its place.
    pub with: Vec<u8>,
}
