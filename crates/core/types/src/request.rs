//! A request as a list of segments: what the context engine makes and the codecs encode.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{Display, IntoStaticStr};

use crate::hash::{ContentHash, Hasher};
use crate::id::MessageId;
use crate::message::{Entry, Message};
use crate::tool::ToolSpec;

/// The layers of a request, in their order.
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
    /// Instructions and tools.
    System,
    /// Rules and other documents, each with its acknowledgement.
    Documents,
    /// Summaries and messages of the conversation.
    History,
    /// Role, TODO list, useful information, folder notes.
    Reminders,
    /// The user's input that is being answered.
    Current,
}

impl Layer {
    /// All layers, in order.
    pub const ALL: [Self; 5] = [
        Self::System,
        Self::Documents,
        Self::History,
        Self::Reminders,
        Self::Current,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// One message of a request, shared with the history it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment {
    /// Its layer.
    pub layer: Layer,
    /// Who put it there, such as `system`, `history` or `reminder:todo`.
    pub owner: &'static str,
    /// The message with its hash and tokens.
    pub entry: Arc<Entry>,
    /// Whether the provider should be able to find the prefix that ends here.
    pub boundary: bool,
}

/// One message of a request that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentSegment {
    /// Its layer.
    pub layer: Layer,
    /// Who put it there.
    pub owner: Cow<'static, str>,
    /// The message.
    pub message: MessageId,
    /// The hash of what was sent of it.
    pub hash: ContentHash,
    /// Its estimated tokens.
    pub tokens: u32,
    /// Whether the cache was asked to remember the prefix that ends here.
    pub boundary: bool,
}

/// The tools offered, hashed and counted once.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSet {
    /// In the order they are sent.
    pub specs: Vec<ToolSpec>,
    /// The hash of all of them.
    pub hash: ContentHash,
    /// Their estimated tokens.
    pub tokens: u32,
    /// Tools the model may call although they are not sent: neither hashed nor counted.
    pub deferred: Vec<ToolSpec>,
}

impl ToolSet {
    /// Hashes and counts these tools.
    pub fn new(specs: Vec<ToolSpec>, counter: &dyn TokenCounter) -> Arc<Self> {
        let mut hasher = Hasher::default();
        let mut tokens = 0;
        for spec in &specs {
            let schema = spec.parameters.to_string();
            hasher
                .update(spec.name.as_bytes())
                .update(spec.description.as_bytes())
                .update(schema.as_bytes());
            tokens +=
                counter.text(&spec.name) + counter.text(&spec.description) + counter.text(&schema);
        }
        Arc::new(Self {
            specs,
            hash: hasher.finish(),
            tokens,
            deferred: Vec::new(),
        })
    }

    /// The same tools, and others that may be called although they are not sent.
    #[must_use]
    pub fn with_deferred(self: Arc<Self>, deferred: Vec<ToolSpec>) -> Arc<Self> {
        Arc::new(Self {
            deferred,
            ..Arc::unwrap_or_clone(self)
        })
    }

    /// The same tools where the system text describes them: nothing of them is sent beside it, so
    /// they cost nothing here.
    #[must_use]
    pub fn told_in_words(self: Arc<Self>) -> Arc<Self> {
        Arc::new(Self {
            tokens: 0,
            ..Arc::unwrap_or_clone(self)
        })
    }
}

/// The next thing to send to a model, in neutral form. Messages are in order; the first is the
/// system message.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The messages.
    pub segments: Vec<Segment>,
    /// The tools offered through the API's own field.
    pub tools: Arc<ToolSet>,
    /// The most the model may write.
    pub max_output_tokens: Option<u32>,
    /// Names the conversation to caches that route by key.
    pub cache_key: Option<String>,
}

impl Request {
    /// The few tokens each API adds for the request itself.
    pub const FRAME: u64 = 2;

    /// The estimated tokens of the whole request.
    pub fn tokens(&self) -> u64 {
        Self::FRAME
            + u64::from(self.tools.tokens)
            + self
                .segments
                .iter()
                .map(|segment| u64::from(segment.entry.tokens))
                .sum::<u64>()
    }
}

/// Counts tokens. `haft-model` implements it with a real tokenizer.
pub trait TokenCounter: Send + Sync {
    /// The tokens of a text.
    fn text(&self, text: &str) -> u32;

    /// The tokens of a message: its parts, and 4 for its framing.
    fn message(&self, message: &Message) -> u32 {
        use crate::part::Part;
        // A picture has no text; providers charge in this order of magnitude for a screenshot.
        const IMAGE: u32 = 1_500;
        let parts: u32 = message
            .content
            .iter()
            .map(|part| match part {
                Part::Text { text, .. } => self.text(text),
                // Signed or encrypted reasoning goes back as it came and is billed by its size.
                Part::Thinking(thinking) => match &thinking.raw {
                    Some(raw) => self.text(raw),
                    None => self.text(&thinking.text),
                },
                Part::ToolCall(call) => self.text(&call.name) + self.text(&call.arguments) + 8,
                Part::ToolResult(result) => self.text(&result.envelope.text) + 8,
                Part::Image(_) => IMAGE,
            })
            .sum();
        parts + 4
    }
}
