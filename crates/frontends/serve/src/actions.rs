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

/// An asynchronous operation that a page calls.
pub type PageAction<I, O> =
    Box<dyn Fn(I) -> BoxFuture<'static, Result<O, PageError>> + Send + Sync>;

/// The operations that need the request log or a session.
pub struct InspectorActions {
    /// Reads all requests of a conversation, or returns `None` if it has none.
    pub timeline: PageAction<TimelineQuery, Option<RequestTimeline>>,
    /// Reads one request, or returns `None` if there is no such request.
    pub request: PageAction<RequestQuery, Option<RequestDetails>>,
    /// Lists the messages of a conversation for the editor.
    pub messages: PageAction<Conversation, EditableMessages>,
    /// Quotes the price of an edit, and makes the edit if requested.
    pub edit: PageAction<EditQuery, EditQuote>,
    /// Builds the request that would be sent next.
    pub next: PageAction<NextQuery, NextRequestDetails>,
    /// Replays a conversation under other policies.
    #[cfg(feature = "lab")]
    pub compare: PageAction<CompareQuery, PolicyTable>,
}

/// Selects the conversation whose requests are drawn, and how they are drawn.
pub struct TimelineQuery {
    pub conversation: Conversation,
    /// The URL prefix of a request's page, to which the request's number is appended.
    pub links: String,
    /// True if every column is wide enough to be clicked.
    pub zoomed: bool,
}

/// All requests of a conversation.
pub struct RequestTimeline {
    /// A note that the requests were rebuilt from the messages of an imported conversation.
    pub note: Option<String>,
    /// The drawing of the timeline, as SVG.
    pub picture: String,
    /// The requests, in order.
    pub requests: Vec<TimelineRequest>,
}

/// A request of a timeline.
pub struct TimelineRequest {
    /// The request's number, starting at 1.
    pub number: u64,
    pub sent_at: Timestamp,
    pub model: String,
    /// The estimated number of tokens.
    pub tokens: u64,
    /// The metadata of the reply to this request.
    pub reply: Option<LlmMetadata>,
    /// The break of the cached prefix that this request caused.
    pub broken: Option<PrefixBreak>,
}

/// A break of the cached prefix: the tokens after it are sent again at full price.
#[derive(Clone)]
pub struct PrefixBreak {
    /// The cause, in the user's language.
    pub cause: String,
    /// The number of tokens that were sent again.
    pub tokens: u64,
    /// The extra cost, in dollars.
    pub cost: Option<f64>,
}

/// Selects a request of a conversation.
pub struct RequestQuery {
    pub conversation: Conversation,
    /// The request's number, starting at 1.
    pub number: u64,
}

/// A request in detail.
pub struct RequestDetails {
    /// A note that the request was rebuilt from the messages of an imported conversation.
    pub note: Option<String>,
    /// The number of requests in the conversation.
    pub requests: u64,
    /// The API of the provider.
    pub api: Api,
    pub request: TimelineRequest,
    /// The segments of the request, in order.
    pub segments: Vec<SegmentDetails>,
    /// The difference to the previous request, as text.
    pub difference: Option<String>,
    /// The body as sent, if the request log has it.
    pub body: Option<String>,
}

/// A segment of a request. Secrets in its texts are masked.
pub struct SegmentDetails {
    /// The name of the context layer, in the user's language.
    pub layer: String,
    /// The owner of the segment, in the user's language.
    pub owner: String,
    /// The number of tokens.
    pub tokens: u32,
    /// True if the segment is part of the prefix that did not change.
    pub kept: bool,
    /// True if the provider's cache can match the prefix up to the end of this segment.
    pub boundary: bool,
    /// The beginning of the text.
    pub opening: String,
    /// The whole text.
    pub text: String,
}

/// The messages of a conversation as the editor lists them.
pub struct EditableMessages {
    /// The headings of the columns.
    pub headings: Vec<&'static str>,
    /// One row for each message; the first cell is its short id.
    pub rows: Vec<Vec<String>>,
    /// The number of edits that are in force.
    pub edits: usize,
}

/// An edit of a conversation's context.
pub struct EditQuery {
    pub conversation: Conversation,
    pub edit: PageEdit,
    /// If true, the edit is made; otherwise its price is only quoted.
    pub keep: bool,
}

/// An edit that the user submitted.
pub enum PageEdit {
    /// Undoes the newest edit.
    Undo,
    /// Stops sending these messages.
    Drop(Vec<String>),
    /// Never prunes, compresses or archives these messages.
    Pin(Vec<String>),
    /// Replaces the text of these messages with a note that gives their ids.
    Mask(Vec<String>),
    /// Sends these messages unchanged again.
    Restore(Vec<String>),
    /// Sends a summary in place of these messages.
    Summarize {
        /// The short ids of the first and the last message, as `A..B`.
        range: String,
        /// The summary, if the user wrote one.
        text: Option<String>,
        /// True if a model writes the summary.
        ask_model: bool,
    },
}

/// The price of an edit.
pub struct EditQuote {
    /// The description of the edit, in the user's language.
    pub text: String,
    /// The text of the summary, if the edit summarizes.
    pub summary: Option<String>,
    pub quote: Quote,
}

/// Selects the conversation whose next request is shown.
pub struct NextQuery {
    pub conversation: Conversation,
    /// The user's next prompt. Without one, a placeholder is used.
    pub input: Option<String>,
}

/// The request that would be sent next.
pub struct NextRequestDetails {
    /// The layer, owner, tokens and beginning of each segment.
    pub segments: Vec<[String; 4]>,
    /// The body of the request.
    pub body: String,
}

/// Selects the policies that are compared.
#[cfg(feature = "lab")]
pub struct CompareQuery {
    pub conversation: Conversation,
    /// The policies' names.
    pub policies: Vec<String>,
}

/// The outcomes of several policies for one conversation.
#[cfg(feature = "lab")]
pub struct PolicyTable {
    pub title: String,
    pub outcomes: Vec<PolicyOutcome>,
    /// The cells of the table, with one row for each policy.
    pub rows: Vec<Vec<String>>,
    /// The model whose context window, cache and prices are assumed.
    pub model: ModelSpec,
    /// The way in which the model was determined.
    pub source: ModelSource,
}
