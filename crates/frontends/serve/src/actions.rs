//! The interface between the pages and the program that opens sessions and reads the request log for
//! them.

use futures::future::BoxFuture;
use haft_context::Quote;
#[cfg(feature = "lab")]
use haft_lab::{ModelSource, PolicyOutcome};
use haft_store::Conversation;
#[cfg(feature = "lab")]
use haft_types::ModelSpec;
use haft_types::{Api, LlmMetadata, Timestamp};

use crate::PageError;

/// A function that works for a page.
pub type PageAction<I, O> =
    Box<dyn Fn(I) -> BoxFuture<'static, Result<O, PageError>> + Send + Sync>;

/// The functions that need the request log or a session.
pub struct InspectorActions {
    /// Reads all requests of a conversation, or returns `None` if it has none.
    pub timeline: PageAction<TimelineQuery, Option<RequestTimeline>>,
    /// Reads one request, or returns `None` if there is no such request.
    pub request: PageAction<RequestQuery, Option<RequestDetails>>,
    /// Lists the messages of a conversation for the editor.
    pub messages: PageAction<Conversation, EditableMessages>,
    /// Quotes the price of an edit, and makes it if that is asked for.
    pub edit: PageAction<EditQuery, EditQuote>,
    /// Builds the request that would be sent next.
    pub next: PageAction<NextQuery, NextRequestDetails>,
    /// Replays a conversation under other policies.
    #[cfg(feature = "lab")]
    pub compare: PageAction<CompareQuery, PolicyTable>,
}

/// The requests of a conversation, to be drawn.
pub struct TimelineQuery {
    /// The conversation.
    pub conversation: Conversation,
    /// The address of its requests, to which their numbers are appended.
    pub links: String,
    /// True if every column is wide enough to be clicked.
    pub zoomed: bool,
}

/// All requests of a conversation.
pub struct RequestTimeline {
    /// A note that the requests are not those that were sent.
    pub note: Option<String>,
    /// The picture, as SVG.
    pub picture: String,
    /// The requests, in order.
    pub requests: Vec<TimelineRequest>,
}

/// A request of a timeline.
pub struct TimelineRequest {
    /// The number, from 1.
    pub number: u64,
    /// The time it was sent.
    pub sent_at: Timestamp,
    /// The model it was sent to.
    pub model: String,
    /// Its tokens, as estimated.
    pub tokens: u64,
    /// The metadata of its reply.
    pub reply: Option<LlmMetadata>,
    /// The break of the cached prefix at this request.
    pub broken: Option<PrefixBreak>,
}

/// A break of the cached prefix.
#[derive(Clone)]
pub struct PrefixBreak {
    /// The cause, in the user's language.
    pub cause: String,
    /// Tokens sent again.
    pub tokens: u64,
    /// The extra cost, in dollars.
    pub cost: Option<f64>,
}

/// A request of a conversation.
pub struct RequestQuery {
    /// The conversation.
    pub conversation: Conversation,
    /// The number of the request, from 1.
    pub number: u64,
}

/// A request in detail.
pub struct RequestDetails {
    /// A note that the request is not the one that was sent.
    pub note: Option<String>,
    /// The number of requests of the conversation.
    pub requests: u64,
    /// The API it was sent over.
    pub api: Api,
    /// The request itself.
    pub request: TimelineRequest,
    /// Its segments, in order.
    pub segments: Vec<SegmentDetails>,
    /// The difference to the request before, as text.
    pub difference: Option<String>,
    /// The body as it was sent, if it is known.
    pub body: Option<String>,
}

/// A segment of a request, with texts in which secrets are masked.
pub struct SegmentDetails {
    /// The layer, in the user's language.
    pub layer: String,
    /// The owner, in the user's language.
    pub owner: String,
    /// Its tokens.
    pub tokens: u32,
    /// True if it is part of the unchanged prefix.
    pub kept: bool,
    /// True if the provider's cache can find the prefix up to here.
    pub boundary: bool,
    /// The beginning of its text.
    pub opening: String,
    /// Its whole text.
    pub text: String,
}

/// The messages of a conversation as the editor lists them.
pub struct EditableMessages {
    /// The headings of the columns.
    pub headings: Vec<&'static str>,
    /// One row for each message; the first cell is its short id.
    pub rows: Vec<Vec<String>>,
    /// The number of edits in force.
    pub edits: usize,
}

/// An edit of a conversation's context.
pub struct EditQuery {
    /// The conversation.
    pub conversation: Conversation,
    /// The edit.
    pub edit: PageEdit,
    /// True to make the edit, false to only quote its price.
    pub keep: bool,
}

/// An edit that a form asks for.
pub enum PageEdit {
    /// Undoes the newest edit.
    Undo,
    /// Stops sending these messages.
    Drop(Vec<String>),
    /// Never prunes, compresses or archives these messages.
    Pin(Vec<String>),
    /// Sends only the names of these messages.
    Mask(Vec<String>),
    /// Sends these messages as they are.
    Restore(Vec<String>),
    /// Sends a summary in place of these messages.
    Summarize {
        /// The first and the last message, as `A..B`.
        range: String,
        /// The text, if it is given.
        text: Option<String>,
        /// True to ask a model for the text.
        ask_model: bool,
    },
}

/// The price of an edit.
pub struct EditQuote {
    /// The description of the edit, in the user's language.
    pub text: String,
    /// The summary, if the edit is one.
    pub summary: Option<String>,
    /// The price.
    pub quote: Quote,
}

/// A request that would be sent next.
pub struct NextQuery {
    /// The conversation.
    pub conversation: Conversation,
    /// The user's next prompt; a placeholder stands for it when absent.
    pub input: Option<String>,
}

/// A request that was not sent.
pub struct NextRequestDetails {
    /// Layer, owner, tokens and beginning of each segment.
    pub segments: Vec<[String; 4]>,
    /// The body.
    pub body: String,
}

/// A comparison of policies.
#[cfg(feature = "lab")]
pub struct CompareQuery {
    /// The conversation.
    pub conversation: Conversation,
    /// The names of the policies.
    pub policies: Vec<String>,
}

/// The outcomes of policies over one conversation.
#[cfg(feature = "lab")]
pub struct PolicyTable {
    /// The title of the plot.
    pub title: String,
    /// The outcome of each policy.
    pub outcomes: Vec<PolicyOutcome>,
    /// The cells of the table, one row for each policy.
    pub rows: Vec<Vec<String>>,
    /// The model whose window, cache and prices are assumed.
    pub model: ModelSpec,
    /// The origin of the model.
    pub source: ModelSource,
}
