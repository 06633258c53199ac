//! Lists the messages of a sub-agent that its answer is based on.

use std::sync::Arc;

use haft_tool::Evidence;
use haft_types::{Entry, Role};
use serde_json::Value;

const MOST: usize = 20;
/// The width in columns of a path or command in the evidence.
const LONGEST: usize = 60;

/// Returns the newest successful tool results and the final answer, oldest first.
pub(crate) fn evidence(history: &[Arc<Entry>]) -> Vec<Evidence> {
    let mut found: Vec<_> = history.iter().filter_map(|entry| result(entry)).collect();
    found.drain(..found.len().saturating_sub(MOST));
    let answer = history
        .iter()
        .rfind(|entry| entry.message.role == Role::Assistant);
    found.extend(answer.map(|entry| Evidence {
        id: id(entry),
        what: "its last message".to_owned(),
    }));
    found
}

fn result(entry: &Entry) -> Option<Evidence> {
    let result = entry
        .message
        .tool_results()
        .next()
        .filter(|result| result.envelope.error.is_none())?;
    let telling = ["path", "command", "regex", "pattern"];
    let about = telling
        .iter()
        .find_map(|key| result.envelope.data.get(key).and_then(Value::as_str));
    let about = about
        .and_then(|about| about.lines().next())
        .unwrap_or_default();
    let what = format!(
        "{} {}",
        result.name,
        haft_text::truncate_to_width(about, LONGEST)
    );
    Some(Evidence {
        id: id(entry),
        what: what.trim_end().to_owned(),
    })
}

fn id(entry: &Entry) -> String {
    entry.message.message_id.short().to_string()
}
