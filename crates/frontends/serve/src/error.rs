//! The errors that pages report.

use std::error::Error;

use haft_inspect::InspectError;
use haft_store::StoreError;

/// The reason why a page cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// The store of conversations cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request log can't be read.
    #[error(transparent)]
    Log(#[from] InspectError),
    /// A thread that served the page ended without a result.
    #[error(transparent)]
    Thread(#[from] tokio::task::JoinError),
    /// An action of the program failed. The text is in the user's language and contains all causes.
    #[error("{0}")]
    Action(String),
}

impl PageError {
    /// Returns the error and its causes on one line, in the user's language. A cause is omitted if
    /// the text before it already contains it.
    pub(crate) fn to_one_line(&self) -> String {
        if let Self::Action(text) = self {
            return text.clone();
        }
        let mut line = String::new();
        let first: &(dyn Error + 'static) = self;
        let causes = std::iter::successors(Some(first), |error| (*error).source());
        for cause in causes {
            let cause: Vec<_> = cause
                .to_string()
                .lines()
                .map(crate::localize_text)
                .collect();
            let cause = cause.join("\n");
            if line.is_empty() {
                line = cause;
            } else if !line.contains(&cause) {
                line = text!("serve-cause", error = line, cause);
            }
        }
        line
    }
}
