//! Measures whether a request shows the text that the recorded reply depends on.
//!
//! ```text
//! read a.rs (cleared)  …  edit a.rs, a line of it       blind: no request text holds the line
//! read a.rs (cleared)  …  edit a.rs, a new read before  not blind: the line is there
//! ```
//!
//! A line counts only if the conversation so far holds it, so that nothing is blind where nothing
//! is left out. Lines that a tool sent with the error of an edit do not count as text that the
//! model can see: it would have needed a failed edit to get them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use haft_context::CallSubject;
use haft_types::{Entry, Message, MessageId, Part, Request, Role, ToolCall, ToolStatus};
use serde_json::Value;

use crate::replay::join_strings;

/// The parameter names under which edit tools take the text to replace.
const OLD_TEXT: [&str; 6] = [
    "old_string",
    "old_str",
    "old_text",
    "oldText",
    "old_content",
    "search",
];

/// The number of edits in a reply, and the number of edits that replace text which the request does
/// not contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenEdits {
    /// The number of calls that replace text.
    pub(crate) edits: usize,
    /// The number of edits that replace text which occurs only in messages left out of the request.
    pub(crate) blind: usize,
    /// The number of tokens in the omitted messages that contain the text to replace.
    pub(crate) tokens: u64,
}

/// Counts the edits in a reply and checks whether the answered request contains the text that they
/// replace. `history` contains the messages before the reply.
pub(crate) fn seen_edits(reply: &Message, history: &[Arc<Entry>], request: &Request) -> SeenEdits {
    let mut seen = SeenEdits::default();
    let mut visible = None;
    for call in reply.tool_calls() {
        let old = old_text(call);
        if old.is_empty() {
            continue;
        }
        seen.edits += 1;
        let visible = visible.get_or_insert_with(|| {
            let sent = request
                .segments
                .iter()
                .map(|segment| &segment.entry.message);
            visible_text(sent).join("\n")
        });
        let missing: Vec<&str> = old
            .iter()
            .flat_map(|text| text.lines())
            .map(str::trim)
            .filter(|line| !line.is_empty() && !visible.contains(line))
            .collect();
        if missing.is_empty() {
            continue;
        }
        let texts = visible_text(history.iter().map(|entry| &entry.message));
        let holders: HashSet<usize> = missing
            .iter()
            .filter_map(|line| texts.iter().rposition(|text| text.contains(line)))
            .collect();
        seen.blind += usize::from(!holders.is_empty());
        seen.tokens += holders
            .iter()
            .map(|index| u64::from(history[*index].tokens))
            .sum::<u64>();
    }
    seen
}

/// Returns one text for each message, with everything from which a model can copy the text to
/// replace.
fn visible_text<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<String> {
    let mut edits: HashMap<&str, bool> = HashMap::new();
    let mut texts = Vec::new();
    for message in messages {
        let mut text = String::new();
        for part in &message.content {
            let piece = match part {
                Part::Text { text, .. } => text,
                Part::ToolCall(call) => {
                    let is_edit =
                        matches!(CallSubject::from_call(call), Some(CallSubject::Edit { .. }));
                    edits.insert(&call.id, is_edit || !old_text(call).is_empty());
                    match serde_json::from_str(&call.arguments) {
                        Ok(arguments) => &join_strings(&arguments),
                        Err(_) => &call.arguments,
                    }
                }
                Part::ToolResult(result) => {
                    let failed = result.envelope.status == ToolStatus::Error;
                    if failed && edits.get(result.tool_call_id.as_str()) == Some(&true) {
                        continue;
                    }
                    &result.envelope.text
                }
                Part::Thinking(_) | Part::Image(_) => continue,
            };
            text.push_str(piece);
            text.push('\n');
        }
        texts.push(text);
    }
    texts
}

/// Returns the texts that an edit call replaces, or an empty list for any other tool call.
fn old_text(call: &ToolCall) -> Vec<String> {
    let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) else {
        return Vec::new();
    };
    let mut texts = Vec::new();
    collect_old(&arguments, &mut texts);
    for name in ["diff", "patch", "input"] {
        if let Some(patch) = arguments.get(name).and_then(Value::as_str) {
            texts.extend(replaced_blocks(patch));
        }
    }
    texts.retain(|text| !text.trim().is_empty());
    texts
}

fn collect_old(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if OLD_TEXT.contains(&name.as_str()) => {
                        texts.push(text.clone());
                    }
                    value => collect_old(value, texts),
                }
            }
        }
        Value::Array(values) => values.iter().for_each(|value| collect_old(value, texts)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the lines that a patch expects in the file: the lines in its search blocks, or the lines
/// that it removes or keeps. Returns `None` if `patch` is in neither format.
fn replaced_blocks(patch: &str) -> Option<String> {
    let is_blocks = patch.contains("<<<<<<< SEARCH") || patch.contains("------- SEARCH");
    let is_patch = patch.contains("*** Update File: ");
    let mut old = String::new();
    let mut inside = false;
    for line in patch.lines() {
        let kept = if is_blocks {
            match line {
                _ if line.ends_with(" SEARCH") => {
                    inside = true;
                    None
                }
                _ if line.starts_with("=======") => {
                    inside = false;
                    None
                }
                line => inside.then_some(line),
            }
        } else if line.starts_with("*** ") {
            inside = line.starts_with("*** Update File: ");
            None
        } else {
            line.strip_prefix(['-', ' ']).filter(|_| inside)
        };
        old.extend(kept.into_iter().flat_map(|line| [line, "\n"]));
    }
    (is_blocks || is_patch).then_some(old)
}

/// Returns the number of tool results in `new` that the request leaves out or shortens, although
/// the model has not yet answered them. Results that were spilled to files because the newest step
/// alone exceeds the window do not count.
pub(crate) fn unseen_results(new: &[Arc<Entry>], request: &Request) -> usize {
    /// The owner of a segment with a result that was spilled to a file.
    const SPILLED: &str = "history:excerpt";
    /// The owner of the message that shows the running steps in the execute view.
    const WINDOW: &str = "view:window";
    let results = new.iter().filter(|entry| entry.message.role == Role::Tool);
    let results: Vec<&Arc<Entry>> = results.collect();
    if results.is_empty() {
        return 0;
    }
    let sent: HashMap<MessageId, &haft_types::Segment> = request
        .segments
        .iter()
        .map(|segment| (segment.entry.message.message_id, segment))
        .collect();
    let window = request
        .segments
        .iter()
        .find(|segment| segment.owner == WINDOW)
        .map(|segment| segment.entry.message.joined_text());
    let missing = |entry: &&Arc<Entry>| {
        let texts = entry
            .message
            .tool_results()
            .map(|result| result.envelope.text.as_str());
        let shown: Vec<_> = match (sent.get(&entry.message.message_id), &window) {
            (Some(segment), _) if segment.owner == SPILLED => return 0,
            (Some(segment), _) => {
                let shown = segment.entry.message.tool_results();
                shown.map(|result| result.envelope.text.clone()).collect()
            }
            (None, Some(window)) => vec![window.clone()],
            (None, None) => Vec::new(),
        };
        texts
            .filter(|text| !shown.iter().any(|shown| shows(shown, text)))
            .count()
    };
    results.iter().map(missing).sum()
}

/// True if `shown` holds the whole text of a result: as it is, or as a string of JSON, which is the
/// form that `react` models read.
fn shows(shown: &str, text: &str) -> bool {
    let text = text.trim_end();
    shown.contains(text) || shown.contains(Value::from(text).to_string().trim_matches('"'))
}

#[cfg(test)]
mod tests;
