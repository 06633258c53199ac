//! The request log: the values that are written to it and read from it. [`delta`] and [`rows`]
//! implement its storage.

pub(crate) mod delta;
pub(crate) mod rows;
mod segment_list;

use std::sync::Arc;

use haft_types::{Api, ContentHash, Layer, Message, Request, Timestamp, ToolSpec};
use serde::{Deserialize, Serialize};

pub use segment_list::{ChunkMaximum, SegmentList, TokensByLayer};

/// A request to log. It is logged when it is sent, before the reply arrives.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The model, as `provider/model`.
    pub model: String,
    /// The wire protocol of the request.
    pub api: Api,
    /// The request, shared so that logging does not copy it.
    pub request: Arc<Request>,
    /// The encoder settings that determine the request's bytes, as the encoder serializes them. The
    /// store keeps equal settings only once.
    pub encoding: Option<Arc<str>>,
    /// The code of the context engine for the reason why the request does not extend the previous
    /// one.
    pub cause: Option<String>,
}

/// The summary of a logged request, for lists of requests.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestSummary {
    /// The number of the request within its conversation, counted from 1.
    pub number: u64,
    /// The time at which the request was sent.
    pub sent_at: Timestamp,
    /// The model, as `provider/model`.
    pub model: String,
    /// The wire protocol of the request.
    pub api: Api,
    /// The number of segments at the beginning that are equal to those of the previous request.
    pub kept: usize,
    /// The number of segments.
    pub segments: usize,
    /// The estimated number of tokens in the request.
    pub tokens: u64,
    /// The reason why the request does not extend the previous one; `None` if none was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
}

/// A logged request without its texts, sufficient for comparisons and sums.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestOutline {
    /// The request's entry in the log.
    pub summary: RequestSummary,
    /// The hash of the tools that were offered to the model.
    pub tools: ContentHash,
    /// The encoder settings, if they were recorded when the request was sent.
    pub encoding: Option<Arc<str>>,
    /// The messages of the request, without their content.
    pub segments: SegmentList,
}

/// A complete logged request.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRequest {
    /// The request's entry in the log.
    pub summary: RequestSummary,
    /// The messages of the request.
    pub segments: Vec<LoggedSegment>,
    /// The tools that were offered to the model, in order.
    pub tools: Vec<ToolSpec>,
    /// The maximum number of output tokens that the request allowed.
    pub max_output_tokens: Option<u32>,
    /// The key by which the provider's cache identified the conversation.
    pub cache_key: Option<String>,
    /// The encoder settings, if they were recorded when the request was sent.
    pub encoding: Option<Arc<str>>,
}

/// One message of a logged request.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedSegment {
    /// The layer of the context that the message belongs to.
    pub layer: Layer,
    /// The component that added the message to the request.
    pub owner: String,
    /// The message as sent. If the engine created the message, its time and metadata are those of
    /// its first request.
    pub message: Message,
    /// The content hash of the message.
    pub hash: ContentHash,
    /// The estimated number of tokens in the message.
    pub tokens: u32,
    /// True if the request asked the provider to cache the prefix that ends with this message.
    pub boundary: bool,
}
