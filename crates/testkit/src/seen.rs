//! A request decoded into the form the model would understand, independent of the API.
//!
//! Requests are decoded by separate code, never by the code that encodes them: otherwise equal
//! mistakes would cancel out. Two requests are equivalent if they agree in the system text; the
//! tools by name, description and schema; and one ordered list of (role, part). Consecutive wire
//! messages of one role are merged; results have the role `Tool` on every API; images within a run
//! of results follow the run, since some APIs can't put images into results; calls are numbered in
//! order of appearance, and results refer to these numbers. Reasoning and signatures are kept but
//! not compared, because each provider has its own form of them.

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

/// The answer of the assistant to the message that states the working folder.
const PLACE_ACKNOWLEDGMENT: &str = "I will work there.";

#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// The API of the request.
    pub api: Api,
    pub model: String,
    /// The system prompt. If it consists of several blocks, they are joined by an empty line.
    pub system: String,
    pub tools: Vec<SeenTool>,
    pub messages: Vec<SeenMessage>,
    /// The maximum number of tokens in the reply.
    pub max_output_tokens: Option<u64>,
    /// True if the client asked for a streamed reply.
    pub stream: bool,
    /// The positions of the prefix-cache marks, as paths such as `messages[3].content[0]`.
    pub cache_marks: Vec<String>,
}

/// A tool offered to the model.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenTool {
    pub name: String,
    pub description: String,
    /// The parameter schema; null if the tool has no parameters.
    pub parameters: Value,
}

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeenRole {
    /// Instructions that are sent as a message in the middle of the conversation.
    System,
    User,
    Assistant,
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

/// Consecutive parts of a request that have one role.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenMessage {
    pub role: SeenRole,
    pub parts: Vec<SeenPart>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum SeenPart {
    Text {
        text: String,
        /// True if the text has a signature.
        signed: bool,
    },
    /// Reasoning that was sent back to the model.
    Thinking {
        /// The readable text of the reasoning. Empty if the API doesn't transmit it.
        text: String,
        /// True if the reasoning has a signature or encrypted content.
        signed: bool,
    },
    /// A tool call by the model.
    ToolCall {
        /// The position of the call among all calls in the request, counted from 1.
        number: usize,
        /// The id of the call in the request, if the API has ids.
        id: Option<String>,
        /// The name of the tool.
        name: String,
        /// The parsed arguments. If they aren't JSON, this is a string with the raw text.
        arguments: Value,
        /// True if the call has a signature.
        signed: bool,
    },
    /// The result of a tool call.
    ToolResult {
        /// The number of the call that the result answers; `None` if the request has no such call.
        number: Option<usize>,
        /// The id of the call as given with the result, if the API has ids.
        id: Option<String>,
        /// The text of the result.
        text: String,
        /// True if the tool failed; `None` if the API can't express failure.
        failed: Option<bool>,
    },
    Image {
        /// The media type, such as `image/png`; empty for an image given by URL.
        media_type: String,
        /// The hash of the base64 text, or of the URL.
        hash: ContentHash,
    },
    /// A part of a type that has no variant of its own.
    Other {
        /// The name of the type in the request.
        kind: String,
    },
}

impl SeenPart {
    /// Returns the text of a text part or a tool result.
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

/// The error for a request body that could not be decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("request body, at `{path}`: {what}")]
pub struct SeenError {
    /// The position in the body, such as `messages[2].content`.
    pub path: String,
    /// The violated expectation, such as "expected a list".
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

/// The request properties that Gemini, unlike the other APIs, puts in the path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FromPath<'a> {
    pub(crate) model: Option<&'a str>,
    pub(crate) stream: bool,
}

impl Seen {
    /// Decodes the body of a request to `api`.
    pub(crate) fn decode(
        api: Api,
        body: &Value,
        from_path: FromPath<'_>,
    ) -> Result<Self, SeenError> {
        match api {
            Api::OpenaiChat => openai_chat::decode_request(body),
            Api::OpenaiResponses => openai_responses::decode_request(body),
            Api::Anthropic => anthropic::decode_request(body),
            Api::Gemini => gemini::decode_request(body, from_path),
        }
    }

    /// Returns the text below a heading of the system prompt, such as `MCP_SERVER_LIST`, up to the
    /// next heading.
    pub fn prompt_section(&self, heading: &str) -> Option<&str> {
        let (_, text) = self.system.split_once(&format!("\n# {heading}\n\n"))?;
        let end = ["\n\n# ", "\n\n===="]
            .iter()
            .filter_map(|next| text.find(next))
            .min();
        Some(&text[..end.unwrap_or(text.len())])
    }

    /// Iterates over the parts of all messages in order, each with its role.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = (SeenRole, &SeenPart)> {
        self.messages
            .iter()
            .flat_map(|message| message.parts.iter().map(|part| (message.role, part)))
    }

    /// Counts the messages of the assistant, except the acknowledgment of the working folder, which
    /// haft adds to every request.
    pub fn count_assistant_turns(&self) -> usize {
        self.messages
            .iter()
            .filter(|message| message.role == SeenRole::Assistant)
            .filter(|message| {
                let [part] = message.parts.as_slice() else {
                    return true;
                };
                part.text() != Some(PLACE_ACKNOWLEDGMENT)
            })
            .count()
    }

    pub fn count_tool_results(&self) -> usize {
        self.parts()
            .filter(|(_, part)| matches!(part, SeenPart::ToolResult { .. }))
            .count()
    }

    /// Returns the texts of all text parts and tool results in messages of this role, in order.
    pub fn texts(&self, role: SeenRole) -> Vec<&str> {
        self.parts()
            .filter(|(speaker, _)| *speaker == role)
            .filter_map(|(_, part)| part.text())
            .collect()
    }

    /// True if a text part or a tool result in the last message contains `words`.
    pub fn last_message_contains(&self, words: &str) -> bool {
        let said = |part: &SeenPart| part.text().is_some_and(|text| text.contains(words));
        self.messages
            .last()
            .is_some_and(|message| message.parts.iter().any(said))
    }
}

/// Returns the array at `key`. An absent array counts as empty.
fn array_field<'a>(object: &'a Value, key: &str, path: &str) -> Result<&'a [Value], SeenError> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(SeenError::new(join_path(path, key), "expected a list")),
    }
}

/// Returns the required string at `key`.
fn string_field<'a>(object: &'a Value, key: &str, path: &str) -> Result<&'a str, SeenError> {
    object
        .get(key)
        .and_then(Value::as_str)
        .ok_or_else(|| SeenError::new(join_path(path, key), "expected a string"))
}

/// Returns the string at `key`; `None` if there is none.
fn optional_string<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object.get(key).and_then(Value::as_str)
}

fn owned_or_empty(text: Option<&str>) -> String {
    text.unwrap_or_default().to_owned()
}

fn join_path(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

/// Parses arguments that are sent as text. If they aren't JSON, returns the text as a string.
fn parse_arguments(raw: &str) -> Value {
    serde_json::from_str(raw).unwrap_or_else(|_| Value::String(raw.to_owned()))
}

/// Returns the image at a URL, which may be a `data:` URL.
fn image_from_url(url: &str) -> SeenPart {
    let inline = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"));
    match inline {
        Some((media_type, data)) => image_from_base64(media_type, data),
        None => SeenPart::Image {
            media_type: String::new(),
            hash: ContentHash::from_content(url.as_bytes()),
        },
    }
}

fn image_from_base64(media_type: &str, data: &str) -> SeenPart {
    SeenPart::Image {
        media_type: media_type.to_owned(),
        hash: ContentHash::from_content(data.as_bytes()),
    }
}

#[cfg(test)]
mod tests;
