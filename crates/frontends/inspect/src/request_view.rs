//! Views of requests as lists of segments, for requests that were sent and for the next request.

use haft_store::LoggedRequest;
use haft_text::Masker;
use haft_types::{Api, Layer, Message, Request, ToolSpec};
use serde_json::{Value, json};

use crate::message_text::{full_message_text, message_opening};

/// Returns the name of the request that would be sent next, in headings.
pub fn next_request_title() -> &'static str {
    text!("inspect-next-request")
}

/// A request to print, whether it was sent or would be sent next.
pub struct RequestView<'a> {
    /// The request's number, or `None` if it was not sent.
    pub number: Option<u64>,
    pub model: String,
    pub api: Api,
    pub tokens: u64,
    pub segments: Vec<SegmentView<'a>>,
    pub tools: &'a [ToolSpec],
}

/// A segment of a request to print.
pub struct SegmentView<'a> {
    pub layer: Layer,
    pub owner: &'a str,
    pub message: &'a Message,
    pub tokens: u32,
    pub boundary: bool,
}

/// The amount of a message's text to include: its beginning, or all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TextExtent {
    First,
    All,
}

impl<'a> RequestView<'a> {
    /// Creates the view of a request that was sent.
    pub fn from_logged(logged: &'a LoggedRequest) -> Self {
        let segment = |segment: &'a haft_store::LoggedSegment| SegmentView {
            layer: segment.layer,
            owner: &segment.owner,
            message: &segment.message,
            tokens: segment.tokens,
            boundary: segment.boundary,
        };
        Self {
            number: Some(logged.summary.number),
            model: logged.summary.model.clone(),
            api: logged.summary.api,
            tokens: logged.summary.tokens,
            segments: logged.segments.iter().map(segment).collect(),
            tools: &logged.tools,
        }
    }

    /// Creates the view of the request that would be sent next.
    pub fn from_next(request: &'a Request, model: String, api: Api) -> Self {
        let segment = |segment: &'a haft_types::Segment| SegmentView {
            layer: segment.layer,
            owner: segment.owner,
            message: &segment.entry.message,
            tokens: segment.entry.tokens,
            boundary: segment.boundary,
        };
        Self {
            number: None,
            model,
            api,
            tokens: request.estimated_tokens(),
            segments: request.segments.iter().map(segment).collect(),
            tools: &request.tools.specs,
        }
    }

    /// Returns the tokens in front of the segments: the tools, and the few tokens that each API
    /// adds.
    pub fn tool_tokens(&self) -> u64 {
        self.tokens.saturating_sub(
            self.segments
                .iter()
                .map(|segment| u64::from(segment.tokens))
                .sum(),
        )
    }

    /// Returns the request's name in headings.
    pub fn title(&self) -> String {
        match self.number {
            Some(number) => text!("inspect-request-number", number),
            None => next_request_title().to_owned(),
        }
    }
}

impl SegmentView<'_> {
    pub fn to_json(&self, extent: TextExtent, masker: &Masker) -> Value {
        let mut value = json!({
            "layer": self.layer,
            "owner": self.owner,
            "message_id": self.message.message_id,
            "role": self.message.role,
            "tokens": self.tokens,
            "boundary": self.boundary,
            "first_words": message_opening(self.message, masker),
        });
        if extent == TextExtent::All {
            value["text"] = full_message_text(self.message, masker).into();
        }
        value
    }
}
