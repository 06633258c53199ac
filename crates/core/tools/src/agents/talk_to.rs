//! `talk_to`: a message to another running agent (SPEC 14.7).
//!
//! Registered only where there is somebody to talk to.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;
use haft_tool::{Access, Intent, NotDelivered, Post, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Coded, Failure, settle};
use crate::manual::{Group, Manual};
use crate::spec_of;

const NAME: &str = "talk_to";

static MANUAL: Manual = Manual {
    example_of: "Telling another agent what it should know",
    example: r#"{"agent": "tester", "message": "parse() now returns Result; its tests need `?`."}"#,
    ..Manual::of(Group::Others)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Who it is for.
    agent: String,
    /// What to say.
    message: String,
}

/// The tool.
pub struct TalkTo {
    spec: ToolSpec,
    post: Arc<dyn Post>,
}

impl TalkTo {
    /// The tool that gives messages to this post.
    pub fn new(post: Arc<dyn Post>) -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("talk_to/prompt.md")), post }
    }
}

#[async_trait]
impl Tool for TalkTo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::State
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, _context: &ToolContext, arguments: Value) -> ToolOutput {
        settle(run(self.post.as_ref(), arguments).await)
    }
}

impl Coded for NotDelivered {
    fn code(&self) -> &'static str {
        match self {
            Self::NobodyThere { .. } => "unknown_agent",
            Self::NoGroup { .. } => "unknown_group",
            Self::Full { .. } => "mailbox_full",
        }
    }
}

async fn run(post: &dyn Post, arguments: Value) -> Result<ToolOutput, Failure> {
    let Parameters { agent, message } = parse_arguments(NAME, arguments)?;
    if message.trim().is_empty() {
        return Err(Failure::new("invalid_arguments", "`message` is empty; nothing was sent"));
    }
    post.send(agent.trim(), message.trim()).await?;
    let text = format!("Delivered to `{}`.", agent.trim());
    Ok(Envelope::success(text).with_data(json!({ "agent": agent.trim() })).into())
}
