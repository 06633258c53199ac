//! What nearly every tool is written with.

pub(crate) use haft_tool::{
    Access, Alias, Group, Intent, Manual, Set, Tool, ToolContext, ToolDefinition, ToolNames,
    ToolOutput,
};
pub(crate) use haft_types::{Envelope, prompt};
pub(crate) use schemars::JsonSchema;
pub(crate) use serde::Deserialize;
pub(crate) use serde_json::{Value, json};

pub(crate) use crate::failure::{Coded, ToolFailure};
pub(crate) use crate::manual::{Arguments, forget, rename};

/// What a call comes to; either arm is something the model reads.
pub(crate) type CallResult = Result<ToolOutput, ToolFailure>;
