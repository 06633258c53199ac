//! The parts of a scripted reply.

use haft_types::ContentHash;
use serde::Deserialize;
use serde_json::Value;

/// One part of a reply.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "WrittenPart")]
pub enum ReplyPart {
    /// Words of the answer.
    Text {
        /// The words.
        text: String,
        /// Gemini's signature on them.
        signature: Option<String>,
    },
    /// Reasoning.
    Thinking {
        /// The readable part.
        text: String,
        /// The proof that goes with it; made up when absent, left out when empty.
        signature: Option<String>,
    },
    /// A call of a tool.
    ToolCall(ScriptCall),
}

impl ReplyPart {
    /// A text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            signature: None,
        }
    }

    /// A thinking part with a made-up signature.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::Thinking {
            text: text.into(),
            signature: None,
        }
    }
}

/// A part as a script writes it: one of three keys, and perhaps a signature.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenPart {
    text: Option<String>,
    thinking: Option<String>,
    tool_call: Option<ScriptCall>,
    signature: Option<String>,
}

impl TryFrom<WrittenPart> for ReplyPart {
    type Error = &'static str;

    fn try_from(part: WrittenPart) -> Result<Self, Self::Error> {
        match part {
            WrittenPart {
                text: Some(text),
                thinking: None,
                tool_call: None,
                signature,
            } => Ok(Self::Text { text, signature }),
            WrittenPart {
                text: None,
                thinking: Some(text),
                tool_call: None,
                signature,
            } => Ok(Self::Thinking { text, signature }),
            WrittenPart {
                text: None,
                thinking: None,
                tool_call: Some(call),
                signature: None,
            } => Ok(Self::ToolCall(call)),
            WrittenPart {
                tool_call: Some(_),
                signature: Some(_),
                ..
            } => Err("`signature` of a call belongs inside `tool_call`"),
            _ => Err("a part has exactly one of `text`, `thinking`, `tool_call`"),
        }
    }
}

/// A call of a tool by the scripted model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// Its id; made up when absent (Gemini: none is sent).
    #[serde(default)]
    pub id: Option<String>,
    /// The tool.
    pub name: String,
    /// An object, or a string that is sent as it stands: broken JSON, repeated keys, trailing
    /// words.
    #[serde(default)]
    pub arguments: Value,
    /// Gemini's signature on the call.
    #[serde(default)]
    pub signature: Option<String>,
}

impl ScriptCall {
    /// A call with a made-up id.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: None,
            name: name.into(),
            arguments,
            signature: None,
        }
    }

    /// The same call with this id.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// The arguments as the model writes them.
    pub(crate) fn arguments_text(&self) -> String {
        match &self.arguments {
            Value::String(raw) => raw.clone(),
            Value::Null => "{}".to_owned(),
            value @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                value.to_string()
            }
        }
    }
}

/// The signature to send with reasoning: the scripted one, a made-up one, or none when the script
/// says empty.
pub(crate) fn signature_or_made(scripted: Option<&str>, text: &str) -> Option<String> {
    match scripted {
        Some("") => None,
        Some(signature) => Some(signature.to_owned()),
        // Hex digits in a multiple of four are valid base64 too, which is what clients expect of
        // signatures.
        None => Some(ContentHash::of(text.as_bytes()).to_string()),
    }
}
