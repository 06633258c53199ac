//! What a tool looks like to the model, and the one envelope every result comes in.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool as offered to the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// The name the model calls.
    pub name: String,
    /// What it does, its parameters, usage and limits.
    pub description: String,
    /// The JSON schema of its parameters: an object schema with everything inlined.
    pub parameters: Value,
}

/// How a tool call ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolStatus {
    /// It did what was asked.
    #[default]
    Success,
    /// It did part of it; the text says which.
    Partial,
    /// It did not; the error says why.
    Error,
}

/// Why a tool call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolError {
    /// A stable name for programs, such as `not_found`.
    pub code: String,
    /// What was wrong, where, and what to do.
    pub message: String,
}

/// What every tool returns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// How the call ended.
    pub status: ToolStatus,
    /// What the model reads in the running round.
    pub text: String,
    /// The same as data, from which the compressed form of later rounds is made.
    #[serde(default)]
    pub data: Value,
    /// Counts and durations, for people.
    #[serde(default)]
    pub stats: Value,
    /// What the engine keeps with the result, such as the state of a file when it was read.
    #[serde(default)]
    pub context: Value,
    /// Present when the status is `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ToolError>,
}

impl Envelope {
    /// A success the model reads as this text.
    pub fn success(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A failure: the message is also what the model reads.
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

    /// The same envelope with this data.
    #[must_use]
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = data;
        self
    }
}
