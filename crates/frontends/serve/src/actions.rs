//! The interface between the pages and the program that opens sessions for them.

use futures::future::BoxFuture;
use haft_context::Quote;
#[cfg(feature = "lab")]
use haft_lab::{ModelSource, PolicyOutcome};
use haft_store::Conversation;
#[cfg(feature = "lab")]
use haft_types::ModelSpec;

use crate::PageError;

/// An asynchronous operation that a page calls.
pub type PageAction<I, O> =
    Box<dyn Fn(I) -> BoxFuture<'static, Result<O, PageError>> + Send + Sync>;

/// The operations that need a session.
pub struct InspectorActions {
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
