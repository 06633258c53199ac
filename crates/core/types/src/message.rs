//! The API-independent message, in the JSON form that exports use.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::hash::{ContentHash, Hasher};
use crate::id::MessageId;
use crate::part::{Part, ToolCall, ToolResult};
use crate::price::Cost;
use crate::request::TokenCounter;
use crate::tool::Envelope;
use crate::usage::Usage;

/// The role of a message in the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The message contains system instructions.
    System,
    /// The message is from the user, or the engine added it in the user's place.
    User,
    /// The message is from the model.
    Assistant,
    /// The message is the result of one tool call, with the images that belong to the result.
    Tool,
    /// The message is a summary of archived rounds.
    Summary,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Summary => "summary",
        })
    }
}

/// Free-form metadata. The keys that haft itself uses are read by methods of [`Message`].
pub type Metadata = serde_json::Map<String, Value>;

/// The origin of a message with the role `user`. Only [`Origin::User`] opens a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// The message is the user's own input.
    #[default]
    User,
    /// The message is input that the user sent during a running round, of which it becomes part.
    Joined,
    /// The message was added by the engine: a nudge, a notice, or an instruction to continue.
    Engine,
    /// The message is from another agent.
    Agent,
}

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub message_id: MessageId,
    pub role: Role,
    /// The parts of the message. A single text part is serialized as a plain string.
    #[serde(serialize_with = "write_content", deserialize_with = "read_content")]
    pub content: Vec<Part>,
    pub created_at: Timestamp,
    #[serde(default)]
    pub metadata: Metadata,
    /// Metadata of the model call that produced the message; only on assistant messages. Boxed, so
    /// that other messages do not reserve space for the metadata.
    #[serde(default)]
    pub llm_metadata: Option<Box<LlmMetadata>>,
}

const ORIGIN_KEY: &str = "origin";
const IMPORTED_KEY: &str = "imported_calls";

impl Message {
    pub fn new(id: MessageId, role: Role, content: Vec<Part>, at: Timestamp) -> Self {
        Self {
            message_id: id,
            role,
            content,
            created_at: at,
            metadata: Metadata::new(),
            llm_metadata: None,
        }
    }

    /// Creates a message with one text part.
    pub fn from_text(id: MessageId, role: Role, text: impl Into<String>, at: Timestamp) -> Self {
        Self::new(id, role, vec![Part::from_text(text)], at)
    }

    /// Records `origin` in the message's metadata.
    #[must_use]
    pub fn with_origin(mut self, origin: Origin) -> Self {
        self.metadata.insert(
            ORIGIN_KEY.into(),
            serde_json::to_value(origin).unwrap_or_default(),
        );
        self
    }

    /// Records in the message's metadata that the message came with an import. The calls of such a
    /// message never run: no model asked for them here.
    #[must_use]
    pub fn marked_imported(mut self) -> Self {
        self.metadata.insert(IMPORTED_KEY.into(), true.into());
        self
    }

    /// Removes the mark of [`Self::marked_imported`].
    #[must_use]
    pub fn without_import_mark(mut self) -> Self {
        self.metadata.remove(IMPORTED_KEY);
        self
    }

    /// True if [`Self::marked_imported`] has marked the message.
    pub fn is_imported(&self) -> bool {
        self.metadata.contains_key(IMPORTED_KEY)
    }

    /// Returns the origin of a user message; [`Origin::User`] if none is recorded.
    pub fn origin(&self) -> Origin {
        self.metadata
            .get(ORIGIN_KEY)
            .and_then(|value| Origin::deserialize(value).ok())
            .unwrap_or_default()
    }

    /// True if the message is the user's own input, which opens a round.
    pub fn opens_round(&self) -> bool {
        self.role == Role::User && self.origin() == Origin::User
    }

    /// Returns the tool calls in the message, in order.
    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolCall(call) => Some(call),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolResult(_) | Part::Image(_) => None,
        })
    }

    /// Returns the tool results in the message, in order.
    pub fn tool_results(&self) -> impl Iterator<Item = &ToolResult> {
        self.content.iter().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result.as_ref()),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) => None,
        })
    }

    /// Returns the text of all text parts, joined without a separator.
    pub fn joined_text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                Part::Text { text, .. } => Some(text.as_str()),
                Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => {
                    None
                }
            })
            .collect()
    }

    /// Frees the memory that was reserved for the message but is not used.
    fn shrink_to_fit(&mut self) {
        shrink_map(&mut self.metadata);
        self.content.shrink_to_fit();
        for part in &mut self.content {
            if let Part::ToolResult(result) = part {
                let Envelope {
                    text,
                    data,
                    stats,
                    context,
                    ..
                } = &mut result.envelope;
                text.shrink_to_fit();
                [data, stats, context].into_iter().for_each(shrink_value);
            } else if let Part::Text { text, .. } = part {
                text.shrink_to_fit();
            }
        }
    }

    /// Returns the hash of the content that the model sees: the role, the parts, and the name of
    /// the model that wrote the message. The id and the time are not hashed.
    pub fn content_hash(&self) -> ContentHash {
        let mut hasher = Hasher::default();
        hasher.update(self.role.to_string().as_bytes());
        // Thinking is sent back only to the model that wrote it, so the model is part of the hash.
        let maker = self
            .llm_metadata
            .as_ref()
            .map_or("", |made| made.model_name.as_str());
        hasher.update(maker.as_bytes());
        for part in &self.content {
            match part {
                Part::Text { text, signature } => {
                    hasher.update(b"text").update(text.as_bytes());
                    hasher.update(signature.as_deref().unwrap_or_default().as_bytes());
                }
                Part::Thinking(thinking) => {
                    hasher.update(b"thinking").update(thinking.text.as_bytes());
                    hasher.update(thinking.signature.as_deref().unwrap_or_default().as_bytes());
                    hasher.update(thinking.raw.as_deref().unwrap_or_default().as_bytes());
                }
                Part::ToolCall(call) => {
                    hasher
                        .update(b"call")
                        .update(call.id.as_bytes())
                        .update(call.name.as_bytes());
                    hasher.update(call.arguments.as_bytes());
                    hasher.update(call.signature.as_deref().unwrap_or_default().as_bytes());
                }
                Part::ToolResult(result) => {
                    hasher
                        .update(b"result")
                        .update(result.tool_call_id.as_bytes())
                        .update(result.name.as_bytes());
                    hasher
                        .update(&[result.envelope.status as u8])
                        .update(result.envelope.text.as_bytes());
                }
                Part::Image(image) => {
                    hasher
                        .update(b"image")
                        .update(image.media_type.as_bytes())
                        .update(image.data.as_bytes());
                }
            }
        }
        hasher.finish()
    }
}

/// Metadata of the model call that produced an assistant message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LlmMetadata {
    /// The model as `provider/model`.
    pub model_name: String,
    /// The number of input tokens that were neither read from nor written to the cache.
    pub input_tokens: u64,
    /// The number of output tokens, including reasoning.
    pub output_tokens: u64,
    /// The number of input tokens read from the cache.
    pub cached_input_tokens: u64,
    /// The number of input tokens written to the cache.
    pub cache_write_tokens: u64,
    /// The number of output tokens that were used for reasoning.
    pub reasoning_tokens: u64,
    /// The cost of the fresh input in USD; absent without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_cost: Option<f64>,
    /// The cost of the output in USD; absent without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_cost: Option<f64>,
    /// The cost of the cached input in USD; absent without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_cost: Option<f64>,
    /// The cost of the cache writes in USD; absent without prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_cost: Option<f64>,
    /// The number of the round that the message belongs to, counting from 1.
    pub conversation_round: u32,
    /// The time from sending the request to the first token, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_to_first_token_ms: Option<u64>,
    /// The time from sending the request to the end of the reply, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl LlmMetadata {
    pub fn new(
        model_name: impl Into<String>,
        round: u32,
        usage: Usage,
        cost: Option<Cost>,
    ) -> Self {
        Self {
            model_name: model_name.into(),
            input_tokens: usage.input,
            output_tokens: usage.output,
            cached_input_tokens: usage.cached_input,
            cache_write_tokens: usage.cache_write,
            reasoning_tokens: usage.reasoning,
            input_cost: cost.map(|cost| cost.input),
            output_cost: cost.map(|cost| cost.output),
            cached_input_cost: cost.map(|cost| cost.cached_input),
            cache_write_cost: cost.map(|cost| cost.cache_write),
            conversation_round: round,
            time_to_first_token_ms: None,
            duration_ms: None,
        }
    }

    /// Returns the number of tokens in each class, as counted by the provider.
    pub fn usage(&self) -> Usage {
        Usage {
            input: self.input_tokens,
            cached_input: self.cached_input_tokens,
            cache_write: self.cache_write_tokens,
            output: self.output_tokens,
            reasoning: self.reasoning_tokens,
        }
    }
}

/// A message with its hash and its token count, which are computed only once.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    pub message: Message,
    /// The hash of the message's content; see [`Message::content_hash`].
    pub hash: ContentHash,
    /// The estimated number of tokens of the message, including its framing.
    pub tokens: u32,
}

impl Entry {
    /// Computes the hash and the token count of the message. Its unused memory is freed, because it
    /// is kept as long as its conversation.
    pub fn new(mut message: Message, counter: &dyn TokenCounter) -> Arc<Self> {
        message.shrink_to_fit();
        Arc::new(Self {
            hash: message.content_hash(),
            tokens: counter.count_message(&message),
            message,
        })
    }
}

/// Rebuilds the map to free its unused capacity: a map reserves space for many more keys than a
/// message has, and has no method to shrink.
fn shrink_map(map: &mut Metadata) {
    map.values_mut().for_each(shrink_value);
    *map = std::mem::take(map).into_iter().collect();
}

fn shrink_value(value: &mut Value) {
    match value {
        Value::Object(map) => shrink_map(map),
        Value::Array(values) => values.iter_mut().for_each(shrink_value),
        Value::String(text) => text.shrink_to_fit(),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn write_content<S: Serializer>(parts: &[Part], serializer: S) -> Result<S::Ok, S::Error> {
    match parts {
        [
            Part::Text {
                text,
                signature: None,
            },
        ] => serializer.serialize_str(text),
        parts => serializer.collect_seq(parts),
    }
}

fn read_content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Part>, D::Error> {
    struct Content;

    // A visitor rather than an untagged enum: the enum would buffer, and tool call arguments would
    // lose their exact bytes.
    impl<'de> Visitor<'de> for Content {
        type Value = Vec<Part>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string or a list of parts")
        }

        fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(vec![Part::from_text(text)])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
            let mut parts = Vec::with_capacity(seq.size_hint().unwrap_or(0));
            while let Some(part) = seq.next_element()? {
                parts.push(part);
            }
            Ok(parts)
        }
    }

    deserializer.deserialize_any(Content)
}

#[cfg(test)]
mod tests;
