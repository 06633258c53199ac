//! Lists the messages of a sub-agent that its answer is based on.

use std::sync::Arc;

use haft_tool::Evidence;
use haft_types::{Entry, Role};
use serde_json::Value;

const MAX_RESULTS: usize = 20;
/// The maximum width, in columns, of a path or command in the evidence.
const MAX_SUBJECT_WIDTH: usize = 60;

/// Returns the newest successful tool results and the final answer, oldest first.
pub(crate) fn collect_evidence(history: &[Arc<Entry>]) -> Vec<Evidence> {
    let mut found: Vec<_> = history
        .iter()
        .filter_map(|entry| evidence_from_result(entry))
        .collect();
    found.drain(..found.len().saturating_sub(MAX_RESULTS));
    let answer = history
        .iter()
        .rfind(|entry| entry.message.role == Role::Assistant);
    found.extend(answer.map(|entry| Evidence {
        id: short_id(entry),
        what: "its last message".to_owned(),
    }));
    found
}

fn evidence_from_result(entry: &Entry) -> Option<Evidence> {
    let result = entry
        .message
        .tool_results()
        .next()
        .filter(|result| result.envelope.error.is_none())?;
    let subject_keys = ["path", "command", "regex", "pattern"];
    let about = subject_keys
        .iter()
        .find_map(|key| result.envelope.data.get(key).and_then(Value::as_str));
    let about = about
        .and_then(|about| about.lines().next())
        .unwrap_or_default();
    let what = format!(
        "{} {}",
        result.name,
        haft_text::truncate_to_width(about, MAX_SUBJECT_WIDTH)
    );
    Some(Evidence {
        id: short_id(entry),
        what: what.trim_end().to_owned(),
    })
}

fn short_id(entry: &Entry) -> String {
    entry.message.message_id.short_id().to_string()
}
