//! How an error becomes the envelope the model reads.

use std::fmt::{self, Display, Formatter};

use haft_tool::ToolOutput;
use haft_types::Envelope;

/// An error with a stable name for programs. Its `Display` is for the model: what, where, what to
/// do.
pub(crate) trait Coded: Display {
    /// The stable name, such as `not_found`.
    fn code(&self) -> &'static str;

    /// The path that leads nowhere, where that is the reason.
    fn missing(&self) -> Option<&str> {
        None
    }
}

/// Why a call failed, ready to be shown.
#[derive(Debug)]
pub struct ToolFailure {
    code: &'static str,
    message: String,
    /// The path that leads nowhere.
    missing: Option<String>,
}

impl Display for ToolFailure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl<E: Coded> From<E> for ToolFailure {
    fn from(error: E) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
            missing: error.missing().map(str::to_owned),
        }
    }
}

impl ToolFailure {
    /// A failure with no error type of its own.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            missing: None,
        }
    }

    /// The same with what `hint` has to say of a path that leads nowhere.
    pub(crate) fn with_hint(mut self, hint: impl FnOnce(&str) -> String) -> Self {
        if let Some(missing) = self.missing.take() {
            self.message.push_str(&hint(&missing));
        }
        self
    }
}

impl From<ToolFailure> for ToolOutput {
    fn from(failure: ToolFailure) -> Self {
        Envelope::failure(failure.code, failure.message).into()
    }
}
