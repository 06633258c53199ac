//! Imports that nearly every tool needs.

pub(crate) use haft_tool::{
    Access, Alias, Availability, Group, Intent, Manual, Tool, ToolContext, ToolDefinition,
    ToolNames, ToolOutput,
};
pub(crate) use haft_types::{Envelope, prompt};
pub(crate) use schemars::JsonSchema;
pub(crate) use serde::Deserialize;
pub(crate) use serde_json::{Value, json};

pub(crate) use crate::arguments::{Arguments, remove_arguments, rename_argument};
pub(crate) use crate::failure::{Coded, ToolFailure};

/// The result of a tool call. The model receives the output or the failure.
pub(crate) type CallResult = Result<ToolOutput, ToolFailure>;
