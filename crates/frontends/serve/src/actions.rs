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

/// An asynchronous operation that the program performs for a page, from an input `I` to an output
/// `O`.
pub type PageAction<I, O> =
    Box<dyn Fn(I) -> BoxFuture<'static, Result<O, PageError>> + Send + Sync>;

/// The operations for pages that need the request log or a session.
pub struct InspectorActions {
    /// Reads all requests of a conversation. Returns `None` if the conversation has none.
    pub timeline: PageAction<TimelineQuery, Option<RequestTimeline>>,
    /// Reads one request of a conversation. Returns `None` if there is no request with this number.
    pub request: PageAction<RequestQuery, Option<RequestDetails>>,
    /// Lists the messages of a conversation for the context editor.
    pub messages: PageAction<Conversation, EditableMessages>,
    /// Calculates the price of an edit, and makes the edit if [`EditQuery::keep`] is true.
    pub edit: PageAction<EditQuery, EditQuote>,
    /// Builds the request that the conversation would send next.
    pub next: PageAction<NextQuery, NextRequestDetails>,
    /// Replays a conversation under other policies, and compares the costs.
    #[cfg(feature = "lab")]
    pub compare: PageAction<CompareQuery, PolicyTable>,
}

/// Selects the conversation whose requests are drawn, and the style of the drawing.
pub struct TimelineQuery {
    pub conversation: Conversation,
    /// The prefix of the URLs that the drawing links to. The number of a request is appended to it.
    pub links: String,
    /// True if every column must be wide enough to be clicked.
    pub zoomed: bool,
}

/// All requests of a conversation, with a drawing of them.
pub struct RequestTimeline {
    /// A note for the user. Set if the requests were rebuilt from the messages of an imported
    /// conversation.
    pub note: Option<String>,
    /// The drawing of the timeline, as SVG.
    pub picture: String,
    /// The rows for the requests, oldest first.
    pub requests: Vec<TimelineRequest>,
}

/// The row for one request in a timeline.
pub struct TimelineRequest {
    /// The number of the request, starting at 1.
    pub number: u64,
    pub sent_at: Timestamp,
    pub model: String,
    /// The estimated number of tokens in the request.
    pub tokens: u64,
    /// The metadata of the reply to the request, if a reply is stored.
    pub reply: Option<LlmMetadata>,
    /// The break of the cached prefix that the request caused, or `None` if it extends the previous
    /// request.
    pub broken: Option<PrefixBreak>,
}

/// A break of the cached prefix. The tokens after the break are sent again at full price.
#[derive(Clone)]
pub struct PrefixBreak {
    /// The cause of the break, in the user's language.
    pub cause: String,
    /// The number of tokens that were sent again.
    pub tokens: u64,
    /// The extra cost in dollars, if the price of the model is known.
    pub cost: Option<f64>,
}

/// Selects one request of a conversation.
pub struct RequestQuery {
    pub conversation: Conversation,
    /// The number of the request, starting at 1.
    pub number: u64,
}

/// The details of one request, as its page shows them.
pub struct RequestDetails {
    /// A note for the user. Set if the request was rebuilt from the messages of an imported
    /// conversation.
    pub note: Option<String>,
    /// The number of requests in the whole conversation.
    pub requests: u64,
    /// The API of the provider that received the request.
    pub api: Api,
    pub request: TimelineRequest,
    /// The segments of the request, in the order in which they were sent.
    pub segments: Vec<SegmentDetails>,
    /// A text that describes the difference from the previous request, if there is a previous one.
    pub difference: Option<String>,
    /// The body as it was sent, if the request log contains it.
    pub body: Option<String>,
}

/// A segment of a request, as a page shows it. Secrets in its texts are masked.
pub struct SegmentDetails {
    /// The name of the context layer, in the user's language.
    pub layer: String,
    /// The owner of the segment, in the user's language.
    pub owner: String,
    /// The number of tokens in the segment.
    pub tokens: u32,
    /// True if the segment belongs to the prefix that is unchanged since the previous request.
    pub kept: bool,
    /// True if the provider's cache can match the prefix up to the end of this segment.
    pub boundary: bool,
    /// The beginning of the segment's text.
    pub opening: String,
    /// The complete text of the segment.
    pub text: String,
}

/// The messages of a conversation, as the context editor lists them.
pub struct EditableMessages {
    pub headings: Vec<&'static str>,
    /// One row for each message. The first cell contains the short id of the message.
    pub rows: Vec<Vec<String>>,
    /// The number of edits that are in effect.
    pub edits: usize,
}

/// Selects an edit of a conversation's context, and whether to make it or only to calculate its
/// price.
pub struct EditQuery {
    pub conversation: Conversation,
    pub edit: PageEdit,
    /// True to make the edit, false to only calculate its price.
    pub keep: bool,
}

/// An edit that the user submitted, with the short ids of the messages to which it applies.
pub enum PageEdit {
    /// Undoes the newest edit.
    Undo,
    /// Omits these messages from further requests.
    Drop(Vec<String>),
    /// Protects these messages from being pruned, compressed or archived.
    Pin(Vec<String>),
    /// Replaces the text of these messages with a note that contains their ids.
    Mask(Vec<String>),
    /// Reverses earlier edits of these messages, so that they are sent unchanged.
    Restore(Vec<String>),
    /// Sends a summary in place of a range of messages.
    Summarize {
        /// The short ids of the first and the last message, in the form `A..B`.
        range: String,
        /// The text of the summary, if the user wrote it.
        text: Option<String>,
        /// True if a model must write the summary.
        ask_model: bool,
    },
}

/// The description and the price of an edit.
pub struct EditQuote {
    /// The description of the edit and its price, in the user's language.
    pub text: String,
    /// The text of the summary, if the edit is a summary.
    pub summary: Option<String>,
    pub quote: Quote,
}

/// Selects the conversation whose next request is shown.
pub struct NextQuery {
    pub conversation: Conversation,
    /// The next prompt of the user. If `None`, a placeholder is used.
    pub input: Option<String>,
}

/// The details of the request that a conversation would send next.
pub struct NextRequestDetails {
    /// One row for each segment: its layer, owner, tokens and beginning.
    pub segments: Vec<[String; 4]>,
    /// The body of the request, as it would be sent.
    pub body: String,
}

/// Selects a conversation and the policies to compare for it.
#[cfg(feature = "lab")]
pub struct CompareQuery {
    pub conversation: Conversation,
    pub policies: Vec<String>,
}

/// The result of comparing several policies for one conversation.
#[cfg(feature = "lab")]
pub struct PolicyTable {
    pub title: String,
    pub outcomes: Vec<PolicyOutcome>,
    /// The cells of the table: one row for each policy, without the headings.
    pub rows: Vec<Vec<String>>,
    /// The model whose context window, cache and prices the comparison assumes.
    pub model: ModelSpec,
    /// The reason why `model` was chosen.
    pub source: ModelSource,
}
