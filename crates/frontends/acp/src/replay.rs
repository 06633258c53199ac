//! Shows a stored conversation to an editor that has loaded it.

use std::path::Path;
use std::sync::Arc;

use agent_client_protocol::v1::schema::{
    ContentBlock, ContentChunk, ImageContent, SessionUpdate, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use haft_types::{Entry, Message, Origin, Part, Role, ToolCall, ToolResult, ToolStatus};
use serde_json::Value;

use crate::tool_calls;
use crate::updates::parse_plan;

/// Converts a stored history to the updates that show its prompts, replies and calls in the editor.
/// Messages that the engine added for the model alone are omitted.
pub(crate) fn convert_history(history: &[Arc<Entry>], cwd: &Path) -> Vec<SessionUpdate> {
    history
        .iter()
        .flat_map(|entry| convert_message(&entry.message, cwd))
        .collect()
}

/// Like [`convert_history`], for messages that were read from the store.
pub(crate) fn convert_messages(messages: &[Message], cwd: &Path) -> Vec<SessionUpdate> {
    messages
        .iter()
        .flat_map(|message| convert_message(message, cwd))
        .collect()
}

fn convert_message(message: &Message, cwd: &Path) -> Vec<SessionUpdate> {
    let is_user_input =
        message.role == Role::User && matches!(message.origin(), Origin::User | Origin::Joined);
    let shown = |part: &Part| match (part, message.role) {
        (Part::Text { text, .. }, Role::User) if is_user_input => {
            Some(SessionUpdate::UserMessageChunk(build_text_chunk(text)))
        }
        (Part::Image(image), Role::User) if is_user_input => {
            let image = ImageContent::new(image.data.clone(), image.media_type.clone());
            Some(SessionUpdate::UserMessageChunk(ContentChunk::new(
                ContentBlock::Image(image),
            )))
        }
        (Part::Text { text, .. }, Role::Assistant) => {
            Some(SessionUpdate::AgentMessageChunk(build_text_chunk(text)))
        }
        (Part::Thinking(thinking), Role::Assistant) if !thinking.text.is_empty() => Some(
            SessionUpdate::AgentThoughtChunk(build_text_chunk(&thinking.text)),
        ),
        (Part::ToolCall(call), _) => convert_call(call, cwd),
        (Part::ToolResult(result), _) => convert_result(result),
        _ => None,
    };
    message.content.iter().filter_map(shown).collect()
}

fn build_text_chunk(text: &str) -> ContentChunk {
    ContentChunk::new(text.to_owned().into())
}

fn convert_call(call: &ToolCall, cwd: &Path) -> Option<SessionUpdate> {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    if !tool_calls::is_dialog_tool(&call.name) {
        return Some(SessionUpdate::ToolCall(tool_calls::replayed_call(
            &call.id, &call.name, &arguments, cwd,
        )));
    }
    let said = ["result", "question", "response"]
        .iter()
        .find_map(|key| arguments.get(*key)?.as_str());
    said.map(|said| SessionUpdate::AgentMessageChunk(build_text_chunk(said)))
        .or_else(|| parse_plan(&arguments).map(SessionUpdate::Plan))
}

fn convert_result(result: &ToolResult) -> Option<SessionUpdate> {
    if tool_calls::is_dialog_tool(&result.name) {
        return None;
    }
    let status = match result.envelope.status {
        ToolStatus::Success | ToolStatus::Partial => ToolCallStatus::Completed,
        ToolStatus::Error => ToolCallStatus::Failed,
    };
    let fields = ToolCallUpdateFields::new().status(status);
    // An edit's diff was shown with the call.
    let fields = if tool_calls::tool_kind(&result.name)
        == agent_client_protocol::v1::schema::ToolKind::Edit
    {
        fields
    } else {
        fields.content(vec![tool_calls::result_content(
            &result.name,
            status,
            &result.envelope.text,
        )])
    };
    Some(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(
        result.tool_call_id.clone(),
        fields,
    )))
}
