//! What can go wrong in a session that is neither the model's nor a tool's doing, and what the user
//! has to know of it.

use haft_context::{ContextError, EditError};
use haft_store::StoreError;

/// Something went wrong that is not the model's or a tool's doing.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The conversation could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A context could not be edited.
#[derive(Debug, thiserror::Error)]
pub enum EditContextError {
    /// The edit makes no sense here.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// No request can be made of the conversation.
    #[error(transparent)]
    Context(#[from] ContextError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Edits were stored by another version.
    #[error("the stored edits of this conversation cannot be understood: {0}")]
    Unreadable(String),
    /// What a summary must keep takes as much room as what it would stand for.
    #[error(
        "what must be kept of these messages takes as much room as they do; give a summary with `--text`"
    )]
    NotWorthIt,
}

/// Something that happened before the session was opened; reported as an `error` event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// A stable name for programs.
    pub code: &'static str,
    /// The sentence for people.
    pub message: String,
    /// Whether something failed, so that it is told as an error.
    pub failed: bool,
}
