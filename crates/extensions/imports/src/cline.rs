//! The `api_conversation_history.json` of cline: a list of messages as Anthropic's API takes them.

use serde_json::{Value, json};

use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, claude_code, time};

/// Reads them as a session of the one agent whose file holds the same messages, a line each.
pub(crate) fn read(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let messages: Vec<Value> = serde_json::from_str(source.text)?;
    let mut lines = String::new();
    for (index, message) in messages.iter().enumerate() {
        let parent = index.checked_sub(1).map(|before| before.to_string());
        let at = message.get("ts").and_then(time::read).map(|at| at.to_string());
        let content = message.get("content").unwrap_or(&Value::Null);
        let line = json!({
            "type": message.get("role"), "uuid": index.to_string(), "parentUuid": parent, "timestamp": at,
            "message": {"content": content},
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    claude_code::read_as(SourceText { text: &lines, now: source.now }, ImportFormat::Cline)
}

/// Whether a list of messages is one of cline's: tools are called in blocks, or messages have times in milliseconds.
pub(crate) fn is_cline(messages: &[Value]) -> bool {
    let is_block = |block: &Value| {
        matches!(block.get("type").and_then(Value::as_str), Some("tool_use" | "tool_result" | "thinking"))
    };
    messages.iter().any(|message| {
        let blocks = message.get("content").and_then(Value::as_array);
        message.get("ts").is_some_and(Value::is_number) || blocks.is_some_and(|blocks| blocks.iter().any(is_block))
    })
}
