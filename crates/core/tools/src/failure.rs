//! How an error becomes the envelope the model reads.

use std::fmt::{self, Display, Formatter};

use haft_tool::ToolOutput;
use haft_types::Envelope;

/// An error with a stable name for programs. Its `Display` is for the model: what, where, what to do.
pub(crate) trait Coded: Display {
    /// The stable name, such as `not_found`.
    fn code(&self) -> &'static str;
}

/// Why a call failed, ready to be shown.
#[derive(Debug)]
pub struct ToolFailure {
    code: &'static str,
    message: String,
}

impl Display for ToolFailure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Coded> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        Self { code: error.code(), message: error.to_string() }
    }
}

impl ToolFailure {
    /// A failure with no error type of its own.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<ToolFailure> for ToolOutput {
    fn from(failure: ToolFailure) -> Self {
        Envelope::failure(failure.code, failure.message).into()
    }
}
