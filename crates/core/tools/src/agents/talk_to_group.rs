//! `talk_to_group`: sends a message to every running agent of a group.
//!
//! Registered only if a group has another member.

use std::sync::Arc;

use haft_tool::{AgentMessenger, GroupDelivery};
use haft_types::{ToolError, ToolStatus};

use crate::prelude::*;

const NAME: &str = "talk_to_group";

static MANUAL: Manual = Manual::for_group(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TalkToGroupParameters {
    /// Its name, as listed under `AVAILABLE_GROUPS` in the system prompt.
    group: String,
    /// What to say.
    message: String,
}

/// Defines the tool that sends messages through `post`.
pub fn define_tool(post: Arc<dyn AgentMessenger>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("talk_to_group/prompt"),
        &MANUAL,
        Access::State,
        |_| Intent::Nothing,
    )
    .with_function(move |_, parameters| Box::pin(send_to_group(Arc::clone(&post), parameters)))
}

async fn send_to_group(
    post: Arc<dyn AgentMessenger>,
    TalkToGroupParameters { group, message }: TalkToGroupParameters,
) -> CallResult {
    if message.trim().is_empty() {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "`message` is empty; nothing was sent",
        ));
    }
    let GroupDelivery { reached, failed } =
        post.send_to_group(group.trim(), message.trim()).await?;
    let mut sentences = Vec::new();
    if !reached.is_empty() {
        let names: Vec<_> = reached.iter().map(|name| format!("`{name}`")).collect();
        sentences.push(format!("Delivered to {}.", names.join(", ")));
    }
    if !failed.is_empty() {
        let why: Vec<_> = failed.iter().map(|(_, why)| why.to_string()).collect();
        sentences.push(format!("Not reached: {}.", why.join("; ")));
    }
    if sentences.is_empty() {
        sentences.push("Nobody else is in this group.".to_owned());
    }
    let status = match (reached.is_empty(), failed.is_empty()) {
        (_, true) => ToolStatus::Success,
        (false, false) => ToolStatus::Partial,
        (true, false) => ToolStatus::Error,
    };
    let error = (status == ToolStatus::Error).then(|| ToolError {
        code: "nobody_reached".to_owned(),
        message: sentences.join(" "),
    });
    let failed: Vec<_> = failed.iter().map(|(name, _)| name).collect();
    let data = json!({ "group": group.trim(), "reached": reached, "failed": failed });
    Ok(Envelope {
        status,
        error,
        ..Envelope::success(sentences.join(" ")).with_data(data)
    }
    .into())
}
