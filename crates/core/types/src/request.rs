//! A request as a list of segments: the output of the context engine and the input of the codecs.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::hash::{ContentHash, Hasher};
use crate::id::MessageId;
use crate::message::{Entry, Message};
use crate::tool::ToolSpec;

/// A layer of a request; the variants are in the order of the layers.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    JsonSchema,
    IntoStaticStr,
    Display,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Layer {
    /// The layer of instructions and tools.
    System,
    /// The layer of rules and other documents, each followed by an acknowledgement.
    Documents,
    /// The layer of summaries and messages of the conversation.
    History,
    /// The layer of reminders: role, TODO list, useful information, folder notes.
    Reminders,
    /// The layer of the user's input that is being answered.
    Current,
}

impl Layer {
    /// All layers, in the order of a request.
    pub const ALL: [Self; 5] = [
        Self::System,
        Self::Documents,
        Self::History,
        Self::Reminders,
        Self::Current,
    ];

    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One message of a request, shared with the history it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    pub layer: Layer,
    /// The component that added the segment, such as `system`, `history` or `reminder:todo`.
    pub owner: &'static str,
    pub entry: Arc<Entry>,
    /// True if the provider's cache should store the prefix that ends with this segment.
    pub boundary: bool,
}

/// The record of one message that was part of a sent request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentSegment {
    pub layer: Layer,
    /// The component that added the segment.
    pub owner: Cow<'static, str>,
    pub message: MessageId,
    /// The hash of the content as it was sent.
    pub hash: ContentHash,
    /// The estimated number of tokens of the segment.
    pub tokens: u32,
    /// True if the request marked a cache boundary at the end of the segment.
    pub boundary: bool,
}

/// The tools offered to a model, with their hash and their token count, which are computed only
/// once.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSet {
    /// The specifications, in the order in which they are sent.
    pub specs: Vec<ToolSpec>,
    /// The hash of all specifications.
    pub hash: ContentHash,
    /// The estimated number of tokens of all specifications.
    pub tokens: u32,
    /// The tools that the model may call although their specifications are not sent. They are
    /// neither hashed nor counted.
    pub deferred: Vec<ToolSpec>,
}

impl ToolSet {
    /// Computes the hash and the token count of the tools.
    pub fn new(specs: Vec<ToolSpec>, counter: &dyn TokenCounter) -> Arc<Self> {
        let mut hasher = Hasher::default();
        let mut tokens = 0;
        for spec in &specs {
            let schema = spec.parameters.to_string();
            hasher
                .update(spec.name.as_bytes())
                .update(spec.description.as_bytes())
                .update(schema.as_bytes());
            tokens += counter.count_text(&spec.name)
                + counter.count_text(&spec.description)
                + counter.count_text(&schema);
        }
        Arc::new(Self {
            specs,
            hash: hasher.finish(),
            tokens,
            deferred: Vec::new(),
        })
    }

    /// Adds tools that the model may call although their specifications are not sent.
    #[must_use]
    pub fn with_deferred(self: Arc<Self>, deferred: Vec<ToolSpec>) -> Arc<Self> {
        Arc::new(Self {
            deferred,
            ..Arc::unwrap_or_clone(self)
        })
    }

    /// Sets the token count to zero, for tools that are described in the system prompt and
    /// therefore not sent separately.
    #[must_use]
    pub fn with_zero_tokens(self: Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            tokens: 0,
            ..Arc::unwrap_or_clone(self)
        })
    }
}

/// The next request to a model, independent of its API. The first message is the system message.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The messages, in order.
    pub segments: Vec<Segment>,
    /// The tools offered through the API's own field.
    pub tools: Arc<ToolSet>,
    /// The maximum number of tokens of the reply.
    pub max_output_tokens: Option<u32>,
    /// A key of the conversation, for providers whose caches route requests by key.
    pub cache_key: Option<String>,
}

impl Request {
    /// The estimated number of tokens that an API adds to every request, besides the messages and
    /// tools.
    pub const FRAME_TOKENS: u64 = 2;

    /// Returns the estimated number of tokens in the whole request.
    pub fn estimated_tokens(&self) -> u64 {
        Self::FRAME_TOKENS
            + u64::from(self.tools.tokens)
            + self
                .segments
                .iter()
                .map(|segment| u64::from(segment.entry.tokens))
                .sum::<u64>()
    }
}

/// Counts tokens. `haft-model` implements the trait with a real tokenizer.
pub trait TokenCounter: Send + Sync {
    fn count_text(&self, text: &str) -> u32;

    /// Returns the number of tokens in a message's parts, plus 4 for its framing.
    fn count_message(&self, message: &Message) -> u32 {
        use crate::part::Part;
        // An image has no text; providers charge about this much for a screenshot.
        const IMAGE_TOKENS: u32 = 1_500;
        let parts: u32 = message
            .content
            .iter()
            .map(|part| match part {
                Part::Text { text, .. } => self.count_text(text),
                // Signed or encrypted reasoning is sent back unchanged and is billed by its size.
                Part::Thinking(thinking) => match &thinking.raw {
                    Some(raw) => self.count_text(raw),
                    None => self.count_text(&thinking.text),
                },
                Part::ToolCall(call) => {
                    self.count_text(&call.name) + self.count_text(&call.arguments) + 8
                }
                Part::ToolResult(result) => self.count_text(&result.envelope.text) + 8,
                Part::Image(_) => IMAGE_TOKENS,
            })
            .sum();
        parts + 4
    }
}
