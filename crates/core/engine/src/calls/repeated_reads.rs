//! Replaces the result of a sub-agent's repeated read with a reference to the earlier result.
//!
//! Invariant: a result is replaced only while the newest request contains an equal earlier result
//! in full.

use haft_types::{Entry, Envelope, Role, ToolStatus};
use serde_json::Value;

use crate::agents::parent::Rank;
use crate::names;
use crate::session::Session;

impl Session {
    /// Replaces the result of a read with a reference if the context window already contains an
    /// equal result, and records the saved tokens. Affects sub-agents only.
    pub(crate) fn replace_repeated_read(&mut self, tool: &str, envelope: &mut Envelope) {
        let is_read = self
            .prompt
            .registry()
            .resolve(tool)
            .is_some_and(|found| found.tool.spec().name == names::READ_TOOL);
        if self.agents.rank != Rank::Sub || !is_read || envelope.status != ToolStatus::Success {
            return;
        }
        let number = |key: &str| envelope.data.get(key).and_then(Value::as_u64);
        let (Some(path), Some(start), Some(end)) = (
            envelope.data.get("path").and_then(Value::as_str),
            number("start_line"),
            number("end_line"),
        ) else {
            return;
        };
        if !self
            .transcript
            .history()
            .iter()
            .any(|entry| self.was_sent_whole(entry) && has_equal_result(entry, envelope))
        {
            return;
        }
        let counter = &self.services.shared.counter;
        let reference = format!(
            "`{path}` has not changed since you read lines {start}-{end}: that result stands above and is not repeated."
        );
        let before = counter.count_text(&envelope.text);
        let after = counter.count_text(&reference);
        if after < before {
            self.meter.add_saved_tokens(u64::from(before - after));
            envelope.text = reference;
        }
    }

    /// Returns true if the newest request contained the tool result of `entry` in full.
    fn was_sent_whole(&self, entry: &Entry) -> bool {
        entry.message.role == Role::Tool && self.sent.contains_unchanged(entry)
    }
}

/// Returns true if `entry` contains a result with the text of `envelope`, for a file whose content
/// is the one recorded in `envelope`.
fn has_equal_result(entry: &Entry, envelope: &Envelope) -> bool {
    let file = |envelope: &Envelope| {
        envelope
            .context
            .get("file")
            .and_then(|file| file.get("hash"))
            .cloned()
    };
    entry.message.tool_results().any(|result| {
        result.envelope.text == envelope.text
            && file(&result.envelope).is_some()
            && file(&result.envelope) == file(envelope)
            && result.envelope.data.get("path") == envelope.data.get("path")
    })
}
