//! The parts of a scripted reply.

use haft_types::ContentHash;
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "WrittenPart")]
pub enum ReplyPart {
    /// A part of the reply's text.
    Text {
        text: String,
        /// Gemini's signature of the text.
        signature: Option<String>,
    },
    Thinking {
        /// The readable part of the reasoning.
        text: String,
        /// The signature of the reasoning: generated if absent, omitted if empty.
        signature: Option<String>,
    },
    ToolCall(ScriptCall),
}

impl ReplyPart {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            signature: None,
        }
    }

    /// Creates a thinking part with a generated signature.
    pub fn thinking(text: impl Into<String>) -> Self {
        Self::Thinking {
            text: text.into(),
            signature: None,
        }
    }
}

/// A part as written in a script: one of the three kinds, and an optional signature.
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

/// A tool call by the scripted model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptCall {
    /// The id of the call. If absent, an id is generated, except for Gemini clients, which get
    /// none.
    #[serde(default)]
    pub id: Option<String>,
    /// The name of the tool.
    pub name: String,
    /// The arguments: an object, or a string that is sent verbatim. A string allows broken JSON,
    /// repeated keys and trailing text.
    #[serde(default)]
    pub arguments: Value,
    /// Gemini's signature of the call.
    #[serde(default)]
    pub signature: Option<String>,
}

impl ScriptCall {
    /// Creates a call with a generated id.
    pub fn new(name: impl Into<String>, arguments: Value) -> Self {
        Self {
            id: None,
            name: name.into(),
            arguments,
            signature: None,
        }
    }

    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Returns the arguments as the text the model would write.
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

/// Returns the signature to send with reasoning: the one in the script, or a generated one if the
/// script has none. An empty signature in the script gives `None`.
pub(crate) fn signature_or_generated(scripted: Option<&str>, text: &str) -> Option<String> {
    match scripted {
        Some("") => None,
        Some(signature) => Some(signature.to_owned()),
        // A multiple of four hex digits is also valid base64, which clients expect of signatures.
        None => Some(ContentHash::from_content(text.as_bytes()).to_string()),
    }
}
