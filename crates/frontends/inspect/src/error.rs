//! Errors of reading a request log.

use haft_agent::SetupError;
use haft_store::StoreError;

/// A request that can't be read.
#[derive(Debug, thiserror::Error)]
pub enum InspectError {
    #[error("{}", text!("inspect-unknown-request", number, id = conversation, requests))]
    UnknownRequest {
        number: u64,
        conversation: String,
        /// The number of requests in the log.
        requests: u64,
    },
    /// The request was rebuilt from messages. The text is in the user's language.
    #[error("{0}")]
    NoBody(String),
    /// The model of a request is not known. The cause repeats the text, so that a program finds
    /// its advice for it.
    #[error("{0}")]
    Model(#[from] SetupError),
    #[error("{0}")]
    Store(#[from] StoreError),
}

impl InspectError {
    /// True if the user can fix the error by choosing another request. The causes of other errors
    /// tell whether they can be fixed.
    pub fn is_usage_error(&self) -> bool {
        match self {
            Self::UnknownRequest { .. } | Self::NoBody(_) => true,
            Self::Model(_) | Self::Store(_) => false,
        }
    }
}
