//! The compressed form of a tool result, by rule and without a model.
//!
//! While a round runs the model reads every result whole. From the next round on it reads the compressed envelope as one line
//! of JSON: `status`, the bounded `data`, and on failure the whole `error`. The rules bound the one large field each tool has
//! and pass its other fields on, so that markers such as `truncated` or `fallback` survive. The stored message is untouched.

use std::sync::Arc;

use haft_types::{Entry, Envelope, Message, Part, Role, ShortId, ToolResult, ToolStatus};
use serde_json::{Map, Value, json};

use crate::build::rounds::{COMPRESSED, MASKED, Timeline, TimelineItem};
use crate::memo::{EntryMaker, MessageForm};
use crate::policy::CompressLimits;

/// Characters of a text without line structure that are kept, half head and half tail.
const OTHER_CHARS: usize = 4_000;

/// Under which name a result's metadata holds the tool's own name: the model may have called it by another one.
pub const TOOL: &str = "tool";

/// Replaces every result of a round before this one by its compressed form.
pub(crate) fn compress_finished(line: &mut Timeline, round: u32, limits: CompressLimits, maker: EntryMaker<'_>) {
    for item in line.items.iter_mut().filter(|item| item.round < round && is_compressible(item)) {
        item.entry = compressed_entry(&item.entry, limits, maker);
        item.owner = COMPRESSED;
    }
}

/// Whether this is a result that is still whole and need not stay so.
pub(crate) fn is_compressible(item: &TimelineItem) -> bool {
    item.role() == Role::Tool && item.owner != COMPRESSED && item.owner != MASKED && !item.pinned
}

/// The tokens of the compressed form.
pub(crate) fn compressed_tokens(item: &TimelineItem, limits: CompressLimits, maker: EntryMaker<'_>) -> u32 {
    compressed_entry(&item.entry, limits, maker).tokens
}

fn compressed_entry(entry: &Arc<Entry>, limits: CompressLimits, maker: EntryMaker<'_>) -> Arc<Entry> {
    let message = &entry.message;
    maker.entry(message.message_id, entry.hash, MessageForm::Compressed(limits), || {
        let images = message.content.iter().filter(|part| matches!(part, Part::Image(_))).count();
        let compress_one = |result: &ToolResult| {
            let envelope = Envelope {
                status: result.envelope.status,
                text: compressed_text(
                    message.metadata.get(TOOL).and_then(Value::as_str).unwrap_or(&result.name),
                    &result.envelope,
                    Original { id: Some(message.message_id.short()), images },
                    limits,
                ),
                ..Envelope::default()
            };
            let (tool_call_id, name) = (result.tool_call_id.clone(), result.name.clone());
            Part::ToolResult(Box::new(ToolResult { tool_call_id, name, envelope }))
        };
        let content = message.tool_results().map(compress_one).collect();
        Message { content, metadata: message.metadata.clone(), ..bare(message) }
    })
}

/// Replaces every result that is still whole by its envelope as one line of JSON: what `react` models read in the running round
///.
pub(crate) fn show_envelopes(line: &mut Timeline, maker: EntryMaker<'_>) {
    for item in line.items.iter_mut().filter(|item| item.role() == Role::Tool && item.owner != COMPRESSED) {
        let message = &item.entry.message;
        item.entry = maker.entry(message.message_id, item.entry.hash, MessageForm::Envelope, || {
            let mut message = message.clone();
            for part in &mut message.content {
                if let Part::ToolResult(result) = part {
                    let text = envelope_text(&result.envelope);
                    result.envelope = Envelope { status: result.envelope.status, text, ..Envelope::default() };
                }
            }
            message
        });
    }
}

/// The whole envelope as one line of JSON, without what it does not hold.
fn envelope_text(envelope: &Envelope) -> String {
    let error = envelope.error.as_ref().map(|error| json!({ "code": error.code, "message": error.message }));
    let fields = [
        ("status", Some(status_name(envelope.status).into())),
        ("data", Some(envelope.data.clone())),
        ("text", Some(envelope.text.as_str().into())),
        ("stats", Some(envelope.stats.clone())),
        ("context", Some(envelope.context.clone())),
        ("error", error),
    ];
    let held = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(held.filter(|(_, value)| !value.is_null()).collect()).to_string()
}

/// A message of the same id, role and time, without content.
fn bare(message: &Message) -> Message {
    Message::new(message.message_id, message.role, Vec::new(), message.created_at)
}

/// The compressed envelope of a result of the tool `name`, as one line of JSON.
pub fn compress(name: &str, envelope: &Envelope, limits: CompressLimits) -> String {
    compressed_text(name, envelope, Original { id: None, images: 0 }, limits)
}

/// The message a result stands in.
#[derive(Clone, Copy)]
struct Original {
    /// By which it can be recalled.
    id: Option<ShortId>,
    /// Pictures beside the result.
    images: usize,
}

fn compressed_text(name: &str, envelope: &Envelope, original: Original, limits: CompressLimits) -> String {
    let mut data = compressed_data(name, envelope, limits);
    if original.images > 0 {
        data.insert("images_left_out".into(), original.images.into());
    }
    // Where it says less than the whole did, it names what `recall` takes.
    let says: usize = data.values().map(|value| value.as_str().map_or_else(|| value.to_string().len(), str::len)).sum();
    if let Some(id) = original.id.filter(|_| says < envelope.text.len()) {
        data.insert("message_id".into(), id.to_string().into());
    }
    let mut compressed = Map::new();
    compressed.insert("status".into(), status_name(envelope.status).into());
    if !data.is_empty() {
        compressed.insert("data".into(), data.into());
    }
    if let Some(error) = &envelope.error {
        compressed.insert("error".into(), json!({ "code": error.code, "message": error.message }));
    }
    Value::Object(compressed).to_string()
}

pub(crate) fn status_name(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Success => "success",
        ToolStatus::Partial => "partial",
        ToolStatus::Error => "error",
    }
}

fn compressed_data(name: &str, envelope: &Envelope, limits: CompressLimits) -> Map<String, Value> {
    let Value::Object(data) = &envelope.data else { return other(envelope, limits.other) };
    let mut data = data.clone();
    match name {
        "list_files" => first(&mut data, "entries", limits.list),
        "glob" => first(&mut data, "entries", limits.glob),
        "search_files" => first(&mut data, "lines", limits.grep),
        "read_file" | "ac_mod_read" => numbered(&mut data, limits.read),
        "write_to_file" | "replace_in_file" | "ac_mod_write" => small_diff(&mut data, limits.edit),
        "multi_edit" | "apply_patch" => small_diffs(&mut data, limits.edit),
        "execute_command" => shell(&mut data, limits),
        "session_start" | "session_interactive" | "session_stop" | "background_task" => running(&mut data, limits),
        "todo_read" | "todo_write" => todo(&mut data),
        _ => return other(envelope, limits.other),
    }
    data
}

/// Keeps the first entries of a list.
fn first(data: &mut Map<String, Value>, key: &str, limit: u32) {
    if let Some(Value::Array(entries)) = data.get_mut(key)
        && entries.len() > limit as usize
    {
        entries.truncate(limit as usize);
        data.insert("truncated".into(), true.into());
    }
}

/// Numbers the lines of a file and keeps the first ones.
fn numbered(data: &mut Map<String, Value>, limit: u32) {
    let start = data.get("start_line").and_then(Value::as_u64).unwrap_or(1);
    let Some(Value::String(content)) = data.get("content") else { return };
    let lines = (start..).zip(content.lines());
    let numbered: Vec<_> = lines.take(limit as usize).map(|(number, line)| format!("{number}\t{line}")).collect();
    let cut = content.lines().nth(limit as usize).is_some();
    if cut {
        data.insert("end_line".into(), (start + u64::from(limit)).saturating_sub(1).into());
        data.insert("truncated".into(), true.into());
    }
    data.insert("content".into(), numbered.join("\n").into());
}

/// Leaves a large diff out; counts and ranges stay.
fn small_diff(data: &mut Map<String, Value>, limit: u32) {
    let large = |diff: &Value| diff.as_str().is_some_and(|diff| diff.lines().nth(limit as usize).is_some());
    if data.get("diff").is_some_and(large) {
        data.remove("diff");
        data.insert("truncated".into(), true.into());
    }
}

/// Keeps those diffs of several files that are small together; counts and ranges stay.
fn small_diffs(data: &mut Map<String, Value>, limit: u32) {
    let Some(Value::Array(files)) = data.get_mut("files") else { return };
    let mut room = limit;
    for file in files.iter_mut().filter_map(Value::as_object_mut) {
        small_diff(file, room);
        let kept = file.get("diff").and_then(Value::as_str).map_or(0, |diff| diff.lines().count());
        room = room.saturating_sub(kept as u32);
    }
}

/// Keeps how a command ended, the ends of its output and the last of its complaints. What was run stands in the call.
fn shell(data: &mut Map<String, Value>, limits: CompressLimits) {
    for known in ["command", "cwd", "duration_ms"] {
        data.shift_remove(known);
    }
    stdout_ends(data, limits);
    let all = counted(data, "stderr_lines");
    for count in ["stderr_lines", "stderr_bytes"] {
        data.shift_remove(count);
    }
    let Some(Value::String(stderr)) = data.get("stderr") else { return };
    let lines: Vec<_> = stderr.lines().collect();
    if lines.is_empty() {
        data.shift_remove("stderr");
        return;
    }
    let kept = &lines[lines.len().saturating_sub(limits.stderr as usize)..];
    let left_out = all.unwrap_or(lines.len()).saturating_sub(kept.len());
    let note = if left_out > 0 { format!("[{left_out} lines left out]\n") } else { String::new() };
    let text = format!("{note}{}", ends(&kept.join("\n"), usize::MAX, kept.len()));
    data.insert("stderr".into(), text.into());
}

/// Keeps which session or task it was, how it stood, and the ends of what it had written.
fn running(data: &mut Map<String, Value>, limits: CompressLimits) {
    data.shift_remove("duration_ms");
    stdout_ends(data, limits);
    first(data, "tasks", limits.list);
}

/// Keeps the ends of what was written. The counts are of all of it; the text may already be bounded.
fn stdout_ends(data: &mut Map<String, Value>, limits: CompressLimits) {
    let Some(Value::String(stdout)) = data.get("stdout") else { return };
    let (lines, bytes) = (stdout.lines().count(), stdout.len());
    let text = ends(stdout, limits.stdout as usize, counted(data, "stdout_lines").unwrap_or(lines));
    data.entry("stdout_lines").or_insert(lines.into());
    data.entry("stdout_bytes").or_insert(bytes.into());
    data.insert("stdout".into(), text.into());
}

fn counted(data: &Map<String, Value>, key: &str) -> Option<usize> {
    data.get(key).and_then(Value::as_u64).map(|count| count as usize)
}

/// Keeps the counts and the item in progress.
fn todo(data: &mut Map<String, Value>) {
    let Some(Value::Array(items)) = data.shift_remove("items") else { return };
    let current = items.iter().find(|item| item["status"] == "in_progress");
    if let Some(current) = current {
        data.insert("current".into(), current["content"].clone());
    }
}

/// The ends of the text, and the markers of the data.
fn other(envelope: &Envelope, limit: u32) -> Map<String, Value> {
    let mut data = Map::new();
    let said = envelope.error.as_ref().is_some_and(|error| error.message == envelope.text);
    if !said && !envelope.text.is_empty() {
        data.insert("output".into(), ends(&envelope.text, limit as usize, envelope.text.lines().count()).into());
    }
    if let Value::Object(fields) = &envelope.data {
        let markers = fields.iter().filter(|(key, value)| value.is_boolean() || key.as_str() == "note");
        data.extend(markers.map(|(key, value)| (key.clone(), value.clone())));
    }
    data
}

/// The first and last lines of a text, or characters where its lines are long, with a note of what is left out between. `total`
/// is the number of lines the text had before anyone cut it.
fn ends(text: &str, lines: usize, total: usize) -> String {
    let text = text.trim_end_matches('\n');
    let all: Vec<_> = text.lines().collect();
    let text = if all.len() > lines {
        let (head, tail) = (lines.div_ceil(2), lines / 2);
        let note = format!("[{} lines left out]", total.max(all.len()) - lines);
        let kept = all[..head].iter().copied().chain([note.as_str()]).chain(all[all.len() - tail..].iter().copied());
        kept.collect::<Vec<_>>().join("\n")
    } else {
        text.to_owned()
    };
    let characters = text.chars().count();
    if characters <= OTHER_CHARS {
        return text;
    }
    let head: String = text.chars().take(OTHER_CHARS / 2).collect();
    let tail: String = text.chars().skip(characters - OTHER_CHARS / 2).collect();
    format!("{head}\n[{} characters left out]\n{tail}", characters - OTHER_CHARS)
}

#[cfg(test)]
mod tests;
