//! A request as the model would understand it, the same whichever API carried it.
//!
//! Decoded with code of its own, never with the code that encodes: a mistake made twice the same
//! way would not show. What "the same" means: the system text; the tools by name, description and
//! schema; then one ordered list of (role, part). Wire messages of one role that follow each other
//! are one message; results are the tool's words, on every API; pictures inside a run of
//! results stand after it, where APIs without pictures in results must put them; calls are numbered
//! in order of appearance, and results name the number. Reasoning and signatures are kept but not
//! compared, since each provider carries its own.

use std::fmt;

use haft_types::{Api, ContentHash};
use serde::Deserialize;
use serde_json::Value;

mod anthropic;
mod builder;
mod compare;
mod gemini;
mod openai_chat;
mod openai_responses;
mod show;

use builder::Builder;

/// A decoded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The API that carried it.
    pub api: Api,
    /// The model asked.
    pub model: String,
    /// The instructions; several blocks are joined by an empty line.
    pub system: String,
    /// The tools offered.
    pub tools: Vec<SeenTool>,
    /// The conversation.
    pub messages: Vec<SeenMessage>,
    /// The most the model may write.
    pub max_output_tokens: Option<u64>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Where the request carries marks for the prefix cache, as paths such as
    /// `messages[3].content[0]`.
    pub cache_marks: Vec<String>,
}

/// A tool as offered.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// Its schema; null without parameters.
    pub parameters: Value,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenRole {
    /// Instructions in the middle of the conversation.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The tools.
    Tool,
}

impl fmt::Display for SeenRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        })
    }
}

/// Parts of one role that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenMessage {
    /// Who speaks.
    pub role: SeenRole,
    /// What is said.
    pub parts: Vec<SeenPart>,
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum SeenPart {
    /// Words.
    Text {
        /// The words.
        text: String,
        /// Whether a signature came with them.
        signed: bool,
    },
    /// Reasoning sent back.
    Thinking {
        /// Its readable part, empty where the API does not carry one.
        text: String,
        /// Whether a signature or encrypted content came with it.
        signed: bool,
    },
    /// A call by the model.
    ToolCall {
        /// Its number in the request, from 1.
        number: usize,
        /// Its id on the wire, if it had one.
        id: Option<String>,
        /// The tool.
        name: String,
        /// The parsed arguments; a string holding the raw text when it is not JSON.
        arguments: Value,
        /// Whether a signature came with it.
        signed: bool,
    },
    /// The result of a call.
    ToolResult {
        /// The number of the call it answers; none when there is no such call.
        number: Option<usize>,
        /// The call's id on the wire, if it had one.
        id: Option<String>,
        /// What the tool says.
        text: String,
        /// Whether it failed, where the API can say so.
        failed: Option<bool>,
    },
    /// A picture.
    Image {
        /// Such as `image/png`; empty for a picture given by address.
        media_type: String,
        /// The hash of its base64 text, or of its address.
        hash: ContentHash,
    },
    /// Anything else, by its type on the wire.
    Other {
        /// The type.
        kind: String,
    },
}

impl SeenPart {
    /// The words of a text or a result.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } | Self::ToolResult { text, .. } => Some(text),
            Self::Thinking { .. }
            | Self::ToolCall { .. }
            | Self::Image { .. }
            | Self::Other { .. } => None,
        }
    }
}

/// A body that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request body, at `{path}`: {what}")]
pub struct SeenError {
    /// Where, such as `messages[2].content`.
    pub path: String,
    /// What was expected.
    pub what: &'static str,
}

impl SeenError {
    fn new(path: impl Into<String>, what: &'static str) -> Self {
        Self {
            path: path.into(),
            what,
        }
    }
}

/// What the path of a request says; only Gemini puts it there.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FromPath<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) stream: bool,
}

impl Seen {
    /// Decodes a body.
    pub(crate) fn decode(
        api: Api,
        body: &Value,
        from_path: FromPath<'_>,
    ) -> Result<Self, SeenError> {
        match api {
            Api::OpenaiChat => openai_chat::decode(body),
            Api::OpenaiResponses => openai_responses::decode(body),
            Api::Anthropic => anthropic::decode(body),
            Api::Gemini => gemini::decode(body, from_path),
        }
    }

    /// The text under a heading of the instructions, such as `MCP_SERVER_LIST`, up to the next one.
    pub fn section(&self, heading: &str) -> Option<&str> {
        let (_, text) = self.system.split_once(&format!("\n# {heading}\n\n"))?;
        let end = ["\n\n# ", "\n\n===="]
            .iter()
            .filter_map(|next| text.find(next))
            .min();
        Some(&text[..end.unwrap_or(text.len())])
    }

    /// Every part with who says it, in order.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = (SeenRole, &SeenPart)> {
        self.messages
            .iter()
            .flat_map(|message| message.parts.iter().map(|part| (message.role, part)))
    }

    /// The number of assistant turns.
    pub fn assistant_turns(&self) -> usize {
        self.messages
            .iter()
            .filter(|message| message.role == SeenRole::Assistant)
            .count()
    }

    /// The number of tool results.
    pub fn tool_results(&self) -> usize {
        self.parts()
            .filter(|(_, part)| matches!(part, SeenPart::ToolResult { .. }))
            .count()
    }

    /// The text parts of one role, in order.
    pub fn texts(&self, role: SeenRole) -> Vec<&str> {
        self.parts()
            .filter(|(speaker, _)| *speaker == role)
            .filter_map(|(_, part)| part.text())
            .collect()
    }

    /// Whether a text or a result of the last message contains this.
    pub fn last_contains(&self, words: &str) -> bool {
        let said = |part: &SeenPart| part.text().is_some_and(|text| text.contains(words));
        self.messages
            .last()
            .is_some_and(|message| message.parts.iter().any(said))
    }
}

/// The list under `key`; an absent one is empty.
fn list<'a>(object: &'a Value, key: &str, path: &str) -> Result<&'a [Value], SeenError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(SeenError::new(join(path, key), "expected a list")),
    }
}

/// The text under `key`, which must be there.
fn text<'a>(object: &'a Value, key: &str, path: &str) -> Result<&'a str, SeenError> {
    object
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| SeenError::new(join(path, key), "expected a string"))
}

/// The text under `key`, or nothing.
fn maybe<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

fn owned(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Arguments carried as text.
fn parse_arguments(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_else(|_| Value::String(raw.to_owned()))
}

/// A picture given as an address, perhaps one that holds it.
fn image_at(url: &str) -> SeenPart {
    let inline = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => image(media_type, data),
        None => SeenPart::Image {
            media_type: String::new(),
            hash: ContentHash::of(url.as_bytes()),
        },
    }
}

fn image(media_type: &str, data: &str) -> SeenPart {
    SeenPart::Image {
        media_type: media_type.to_owned(),
        hash: ContentHash::of(data.as_bytes()),
    }
}

#[cfg(test)]
mod tests;
