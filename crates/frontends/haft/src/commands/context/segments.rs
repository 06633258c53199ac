//! Views of requests as lists of segments, for requests that were sent and for the next request.

use haft_store::LoggedRequest;
use haft_text::Masker;
use haft_types::{Api, Layer, Message, Request, ToolSpec};
use serde_json::{Value, json};

use super::text::{full_message_text, message_opening};

/// A request to print, whether it was sent or would be sent next.
pub(super) struct RequestView<'a> {
    /// The request's number, or `None` if it was not sent.
    pub(super) number: Option<u64>,
    pub(super) model: String,
    pub(super) api: Api,
    pub(super) tokens: u64,
    pub(super) segments: Vec<SegmentView<'a>>,
    pub(super) tools: &'a [ToolSpec],
}

/// A segment of a request to print.
pub(super) struct SegmentView<'a> {
    pub(super) layer: Layer,
    pub(super) owner: &'a str,
    pub(super) message: &'a Message,
    pub(super) tokens: u32,
    pub(super) boundary: bool,
}

/// The amount of a message's text to include: its beginning, or all of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TextExtent {
    First,
    All,
}

impl<'a> RequestView<'a> {
    /// Creates the view of a request that was sent.
    pub(super) fn from_logged(logged: &'a LoggedRequest) -> Self {
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
    pub(super) fn from_next(request: &'a Request, model: String, api: Api) -> Self {
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
    pub(super) fn tool_tokens(&self) -> u64 {
        self.tokens.saturating_sub(
            self.segments
                .iter()
                .map(|segment| u64::from(segment.tokens))
                .sum(),
        )
    }

    /// Returns the request's name in headings.
    pub(super) fn title(&self) -> String {
        match self.number {
            Some(number) => text!("context-request-number", number),
            None => text!("context-next-request").to_owned(),
        }
    }
}

impl SegmentView<'_> {
    pub(super) fn to_json(&self, extent: TextExtent, masker: &Masker) -> Value {
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
