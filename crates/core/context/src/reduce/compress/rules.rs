//! Rules for the part of each tool's result that is kept.
//!
//! Every rule bounds the one large field of its tool and passes the other fields on, so that
//! markers such as `truncated` or `fallback` survive.

use haft_types::Envelope;
use serde_json::{Map, Value};

use crate::policy::CompressLimits;
use crate::reduce::failing_lines::find_failing_lines;

/// The number of characters kept of a text without line structure, half from its head and half from
/// its tail.
pub(super) const MAX_UNSTRUCTURED_CHARS: usize = 4_000;

/// The number of first lines kept of a diff that is too long to be kept whole.
const DIFF_HEAD_LINES: usize = 20;

/// The data of a result after compression.
pub(super) struct Kept {
    pub(super) data: Map<String, Value>,
    /// True if compression removed a part of the data.
    pub(super) left_out: bool,
}

/// Reduces a result by the rule for the tool `name`. The names of failing tests are kept even if
/// the rule would leave them out.
pub(super) fn reduce_result(name: &str, envelope: &Envelope, limits: CompressLimits) -> Kept {
    let mut kept = apply_tool_rule(name, envelope, limits);
    if kept.left_out {
        let failing: Vec<_> = find_failing_lines(&envelope.text)
            .filter(|line| {
                !kept
                    .data
                    .values()
                    .any(|value| value.as_str().is_some_and(|text| text.contains(line)))
            })
            .map(Value::from)
            .collect();
        if !failing.is_empty() {
            kept.data.insert("failing".into(), failing.into());
        }
    }
    kept
}

fn apply_tool_rule(name: &str, envelope: &Envelope, limits: CompressLimits) -> Kept {
    let Value::Object(data) = &envelope.data else {
        return reduce_other_result(envelope, limits.other);
    };
    let mut data = data.clone();
    let left_out = match name {
        "list_files" => keep_first_entries(&mut data, "entries", limits.list),
        "glob" => keep_first_entries(&mut data, "entries", limits.glob),
        "search_files" => keep_first_entries(&mut data, "lines", limits.grep),
        "read_file" | "ac_mod_read" => number_lines(&mut data, limits.read),
        "write_to_file" | "write_tool" | "edit_file" | "replace_in_file" | "ac_mod_write" => {
            shorten_diff(&mut data, limits.edit)
        }
        "multi_edit" | "apply_patch" => shorten_diffs(&mut data, limits.edit),
        "execute_command" => reduce_command_result(&mut data, limits),
        "session_start" | "session_interactive" | "session_stop" | "background_task" => {
            reduce_session_result(&mut data, limits)
        }
        "todo_read" | "todo_write" => reduce_todo_result(&mut data),
        _ => return reduce_other_result(envelope, limits.other),
    };
    Kept { data, left_out }
}

/// Keeps the first `limit` entries of the list under `key`. Returns true if any entries were left
/// out.
fn keep_first_entries(data: &mut Map<String, Value>, key: &str, limit: u32) -> bool {
    let Some(Value::Array(entries)) = data.get_mut(key) else {
        return false;
    };
    let cut = entries.len() > limit as usize;
    if cut {
        entries.truncate(limit as usize);
        data.insert("truncated".into(), true.into());
    }
    cut
}

/// Numbers the lines of a file and keeps the first `limit`. Returns true if any were left out. The
/// modification time is removed, because a model has no use for it.
fn number_lines(data: &mut Map<String, Value>, limit: u32) -> bool {
    data.shift_remove("mtime");
    let start = data.get("start_line").and_then(Value::as_u64).unwrap_or(1);
    let Some(Value::String(content)) = data.get("content") else {
        return false;
    };
    let lines = (start..).zip(content.lines());
    let numbered: Vec<_> = lines
        .take(limit as usize)
        .map(|(number, line)| format!("{number}\t{line}"))
        .collect();
    let cut = content.lines().nth(limit as usize).is_some();
    if cut {
        data.insert(
            "end_line".into(),
            (start + u64::from(limit)).saturating_sub(1).into(),
        );
        data.insert("truncated".into(), true.into());
    }
    data.insert("content".into(), numbered.join("\n").into());
    cut
}

/// Keeps a diff, or the head of a long one, with its counts and ranges. Returns true if a part was
/// left out. If the diff was too large for the tool, the result contains only a head.
fn shorten_diff(data: &mut Map<String, Value>, limit: u32) -> bool {
    let head = data.shift_remove("diff_head");
    let only_head = head.is_some();
    data.extend(head.map(|head| ("diff".to_owned(), head)));
    let Some(Value::String(diff)) = data.get("diff") else {
        return false;
    };
    let lines: Vec<_> = diff.lines().collect();
    if lines.len() <= limit as usize {
        return only_head;
    }
    let head = lines[..DIFF_HEAD_LINES.min(limit as usize)].join("\n");
    data.insert("diff".into(), head.into());
    data.insert("truncated".into(), true.into());
    true
}

/// Keeps the first `limit` lines of the diffs of several files. Of later diffs, it keeps only the
/// headers, with counts and ranges. Returns true if lines were left out.
fn shorten_diffs(data: &mut Map<String, Value>, limit: u32) -> bool {
    let Some(Value::Array(files)) = data.get_mut("files") else {
        return false;
    };
    let mut room = limit;
    let mut left_out = false;
    for file in files.iter_mut().filter_map(Value::as_object_mut) {
        left_out |= shorten_diff(file, room);
        let kept = file
            .get("diff")
            .and_then(Value::as_str)
            .map_or(0, |diff| diff.lines().count());
        room = room.saturating_sub(kept as u32);
        if room == 0 && file.get("diff").is_some_and(|diff| diff == "") {
            file.shift_remove("diff");
        }
    }
    left_out
}

/// Keeps a command's exit status, the head and tail of its output, and the end of its standard
/// error. The command line is dropped, because the call contains it. Returns true if a part of the
/// output was left out.
fn reduce_command_result(data: &mut Map<String, Value>, limits: CompressLimits) -> bool {
    for known in ["command", "cwd", "duration_ms"] {
        data.shift_remove(known);
    }
    let stdout = cut_stdout(data, limits);
    let all = get_count(data, "stderr_lines");
    for count in ["stderr_lines", "stderr_bytes"] {
        data.shift_remove(count);
    }
    let Some(Value::String(stderr)) = data.get("stderr") else {
        return stdout;
    };
    let lines: Vec<_> = stderr.lines().collect();
    if lines.is_empty() {
        data.shift_remove("stderr");
        return stdout;
    }
    let kept = &lines[lines.len().saturating_sub(limits.stderr as usize)..];
    let left_out = all.unwrap_or(lines.len()).saturating_sub(kept.len());
    let note = if left_out > 0 {
        format!("[{left_out} lines left out]\n")
    } else {
        String::new()
    };
    let (ends, cut) = cut_to_ends(&kept.join("\n"), usize::MAX, kept.len());
    data.insert("stderr".into(), format!("{note}{ends}").into());
    stdout || cut || left_out > 0
}

/// Keeps the identity and state of a session or task, and the head and tail of its output. Returns
/// true if a part was left out.
fn reduce_session_result(data: &mut Map<String, Value>, limits: CompressLimits) -> bool {
    data.shift_remove("duration_ms");
    let stdout = cut_stdout(data, limits);
    keep_first_entries(data, "tasks", limits.list) || stdout
}

/// Keeps the head and tail of standard output. The reported counts cover all of the output, even if
/// the tool has already shortened the text. Returns true if a part was left out.
fn cut_stdout(data: &mut Map<String, Value>, limits: CompressLimits) -> bool {
    let Some(Value::String(stdout)) = data.get("stdout") else {
        return false;
    };
    let lines = stdout.lines().count();
    let bytes = stdout.len();
    let (text, cut) = cut_to_ends(
        stdout,
        limits.stdout as usize,
        get_count(data, "stdout_lines").unwrap_or(lines),
    );
    // A long line of multi-byte characters was already cut by the tool.
    let cut = cut
        || (bytes > MAX_UNSTRUCTURED_CHARS
            && get_count(data, "stdout_bytes").is_some_and(|all| all > bytes));
    if text.is_empty() {
        for nothing in ["stdout", "stdout_lines", "stdout_bytes"] {
            data.shift_remove(nothing);
        }
        return false;
    }
    data.entry("stdout_lines").or_insert(lines.into());
    data.entry("stdout_bytes").or_insert(bytes.into());
    data.insert("stdout".into(), text.into());
    cut
}

fn get_count(data: &Map<String, Value>, key: &str) -> Option<usize> {
    data.get(key)
        .and_then(Value::as_u64)
        .map(|count| count as usize)
}

/// Keeps the counts of a TODO list and its item in progress. Returns true unless the list is empty,
/// because its other items are left out.
fn reduce_todo_result(data: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(items)) = data.shift_remove("items") else {
        return false;
    };
    if let Some(current) = items.iter().find(|item| item["status"] == "in_progress") {
        data.insert("current".into(), current["content"].clone());
    }
    !items.is_empty()
}

/// Keeps the head and tail of the text, and those fields of the data that mark its state.
fn reduce_other_result(envelope: &Envelope, limit: u32) -> Kept {
    let mut data = Map::new();
    let mut left_out = false;
    let said = envelope
        .error
        .as_ref()
        .is_some_and(|error| error.message == envelope.text);
    if !said && !envelope.text.is_empty() {
        let (output, cut) = cut_to_ends(
            &envelope.text,
            limit as usize,
            envelope.text.lines().count(),
        );
        data.insert("output".into(), output.into());
        left_out = cut;
    }
    if let Value::Object(fields) = &envelope.data {
        let markers = fields
            .iter()
            .filter(|(key, value)| value.is_boolean() || key.as_str() == "note");
        data.extend(markers.map(|(key, value)| (key.clone(), value.clone())));
    }
    Kept { data, left_out }
}

/// Cuts a text to its first and last lines, or characters if its lines are long, with a note on the
/// omitted part between them. Returns the text, and true if anything is omitted. `total` is the
/// number of lines before any earlier cut.
pub(super) fn cut_to_ends(text: &str, lines: usize, total: usize) -> (String, bool) {
    let text = text.trim_end_matches('\n');
    let all: Vec<_> = text.lines().collect();
    let cut = all.len() > lines;
    let text = if cut {
        let head = lines.div_ceil(2);
        let tail = lines / 2;
        let note = format!("[{} lines left out]", total.max(all.len()) - lines);
        let kept = all[..head]
            .iter()
            .copied()
            .chain([note.as_str()])
            .chain(all[all.len() - tail..].iter().copied());
        kept.collect::<Vec<_>>().join("\n")
    } else {
        text.to_owned()
    };
    let characters = text.chars().count();
    if characters <= MAX_UNSTRUCTURED_CHARS {
        return (text, cut);
    }
    let head: String = text.chars().take(MAX_UNSTRUCTURED_CHARS / 2).collect();
    let tail: String = text
        .chars()
        .skip(characters - MAX_UNSTRUCTURED_CHARS / 2)
        .collect();
    (
        format!(
            "{head}\n[{} characters left out]\n{tail}",
            characters - MAX_UNSTRUCTURED_CHARS
        ),
        true,
    )
}
