//! The compressed form of a tool result, made by rules and without a model.
//!
//! While a round runs, the model reads every result whole. Later it may read the compressed form: a
//! line of JSON with `status`, the bounded `data`, and on failure the whole `error`; then file
//! contents or output as plain text. The stored message is untouched.
//!
//! Invariant: a compressed form is used only if it is at least a fifth smaller than the whole
//! result. A reduction must never send more.

mod rules;

use std::sync::Arc;

use haft_types::{
    Entry, Envelope, Message, Part, Role, ShortId, ToolProtocol, ToolResult, ToolStatus,
};
use serde_json::{Map, Value, json};

use crate::build::rounds::{COMPRESSED_OWNER, MASKED_OWNER, Timeline, TimelineItem};
use crate::memo::{EntryMaker, MessageForm};
use crate::policy::{CompressLimits, Compression};
use rules::{Kept, reduce_result};

/// The key under which a result's metadata holds the tool's own name. The model may have called the
/// tool by another name.
pub const TOOL_NAME_KEY: &str = "tool";

/// Returns the tool's own name, even if the model called it by another name.
pub(crate) fn tool_name<'a>(message: &'a Message, result: &'a ToolResult) -> &'a str {
    message
        .metadata
        .get(TOOL_NAME_KEY)
        .and_then(Value::as_str)
        .unwrap_or(&result.name)
}

/// Compresses every result of a round before `round`, unless compression would save less than a
/// fifth.
pub(crate) fn compress_rounds_before(
    line: &mut Timeline,
    round: u32,
    compression: Compression,
    maker: EntryMaker<'_>,
) {
    for item in line
        .items
        .iter_mut()
        .filter(|item| item.round < round && is_compressible(item))
    {
        if let Some(entry) = compressed_entry(&item.entry, compression, maker) {
            item.entry = entry;
            item.owner = COMPRESSED_OWNER;
        }
    }
}

/// True for a whole tool result that may be compressed: the model has seen it, and the user did not
/// pin it.
pub(crate) fn is_compressible(item: &TimelineItem) -> bool {
    item.role() == Role::Tool
        && item.owner != COMPRESSED_OWNER
        && item.owner != MASKED_OWNER
        && !item.pinned
        && !item.unseen
}

/// Returns the number of tokens that a result takes once it is compressed. If compression saves too
/// little, this is its current number.
pub(crate) fn compressed_tokens(
    item: &TimelineItem,
    compression: Compression,
    maker: EntryMaker<'_>,
) -> u32 {
    compressed_entry(&item.entry, compression, maker)
        .map_or(item.entry.tokens, |entry| entry.tokens)
}

/// Returns the compressed form of a message; `None` if it is not at least a fifth smaller.
fn compressed_entry(
    entry: &Arc<Entry>,
    compression: Compression,
    maker: EntryMaker<'_>,
) -> Option<Arc<Entry>> {
    let message = &entry.message;
    let made = maker.derived_entry(
        message.message_id,
        entry.hash,
        MessageForm::Compressed(compression),
        || {
            let images = message
                .content
                .iter()
                .filter(|part| matches!(part, Part::Image(_)))
                .count();
            let original = Original {
                id: Some(message.message_id.short_id()),
                images,
            };
            let compress_one = |result: &ToolResult| {
                let kept = reduce_result(
                    tool_name(message, result),
                    &result.envelope,
                    compression.limits,
                );
                let text = match compression.protocol {
                    ToolProtocol::Native | ToolProtocol::Xml => {
                        format_plain_text(kept, &result.envelope, original)
                    }
                    ToolProtocol::React => format_json_line(kept, &result.envelope, original),
                };
                let envelope = Envelope {
                    status: result.envelope.status,
                    text,
                    ..Envelope::default()
                };
                let tool_call_id = result.tool_call_id.clone();
                let name = result.name.clone();
                Part::ToolResult(Box::new(ToolResult {
                    tool_call_id,
                    name,
                    envelope,
                }))
            };
            let content = message.tool_results().map(compress_one).collect();
            Message {
                content,
                metadata: message.metadata.clone(),
                ..without_content(message)
            }
        },
    );
    (u64::from(made.tokens) * 5 <= u64::from(entry.tokens) * 4).then_some(made)
}

/// Replaces every uncompressed result by its envelope as one line of JSON. Models with the `react`
/// protocol read results in this form.
pub(crate) fn show_envelopes(line: &mut Timeline, maker: EntryMaker<'_>) {
    for item in line
        .items
        .iter_mut()
        .filter(|item| item.role() == Role::Tool && item.owner != COMPRESSED_OWNER)
    {
        let message = &item.entry.message;
        item.entry = maker.derived_entry(
            message.message_id,
            item.entry.hash,
            MessageForm::Envelope,
            || {
                let mut message = message.clone();
                for part in &mut message.content {
                    if let Part::ToolResult(result) = part {
                        let text = format_envelope(&result.envelope);
                        result.envelope = Envelope {
                            status: result.envelope.status,
                            text,
                            ..Envelope::default()
                        };
                    }
                }
                message
            },
        );
    }
}

/// True for a scalar that is not in the envelope's text already.
fn is_small_addition(value: &Value, envelope_text: &str) -> bool {
    match value {
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !envelope_text.contains(text.trim_end()),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

/// Formats the envelope as one line of JSON: its text once, in `text`, and the data fields that the
/// text does not contain.
fn format_envelope(envelope: &Envelope) -> String {
    /// The data fields that repeat the call or the text, or that are of no use to the model.
    const OMITTED_FIELDS: [&str; 9] = [
        "path",
        "file",
        "content",
        "command",
        "cwd",
        "hash",
        "mtime",
        "duration_ms",
        "message_id",
    ];
    let mut fields = Map::new();
    fields.insert("status".into(), status_name(envelope.status).into());
    if let Value::Object(data) = &envelope.data {
        let kept = data.iter().filter(|(key, value)| {
            !OMITTED_FIELDS.contains(&key.as_str()) && is_small_addition(value, &envelope.text)
        });
        let kept: Map<_, _> = kept
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        if !kept.is_empty() {
            fields.insert("data".into(), kept.into());
        }
    }
    fields.insert("text".into(), envelope.text.as_str().into());
    if let Some(error) = &envelope.error {
        let message = Some(&error.message).filter(|message| **message != envelope.text);
        fields.insert("error".into(), json!({ "code": error.code }));
        if let (Some(message), Some(error)) = (message, fields.get_mut("error")) {
            error["message"] = message.as_str().into();
        }
    }
    Value::Object(fields).to_string()
}

/// Returns a message with the id, role and time of `message`, without content.
fn without_content(message: &Message) -> Message {
    Message::new(
        message.message_id,
        message.role,
        Vec::new(),
        message.created_at,
    )
}

/// Returns the compressed envelope of a result of the tool `name`, as one line of JSON.
pub fn compress_envelope(name: &str, envelope: &Envelope, limits: CompressLimits) -> String {
    format_json_line(
        reduce_result(name, envelope, limits),
        envelope,
        Original {
            id: None,
            images: 0,
        },
    )
}

/// The message that contains the uncompressed result.
#[derive(Clone, Copy)]
struct Original {
    /// The id by which the message can be recalled.
    id: Option<ShortId>,
    /// The number of images that follow the result.
    images: usize,
}

/// Formats the compressed data as one line of JSON.
fn format_json_line(kept: Kept, envelope: &Envelope, original: Original) -> String {
    let Kept { mut data, left_out } = kept;
    if original.images > 0 {
        data.insert("images_left_out".into(), original.images.into());
    }
    if let Some(id) = original.id.filter(|_| left_out || original.images > 0) {
        data.insert("message_id".into(), id.to_string().into());
    }
    let mut compressed = Map::new();
    compressed.insert("status".into(), status_name(envelope.status).into());
    if !data.is_empty() {
        compressed.insert("data".into(), data.into());
    }
    if let Some(error) = &envelope.error {
        compressed.insert(
            "error".into(),
            json!({ "code": error.code, "message": error.message }),
        );
    }
    Value::Object(compressed).to_string()
}

/// Formats the compressed data as a line of JSON, followed by the lines of files and output that
/// the data contains.
fn format_plain_text(mut kept: Kept, envelope: &Envelope, original: Original) -> String {
    let mut bodies: Vec<(&str, String)> = Vec::new();
    for key in [
        "entries", "lines", "content", "output", "diff", "stdout", "stderr", "failing",
    ] {
        if let Some(body) = kept.data.get(key).and_then(format_body) {
            kept.data.shift_remove(key);
            bodies.push((key, body));
        }
    }
    let mut diffs = Vec::new();
    let files = kept.data.get_mut("files").and_then(Value::as_array_mut);
    for file in files.into_iter().flatten().filter_map(Value::as_object_mut) {
        if let Some(Value::String(diff)) = file.shift_remove("diff") {
            let path = file.get("path").and_then(Value::as_str).unwrap_or_default();
            diffs.push(format!("{path}:\n{diff}"));
        }
    }
    let mut text = format_json_line(kept, envelope, original);
    let several = bodies.len() > 1;
    for (key, body) in &bodies {
        let heading = if several {
            format!("\n{key}:")
        } else {
            String::new()
        };
        text.extend([heading.as_str(), "\n", body.trim_end_matches('\n')]);
    }
    for diff in diffs {
        text.extend(["\n", diff.as_str()]);
    }
    text
}

/// Formats a text or a list as lines; `None` for other values.
fn format_body(value: &Value) -> Option<String> {
    let line = |entry: &Value| match entry {
        Value::String(text) => Some(text.clone()),
        Value::Object(hit) => {
            let path = hit.get("path")?.as_str()?;
            let text = hit.get("text")?.as_str()?;
            Some(format!("{path}:{}:{text}", hit.get("line")?))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => None,
    };
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(entries) => {
            let lines: Option<Vec<_>> = entries.iter().map(line).collect();
            lines.map(|lines| lines.join("\n"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

pub(crate) fn status_name(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Success => "success",
        ToolStatus::Partial => "partial",
        ToolStatus::Error => "error",
    }
}

#[cfg(test)]
mod tests;
