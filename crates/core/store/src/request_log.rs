//! The log of requests: what is given to it, and what is read back. How it is kept is in [`delta`]
//! and [`rows`].

pub(crate) mod delta;
pub(crate) mod rows;

use std::sync::Arc;

use haft_types::{Api, ContentHash, Layer, Message, Request, SentSegment, Timestamp, ToolSpec};
use serde::{Deserialize, Serialize};

/// A request that is being sent.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The model, as `provider/model`.
    pub model: String,
    /// The protocol it is sent in.
    pub api: Api,
    /// The request itself, shared so that logging copies nothing.
    pub request: Arc<Request>,
    /// What else its bytes depend on, as the encoder writes it; kept once for all requests that
    /// share it.
    pub encoding: Option<Arc<str>>,
    /// Why it is not an extension of the request before, as the context engine names it.
    pub cause: Option<String>,
}

/// One line of a conversation's request log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSummary {
    /// Its number within the conversation, from 1.
    pub number: u64,
    /// When it was sent.
    pub sent_at: Timestamp,
    /// The model, as `provider/model`.
    pub model: String,
    /// The protocol it was sent in.
    pub api: Api,
    /// How many of its segments are the first ones of the request before, unchanged.
    pub kept: usize,
    /// How many segments it has.
    pub segments: usize,
    /// Its estimated tokens.
    pub tokens: u64,
    /// Why it is not an extension of the request before, where that was said when it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A logged request without its texts: enough to compare and to add up.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestOutline {
    /// Its line in the log.
    pub summary: RequestSummary,
    /// The hash of the tools it offered.
    pub tools: ContentHash,
    /// What was said of its encoding when it was sent.
    pub encoding: Option<Arc<str>>,
    /// Its messages.
    pub segments: Vec<SentSegment>,
}

/// A logged request, whole again.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// Its line in the log.
    pub summary: RequestSummary,
    /// The messages it held.
    pub segments: Vec<LoggedSegment>,
    /// The tools it offered, in order.
    pub tools: Vec<ToolSpec>,
    /// The most the model was allowed to write.
    pub max_output_tokens: Option<u32>,
    /// The key that named the conversation to the provider's cache.
    pub cache_key: Option<String>,
    /// What was said of its encoding when it was sent.
    pub encoding: Option<Arc<str>>,
}

/// One message of a logged request.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedSegment {
    /// Its layer.
    pub layer: Layer,
    /// Who put it there.
    pub owner: String,
    /// What was sent. Of a message made by the engine, time and metadata are those of its first
    /// sending.
    pub message: Message,
    /// Its content hash.
    pub hash: ContentHash,
    /// Its estimated tokens.
    pub tokens: u32,
    /// Whether the provider should be able to find the prefix that ends here.
    pub boundary: bool,
}
