//! `talk_to`: sends a message to another running agent.
//!
//! Registered only if another agent can receive messages.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use haft_tool::{AgentMessenger, DeliveryError};

use crate::prelude::*;

const NAME: &str = "talk_to";

static MANUAL: Manual = Manual::for_group(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TalkToParameters {
    /// Its name, as listed under `AVAILABLE_AGENTS` in the system prompt or given when you started
    /// it.
    agent: String,
    /// What to say.
    message: String,
}

/// Defines the tool that sends messages through `post`.
pub fn define_tool(post: Arc<dyn AgentMessenger>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("talk_to/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(move |_, parameters| Box::pin(send_message(Arc::clone(&post), parameters)))
}

impl Coded for DeliveryError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotRunning { .. } => "unknown_agent",
            Self::Ended { .. } => "agent_ended",
            Self::NoGroup { .. } => "unknown_group",
            Self::Full { .. } => "mailbox_full",
        }
    }
}

async fn send_message(
    post: Arc<dyn AgentMessenger>,
    TalkToParameters { agent, message }: TalkToParameters,
) -> CallResult {
    if message.trim().is_empty() {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "`message` is empty; nothing was sent",
        ));
    }
    post.send(agent.trim(), message.trim()).await?;
    let text = format!("Delivered to `{}`.", agent.trim());
    Ok(Envelope::success(text)
        .with_data(json!({ "agent": agent.trim() }))
        .into())
}
