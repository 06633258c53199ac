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

use crate::build::{
    ConversationBuilder, ConversationHeader, ReportedUsage, chosen, count, json_lines, made_by,
    text_of,
};
use crate::{ImportError, ImportFormat, ImportedConversation, SourceText, time};

pub(crate) fn read(source: SourceText<'_>) -> Result<ImportedConversation, ImportError> {
    let mut builder = ConversationBuilder::new(source.now);
    let mut about = ConversationHeader::default();
    let mut entries = Vec::new();
    for entry in json_lines(source.text, &mut builder.skipped) {
        if text_of(&entry, "type") == Some("session") {
            about.id = text_of(&entry, "id").map(str::to_owned);
            about.metadata = chosen(&entry, &[("cwd", "cwd"), ("version", "version")]);
            builder.begun(entry.get("timestamp").and_then(time::read));
        } else {
            entries.push(entry);
        }
    }
    let wanted = newest_branch(&entries);
    for (entry, _) in entries.iter().zip(wanted).filter(|(_, wanted)| *wanted) {
        // The user may rename a session; the last name counts.
        if text_of(entry, "type") == Some("session_info") {
            about.name = text_of(entry, "name").map(str::to_owned);
        }
        take(&mut builder, entry);
    }
    builder.finish(ImportFormat::Pi.name(), about)
}

/// Returns for each entry whether it leads to the newest one. All entries do if they have no ids.
fn newest_branch(entries: &[Value]) -> Vec<bool> {
    let places: HashMap<&str, usize> = entries
        .iter()
        .enumerate()
        .filter_map(|(place, entry)| Some((text_of(entry, "id")?, place)))
        .collect();
    if places.is_empty() {
        return vec![true; entries.len()];
    }
    let mut wanted = HashSet::new();
    let mut at = entries
        .iter()
        .rposition(|entry| text_of(entry, "id").is_some());
    while let Some(place) = at.filter(|place| wanted.insert(*place)) {
        at = text_of(&entries[place], "parentId")
            .and_then(|parent| places.get(parent))
            .copied();
    }
    (0..entries.len())
        .map(|place| wanted.contains(&place))
        .collect()
}

fn take(builder: &mut ConversationBuilder, entry: &Value) {
    let at = entry.get("timestamp").and_then(time::read);
    match (text_of(entry, "type"), entry.get("message")) {
        (Some("message"), Some(message)) => take_message(builder, message, at),
        (Some("compaction" | "branch_summary"), _) => {
            let text = text_of(entry, "summary").unwrap_or_default();
            let mut message = builder
                .message(Role::User, vec![Part::text(text)], at)
                .from(Origin::Engine);
            message.metadata.extend(Metadata::from_iter([(
                "compact_summary".to_owned(),
                Value::Bool(true),
            )]));
            builder.push(message);
        }
        // Added by an extension for the model.
        (Some("custom_message"), _) => {
            let said = parts(entry.get("content").unwrap_or(&Value::Null));
            let message = builder.message(Role::User, said, at).from(Origin::Engine);
            builder.push(message);
        }
        // Settings, which are not part of the conversation.
        (
            Some("model_change" | "thinking_level_change" | "label" | "session_info" | "custom"),
            _,
        ) => {}
        _ => builder.skipped += 1,
    }
}

fn take_message(builder: &mut ConversationBuilder, said: &Value, at: Option<Timestamp>) {
    let content = said.get("content").unwrap_or(&Value::Null);
    let message = match text_of(said, "role") {
        Some("user") => builder.message(Role::User, parts(content), at),
        Some("assistant") => {
            let mut reply = builder.message(Role::Assistant, parts(content), at);
            let model = text_of(said, "model");
            let model = model.map(|model| match text_of(said, "provider") {
                Some(provider) => format!("{provider}/{model}"),
                None => model.to_owned(),
            });
            reply.llm_metadata = made_by(model.as_deref(), said.get("usage").map(used));
            reply
        }
        Some("toolResult") => {
            let Some(call) = text_of(said, "toolCallId") else {
                return builder.skipped += 1;
            };
            result(builder, call, said, content, at)
        }
        // A command the user ran. The model receives its output unless the user excluded it.
        Some("bashExecution") if said.get("excludeFromContext") == Some(&true.into()) => return,
        Some("bashExecution") => {
            let text = |key: &str| text_of(said, key).unwrap_or_default();
            let failed = said
                .get("exitCode")
                .and_then(Value::as_i64)
                .filter(|code| *code != 0);
            let end = failed.map_or_else(String::new, |code| {
                format!("\n\nCommand exited with code {code}")
            });
            let shown = format!("Ran `{}`\n{}{end}", text("command"), text("output"));
            builder
                .message(Role::User, vec![Part::text(shown)], at)
                .from(Origin::Engine)
        }
        _ => return builder.skipped += 1,
    };
    builder.push(message);
}

fn result(
    builder: &ConversationBuilder,
    call: &str,
    said: &Value,
    content: &Value,
    at: Option<Timestamp>,
) -> Message {
    let (texts, images): (Vec<_>, Vec<_>) = parts(content)
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
    let mut all = vec![builder.result(call, text_of(said, "toolName"), envelope)];
    all.extend(images);
    builder.message(Role::Tool, all, at)
}

fn parts(content: &Value) -> Vec<Part> {
    let Some(pieces) = content.as_array() else {
        return content
            .as_str()
            .filter(|text| !text.is_empty())
            .map(Part::text)
            .into_iter()
            .collect();
    };
    let part = |piece: &Value| match text_of(piece, "type")? {
        "text" => text_of(piece, "text")
            .filter(|text| !text.is_empty())
            .map(Part::text),
        "thinking" => {
            let text = text_of(piece, "thinking")?.to_owned();
            let signature = text_of(piece, "thinkingSignature");
            Some(Part::Thinking(Thinking {
                text,
                signature: signature.map(str::to_owned),
                raw: None,
            }))
        }
        "toolCall" => {
            let arguments = piece.get("arguments").cloned().unwrap_or_else(|| json!({}));
            let id = text_of(piece, "id")?.to_owned();
            let name = text_of(piece, "name")?.to_owned();
            Some(Part::ToolCall(ToolCall {
                id,
                name,
                arguments: arguments.to_string(),
                signature: None,
            }))
        }
        "image" => {
            let media_type = text_of(piece, "mimeType")?.to_owned();
            let data = text_of(piece, "data")?.to_owned();
            Some(Part::Image(Image { media_type, data }))
        }
        _ => None,
    };
    pieces.iter().filter_map(part).collect()
}

fn used(usage: &Value) -> ReportedUsage {
    ReportedUsage {
        input: count(usage, "input"),
        cached: count(usage, "cacheRead"),
        written: count(usage, "cacheWrite"),
        output: count(usage, "output"),
        reasoning: 0,
    }
}
