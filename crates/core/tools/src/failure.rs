//! Converts errors of tools to the envelope that the model reads.

use std::fmt::{self, Display, Formatter};

use haft_tool::ToolOutput;
use haft_types::Envelope;
use serde_json::Value;

/// An error with a stable code for programs. Its `Display` text is for the model: what happened,
/// where, and what to do.
pub(crate) trait Coded: Display {
    /// Returns the stable code, such as `not_found`.
    fn code(&self) -> &'static str;

    /// Returns the path that does not exist, if a missing path is the reason for the error.
    fn missing_path(&self) -> Option<&str> {
        None
    }
}

/// A failed call, with an error code and a message for the model.
#[derive(Debug)]
pub struct ToolFailure {
    code: &'static str,
    message: String,
    /// The path that does not exist, if a missing path is the reason for the failure.
    missing: Option<String>,
    /// Data that the engine stores with the result, such as the state of a file that the message
    /// contains. Boxed, because failures are returned by value.
    context: Option<Box<Value>>,
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
            missing: error.missing_path().map(str::to_owned),
            context: None,
        }
    }
}

impl ToolFailure {
    /// Creates a failure from a code and a message, for errors without an error type of their own.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            missing: None,
            context: None,
        }
    }

    /// Adds data that the engine stores with the result.
    pub(crate) fn with_context(self, context: Value) -> Self {
        Self {
            context: Some(Box::new(context)),
            ..self
        }
    }

    /// True if the message contains a text with at least one line.
    pub(crate) fn shows(&self, text: &str) -> bool {
        let text = text.trim_end_matches('\n');
        !text.is_empty() && self.message.contains(text)
    }

    /// Appends the text that `hint` returns for the missing path, if a path is missing.
    pub(crate) fn with_hint(mut self, hint: impl FnOnce(&str) -> String) -> Self {
        if let Some(missing) = self.missing.take() {
            self.message.push_str(&hint(&missing));
        }
        self
    }
}

impl From<ToolFailure> for ToolOutput {
    fn from(failure: ToolFailure) -> Self {
        let mut envelope = Envelope::failure(failure.code, failure.message);
        if let Some(context) = failure.context {
            envelope.context = *context;
        }
        envelope.into()
    }
}
