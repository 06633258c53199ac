//! Errors of a session that are caused neither by the model nor by a tool, and notices for the
//! user.

use haft_context::{ContextError, EditError};
use haft_store::StoreError;

/// An error that is caused neither by the model nor by a tool.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The conversation could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// An error that prevents an edit of the context.
#[derive(Debug, thiserror::Error)]
pub enum EditContextError {
    /// The edit cannot be applied to this conversation.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// No request can be built from the conversation.
    #[error(transparent)]
    Context(#[from] ContextError),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored edits cannot be parsed, usually because another version of haft wrote them.
    #[error("the stored edits of this conversation cannot be understood: {0}")]
    Unreadable(String),
    /// A summary would save nothing: the content that it must keep takes as much room as the
    /// messages that it would replace.
    #[error(
        "what must be kept of these messages takes as much room as they do; give a summary with `--text`"
    )]
    NotWorthIt,
}

/// A message for the user that was created before the turn began, or by a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The stable code by which programs recognize this kind of notice.
    pub code: &'static str,
    /// The sentence to show to the user.
    pub message: String,
    /// True if the notice reports a failure and is shown as an error.
    pub failed: bool,
}
