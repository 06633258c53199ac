//! The interface between the pages and the program that opens sessions for them.

use std::sync::Arc;

use futures::future::BoxFuture;
use haft_context::Quote;
#[cfg(feature = "lab")]
use haft_lab::{ModelSource, PolicyOutcome};
use haft_store::Conversation;
#[cfg(feature = "lab")]
use haft_types::ModelSpec;

use crate::PageError;
#[cfg(feature = "lab")]
use crate::computation::ComputationWatch;

/// An asynchronous operation that the program performs for a page, from an input `I` to an output
/// `O`.
pub type PageAction<I, O> =
    Arc<dyn Fn(I) -> BoxFuture<'static, Result<O, PageError>> + Send + Sync>;

/// The operations that need a session.
pub struct InspectorActions {
    /// Lists messages of a conversation for the editor.
    pub messages: PageAction<EditableQuery, EditableMessages>,
    /// Calculates the price of an edit, and makes the edit if [`EditQuery::keep`] is true.
    pub edit: PageAction<EditQuery, EditQuote>,
    /// Builds the request that the conversation would send next.
    pub next: PageAction<NextQuery, NextRequestDetails>,
    /// Replays a conversation under other policies, and compares the costs.
    #[cfg(feature = "lab")]
    pub compare: PageAction<CompareQuery, PolicyTable>,
}

/// Selects the messages of a conversation that a page of the editor lists.
pub struct EditableQuery {
    pub conversation: Conversation,
    /// The position of the first message.
    pub from: usize,
    /// The maximum number of messages.
    pub count: usize,
}

/// The messages of a conversation as the editor lists them.
pub struct EditableMessages {
    pub headings: Vec<&'static str>,
    /// One row for each message. The first cell contains the short id of the message.
    pub rows: Vec<Vec<String>>,
    /// The number of messages in the conversation.
    pub all: usize,
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
    /// The names of the policies. If empty, the default policies are compared.
    pub policies: Vec<String>,
    /// Receives the progress, and tells whether the result is still needed.
    pub watch: Arc<ComputationWatch>,
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
