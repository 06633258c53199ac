//! Reads the `context.jsonl` of kimi-cli: one chat message per line, and control lines whose role
//! begins with `_`.
//!
//! The file contains the system prompt, but not the tools, the model, or times. Its only token
//! count is the fill level of the context window.

use haft_types::{Envelope, Message, Origin, Part, Role};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, get_text, parse_json_lines,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, chat};

pub(crate) fn read_context(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    for mut said in parse_json_lines(source.text, &mut builder.skipped) {
        match get_text(&said, "role") {
            Some("_system_prompt") => said["role"] = "system".into(),
            Some(role) if role.starts_with('_') => continue,
            Some(_) | None => {}
        }
        let thoughts = take_thoughts(&mut said);
        if !thoughts.is_empty() {
            said["reasoning_content"] = thoughts.into();
        }
        if get_text(&said, "role") == Some("tool") {
            join_texts(&mut said);
        }
        let message = to_raw_value(&said).map_err(|error| error.to_string());
        match message.and_then(|raw| chat::read_message(&builder, &raw, None)) {
            Ok(message) => builder.push(mark_origin_and_status(message)),
            Err(_) => builder.skipped += 1,
        }
    }
    // The system prompt contains the start time of the session, so an id can be derived from the
    // first messages.
    let about = ConversationHeader {
        id: builder.id_from_first_messages(2),
        ..ConversationHeader::default()
    };
    builder.finish(ImportFormat::Kimi.name(), about)
}

/// Removes the model's thoughts from a message and returns them.
fn take_thoughts(said: &mut Value) -> String {
    let mut thoughts = Vec::new();
    if let Some(parts) = said.get_mut("content").and_then(Value::as_array_mut) {
        parts.retain(|part| match get_text(part, "think") {
            Some(thought) => {
                thoughts.push(thought.to_owned());
                false
            }
            None => true,
        });
    }
    thoughts.join("\n")
}

/// Replaces a list of text parts in a tool result by one text, joined by line breaks. Does nothing
/// if a part is not a text.
fn join_texts(said: &mut Value) {
    let Some(parts) = said.get("content").and_then(Value::as_array) else {
        return;
    };
    let texts: Option<Vec<_>> = parts.iter().map(|part| get_text(part, "text")).collect();
    if let Some(texts) = texts {
        said["content"] = texts.join("\n").into();
    }
}

/// Marks a message that kimi-cli itself added, and sets the status and exit code of each tool
/// result from the `<system>` tag in its text.
fn mark_origin_and_status(mut message: Message) -> Message {
    let added = matches!(message.content.first(), Some(Part::Text { text, .. }) if text.starts_with("<system"));
    if message.role == Role::User && added {
        return message.with_origin(Origin::Engine);
    }
    for part in &mut message.content {
        let Part::ToolResult(result) = part else {
            continue;
        };
        let Some(rest) = result.envelope.text.strip_prefix("<system>") else {
            continue;
        };
        let (said, _) = rest.split_once("</system>").unwrap_or((rest, ""));
        let code = said
            .split_once("exit code: ")
            .and_then(|(_, code)| code.trim_end_matches('.').parse::<i64>().ok());
        let code = code.or_else(|| {
            said.starts_with("Command executed successfully")
                .then_some(0)
        });
        if said.starts_with("ERROR:") && code.is_none() {
            result.envelope =
                Envelope::failure("failed", std::mem::take(&mut result.envelope.text));
        }
        if let Some(code) = code {
            result.envelope.data = json!({ "exit_code": code });
        }
    }
    message
}
