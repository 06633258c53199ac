//! The tool specification sent to the model, and the envelope of every tool result.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool in the form in which it is offered to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    /// The purpose, parameters, usage and limits of the tool, for the model.
    pub description: String,
    /// The JSON schema of the parameters: an object schema with everything inlined.
    pub parameters: Value,
}

/// The outcome of a tool call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// The call succeeded.
    #[default]
    Success,
    /// A part of the call succeeded; the text of the result reports which part.
    Partial,
    /// The call failed; the result contains the error.
    Error,
}

/// The error with which a tool call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// A stable name for programs, such as `not_found`.
    pub code: String,
    /// The problem, its place, and the remedy.
    pub message: String,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    pub status: ToolStatus,
    /// The text that the model reads while the call's round is running.
    pub text: String,
    /// The result as data, from which the compressed text for later rounds is made.
    #[serde(default)]
    pub data: Value,
    /// Counts and durations, shown only to people.
    #[serde(default)]
    pub stats: Value,
    /// Data that the engine stores with the result, such as the state of a file when it was read.
    #[serde(default)]
    pub context: Value,
    /// The error; present only if the status is `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

impl Envelope {
    /// Creates a successful result with `text` for the model.
    pub fn success(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Creates a failed result. The model reads the message as the text of the result.
    pub fn failure(code: impl Into<String>, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            status: ToolStatus::Error,
            text: message.clone(),
            error: Some(ToolError {
                code: code.into(),
                message,
            }),
            ..Self::default()
        }
    }

    /// Sets the data from which the compressed text for later rounds is made.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = data;
        self
    }
}
