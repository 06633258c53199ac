//! Reads sessions of cline: either a list of messages in the format of Anthropic's API (the editor
//! extension's `api_conversation_history.json`), or an object that contains such a list (the
//! command line's `SESSION.messages.json`).

use serde_json::{Value, json};

use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, claude_code, time};

/// Reads a cline session. Its messages are in Anthropic's format, so they are first converted to
/// session lines of Claude Code, which contain such messages, and then read by the reader for
/// Claude Code.
pub(crate) fn read_session(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let document: Value = serde_json::from_str(source.text)?;
    let messages = document
        .get("messages")
        .unwrap_or(&document)
        .as_array()
        .ok_or(ImportError::Unknown)?;
    let mut lines = String::new();
    for (index, message) in messages.iter().enumerate() {
        let parent = index.checked_sub(1).map(|before| before.to_string());
        let at = message
            .get("ts")
            .and_then(time::parse_timestamp)
            .map(|at| at.to_string());
        let line = json!({
            "type": message.get("role"), "uuid": index.to_string(), "parentUuid": parent, "timestamp": at,
            "sessionId": document.get("sessionId"),
            "message": {"content": flatten_results(message), "model": find_model_name(message), "usage": convert_usage(message)},
        });
        lines.push_str(&line.to_string());
        lines.push('\n');
    }
    let system = document
        .get("system_prompt")
        .and_then(Value::as_str)
        .filter(|system| !system.is_empty());
    claude_code::read_session_as(
        SourceText {
            text: &lines,
            now: source.now,
        },
        ImportFormat::Cline,
        system,
    )
}

/// Returns the content of a message, with each tool result converted to text, because cline's
/// command line stores a result as a list of queries and answers.
fn flatten_results(message: &Value) -> Value {
    let mut content = message.get("content").cloned().unwrap_or_default();
    for block in content
        .as_array_mut()
        .into_iter()
        .flatten()
        .filter(|block| block["type"] == "tool_result")
    {
        let answers = block["content"].as_array().into_iter().flatten();
        let answers: Vec<_> = answers
            .filter_map(|one| Some((one.get("result")?, one.get("success")?)))
            .collect();
        if answers.is_empty() {
            continue;
        }
        let is_error = answers.iter().all(|(_, success)| **success == false);
        let text = |result: &Value| {
            result
                .as_str()
                .map_or_else(|| result.to_string(), str::to_owned)
        };
        let text: Vec<_> = answers.iter().map(|(result, _)| text(result)).collect();
        block["content"] = text.join("\n").into();
        block["is_error"] = is_error.into();
    }
    content
}

fn find_model_name(message: &Value) -> Option<String> {
    let info = message.get("modelInfo")?;
    Some(format!(
        "{}/{}",
        info.get("provider")?.as_str()?,
        info.get("id")?.as_str()?
    ))
}

fn convert_usage(message: &Value) -> Option<Value> {
    let metrics = message.get("metrics")?;
    Some(json!({
        "input_tokens": metrics.get("inputTokens"), "output_tokens": metrics.get("outputTokens"),
        "cache_read_input_tokens": metrics.get("cacheReadTokens"),
        "cache_creation_input_tokens": metrics.get("cacheWriteTokens"),
    }))
}

/// True if a text with the role `user` was added by cline itself: the environment details, or the
/// result of a call that the model wrote as text (`[read_file for 'a.ts'] Result:`).
pub(crate) fn is_added_by_cline(text: &str) -> bool {
    let first_line = text.lines().next().unwrap_or_default().trim_end();
    text.starts_with("<environment_details>")
        || (first_line.starts_with('[') && first_line.ends_with("] Result:"))
}

/// True if the text contains the user's answer to a tool call, such as an answer to a question.
pub(crate) fn is_user_answer(text: &str) -> bool {
    ["<feedback>", "<answer>", "<user_message>"]
        .iter()
        .any(|tag| text.contains(tag))
}

/// True if the messages are from cline: they contain content blocks for tools, or timestamps in
/// milliseconds.
pub(crate) fn is_cline_session(messages: &[Value]) -> bool {
    let is_block = |block: &Value| {
        matches!(
            block.get("type").and_then(Value::as_str),
            Some("tool_use" | "tool_result" | "thinking")
        )
    };
    messages.iter().any(|message| {
        let blocks = message.get("content").and_then(Value::as_array);
        message.get("ts").is_some_and(Value::is_number)
            || blocks.is_some_and(|blocks| blocks.iter().any(is_block))
    })
}
