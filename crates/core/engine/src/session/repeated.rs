//! What a sub-agent reads again and still has in front of it is referred to, not sent once more.
//!
//! Invariant: a result is replaced only while an earlier one with the same text stands whole in the
//! newest request.

use haft_types::{Entry, Envelope, Role, ToolStatus};
use serde_json::Value;

use super::Session;
use crate::names;
use crate::subagents::Rank;

impl Session {
    /// Puts a reference in the place of a read the window already has, and notes what that saves.
    pub(crate) fn refer_to_earlier(&mut self, tool: &str, envelope: &mut Envelope) {
        let is_read = self
            .prompt
            .registry()
            .resolve(tool)
            .is_some_and(|found| found.tool.spec().name == names::READ);
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
            .any(|entry| self.stands_whole(entry) && says(entry, envelope))
        {
            return;
        }
        let counter = &self.services.counter;
        let reference = format!(
            "`{path}` has not changed since you read lines {start}-{end}: that result stands above and is not repeated."
        );
        let before = counter.text(&envelope.text);
        let after = counter.text(&reference);
        if after < before {
            self.meter.note_saved(u64::from(before - after));
            envelope.text = reference;
        }
    }

    /// Whether the newest request held this message as it is stored.
    fn stands_whole(&self, entry: &Entry) -> bool {
        entry.message.role == Role::Tool && self.sent.holds_whole(entry)
    }
}

/// Whether a message is a result with the same text about the same content.
fn says(entry: &Entry, envelope: &Envelope) -> bool {
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
