//! Shows a stored conversation to an editor that has loaded it.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, SessionUpdate, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use haft_types::{Entry, Message, Origin, Part, Role, ToolCall, ToolResult, ToolStatus};
use serde_json::Value;

use crate::calls;
use crate::updates::plan_of;

/// Returns all prompts, replies and calls in order. Messages that the engine added for the model
/// alone are left out.
pub(crate) fn updates(history: &[Arc<Entry>], cwd: &Path) -> Vec<SessionUpdate> {
    history
        .iter()
        .flat_map(|entry| of_message(&entry.message, cwd))
        .collect()
}

fn of_message(message: &Message, cwd: &Path) -> Vec<SessionUpdate> {
    let is_users =
        message.role == Role::User && matches!(message.origin(), Origin::User | Origin::Joined);
    let shown = |part: &Part| match (part, message.role) {
        (Part::Text { text, .. }, Role::User) if is_users => {
            Some(SessionUpdate::UserMessageChunk(chunk(text)))
        }
        (Part::Image(image), Role::User) if is_users => {
            let image = ImageContent::new(image.data.clone(), image.media_type.clone());
            Some(SessionUpdate::UserMessageChunk(ContentChunk::new(
                ContentBlock::Image(image),
            )))
        }
        (Part::Text { text, .. }, Role::Assistant) => {
            Some(SessionUpdate::AgentMessageChunk(chunk(text)))
        }
        (Part::Thinking(thinking), Role::Assistant) if !thinking.text.is_empty() => {
            Some(SessionUpdate::AgentThoughtChunk(chunk(&thinking.text)))
        }
        (Part::ToolCall(call), _) => of_call(call, cwd),
        (Part::ToolResult(result), _) => of_result(result),
        _ => None,
    };
    message.content.iter().filter_map(shown).collect()
}

fn chunk(text: &str) -> ContentChunk {
    ContentChunk::new(text.to_owned().into())
}

fn of_call(call: &ToolCall, cwd: &Path) -> Option<SessionUpdate> {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    if !calls::is_speech(&call.name) {
        return Some(SessionUpdate::ToolCall(calls::earlier(
            &call.id, &call.name, &arguments, cwd,
        )));
    }
    let said = ["result", "question", "response"]
        .iter()
        .find_map(|key| arguments.get(*key)?.as_str());
    said.map(|said| SessionUpdate::AgentMessageChunk(chunk(said)))
        .or_else(|| plan_of(&arguments).map(SessionUpdate::Plan))
}

fn of_result(result: &ToolResult) -> Option<SessionUpdate> {
    if calls::is_speech(&result.name) {
        return None;
    }
    let status = match result.envelope.status {
        ToolStatus::Success | ToolStatus::Partial => ToolCallStatus::Completed,
        ToolStatus::Error => ToolCallStatus::Failed,
    };
    let fields = ToolCallUpdateFields::new().status(status);
    // An edit's diff was shown with the call.
    let fields =
        if calls::kind_of(&result.name) == agent_client_protocol::v1::schema::ToolKind::Edit {
            fields
        } else {
            fields.content(vec![calls::said(&result.name, &result.envelope.text)])
        };
    Some(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
        result.tool_call_id.clone(),
        fields,
    )))
}
