//! Reads the session files of pi: one entry per line, each with the id of its parent, and messages
//! in the format of pi's own library.
//!
//! A session that went back to an earlier entry has several branches; the one that ends with the
//! newest entry is read. Files of the first version are a list of entries without ids.

use std::collections::{HashMap, HashSet};

use haft_types::{
    Envelope, Image, Message, Metadata, Origin, Part, Role, Thinking, Timestamp, ToolCall,
};
use serde_json::{Value, json};

use crate::conversation_builder::{
    ConversationBuilder, ConversationHeader, ReportedUsage, build_reply_metadata, get_count,
    get_text, parse_json_lines, select_metadata,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

pub(crate) fn read_session(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    let mut about = ConversationHeader::default();
    let mut entries = Vec::new();
    for entry in parse_json_lines(source.text, &mut builder.skipped) {
        if get_text(&entry, "type") == Some("session") {
            about.id = get_text(&entry, "id").map(str::to_owned);
            about.metadata = select_metadata(&entry, &[("cwd", "cwd"), ("version", "version")]);
            builder.set_start(entry.get("timestamp").and_then(time::parse_timestamp));
        } else {
            entries.push(entry);
        }
    }
    let wanted = mark_newest_branch(&entries);
    for (entry, _) in entries.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
        // A session may be renamed, so the last name is used.
        if get_text(entry, "type") == Some("session_info") {
            about.name = get_text(entry, "name").map(str::to_owned);
        }
        push_entry(&mut builder, entry);
    }
    builder.finish(ImportFormat::Pi.name(), about)
}

/// Returns one flag for each entry: true if the entry is the newest entry or one of its ancestors.
/// If the entries have no ids, all flags are true.
fn mark_newest_branch(entries: &[Value]) -> Vec<bool> {
    let places: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .filter_map(|(place, entry)| Some((get_text(entry, "id")?, place)))
        .collect();
    if places.is_empty() {
        return vec![true; entries.len()];
    }
    let mut wanted = HashSet::new();
    let mut at = entries
        .iter()
        .rposition(|entry| get_text(entry, "id").is_some());
    while let Some(place) = at.filter(|place| wanted.insert(*place)) {
        at = get_text(&entries[place], "parentId")
            .and_then(|parent| places.get(parent))
            .copied();
    }
    (0..entries.len())
        .map(|place| wanted.contains(&place))
        .collect()
}

fn push_entry(builder: &mut ConversationBuilder, entry: &Value) {
    let at = entry.get("timestamp").and_then(time::parse_timestamp);
    match (get_text(entry, "type"), entry.get("message")) {
        (Some("message"), Some(message)) => push_message(builder, message, at),
        (Some("compaction" | "branch_summary"), _) => {
            let text = get_text(entry, "summary").unwrap_or_default();
            let mut message = builder
                .new_message(Role::User, vec![Part::from_text(text)], at)
                .with_origin(Origin::Engine);
            message.metadata.extend(Metadata::from_iter([(
                "compact_summary".to_owned(),
                Value::Bool(true),
            )]));
            builder.push(message);
        }
        // An extension added this message for the model.
        (Some("custom_message"), _) => {
            let said = read_parts(entry.get("content").unwrap_or(&Value::Null));
            let message = builder
                .new_message(Role::User, said, at)
                .with_origin(Origin::Engine);
            builder.push(message);
        }
        // These entries are settings, not part of the conversation.
        (
            Some("model_change" | "thinking_level_change" | "label" | "session_info" | "custom"),
            _,
        ) => {}
        _ => builder.skipped += 1,
    }
}

fn push_message(builder: &mut ConversationBuilder, said: &Value, at: Option<Timestamp>) {
    let content = said.get("content").unwrap_or(&Value::Null);
    let message = match get_text(said, "role") {
        Some("user") => builder.new_message(Role::User, read_parts(content), at),
        Some("assistant") => {
            let mut reply = builder.new_message(Role::Assistant, read_parts(content), at);
            let model = get_text(said, "model");
            let model = model.map(|model| match get_text(said, "provider") {
                Some(provider) => format!("{provider}/{model}"),
                None => model.to_owned(),
            });
            reply.llm_metadata =
                build_reply_metadata(model.as_deref(), said.get("usage").map(read_usage));
            reply
        }
        Some("toolResult") => {
            let Some(call) = get_text(said, "toolCallId") else {
                return builder.skipped += 1;
            };
            build_result_message(builder, call, said, content, at)
        }
        // The user ran this command. The model receives the output unless the user excluded it.
        Some("bashExecution") if said.get("excludeFromContext") == Some(&true.into()) => return,
        Some("bashExecution") => {
            let text = |key: &str| get_text(said, key).unwrap_or_default();
            let failed = said
                .get("exitCode")
                .and_then(Value::as_i64)
                .filter(|code| *code != 0);
            let end = failed.map_or_else(String::new, |code| {
                format!("\n\nCommand exited with code {code}")
            });
            let shown = format!("Ran `{}`\n{}{end}", text("command"), text("output"));
            builder
                .new_message(Role::User, vec![Part::from_text(shown)], at)
                .with_origin(Origin::Engine)
        }
        _ => return builder.skipped += 1,
    };
    builder.push(message);
}

fn build_result_message(
    builder: &ConversationBuilder,
    call: &str,
    said: &Value,
    content: &Value,
    at: Option<Timestamp>,
) -> Message {
    let (texts, images): (Vec<_>, Vec<_>) = read_parts(content)
        .into_iter()
        .partition(|part| matches!(part, Part::Text { .. }));
    let texts = texts.iter().map(|part| match part {
        Part::Text { text, .. } => text.as_str(),
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => "",
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    let failed = said
        .get("isError")
        .and_then(Value::as_bool)
        .unwrap_or(false);
    let envelope = if failed {
        Envelope::failure("failed", text)
    } else {
        Envelope::success(text)
    };
    let mut all = vec![builder.build_result_part(call, get_text(said, "toolName"), envelope)];
    all.extend(images);
    builder.new_message(Role::Tool, all, at)
}

fn read_parts(content: &Value) -> Vec<Part> {
    let Some(pieces) = content.as_array() else {
        return content
            .as_str()
            .filter(|text| !text.is_empty())
            .map(Part::from_text)
            .into_iter()
            .collect();
    };
    let part = |piece: &Value| match get_text(piece, "type")? {
        "text" => get_text(piece, "text")
            .filter(|text| !text.is_empty())
            .map(Part::from_text),
        "thinking" => {
            let text = get_text(piece, "thinking")?.to_owned();
            let signature = get_text(piece, "thinkingSignature");
            Some(Part::Thinking(Thinking {
                text,
                signature: signature.map(str::to_owned),
                raw: None,
            }))
        }
        "toolCall" => {
            let arguments = piece.get("arguments").cloned().unwrap_or_else(|| json!({}));
            let id = get_text(piece, "id")?.to_owned();
            let name = get_text(piece, "name")?.to_owned();
            Some(Part::ToolCall(ToolCall {
                id,
                name,
                arguments: arguments.to_string(),
                signature: None,
            }))
        }
        "image" => {
            let media_type = get_text(piece, "mimeType")?.to_owned();
            let data = get_text(piece, "data")?.to_owned();
            Some(Part::Image(Image { media_type, data }))
        }
        _ => None,
    };
    pieces.iter().filter_map(part).collect()
}

fn read_usage(usage: &Value) -> ReportedUsage {
    ReportedUsage {
        input: get_count(usage, "input"),
        cached: get_count(usage, "cacheRead"),
        written: get_count(usage, "cacheWrite"),
        output: get_count(usage, "output"),
        reasoning: 0,
    }
}
