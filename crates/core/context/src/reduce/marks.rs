//! Marks on messages that the model no longer wants to see. This module keeps the list; it takes
//! effect as an [edit](crate::reduce::edits) that drops the messages.
//!
//! The current input, summaries and the system message cannot be deleted.

use std::collections::BTreeSet;
use std::sync::Arc;

use haft_types::{Entry, MarkAction, MarkReport, MessageId, Role, ShortId, TranscriptLine};
use serde::{Deserialize, Serialize};

/// The messages that the user or the model has marked for deletion.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Marks {
    /// The messages that are not sent.
    pub deleted: BTreeSet<MessageId>,
}

impl Marks {
    /// Changes the set of deleted messages as `action` requests. `ids` contains short or full ids,
    /// separated by commas.
    pub fn edit_deleted(
        &mut self,
        action: MarkAction,
        ids: &str,
        history: &[Arc<Entry>],
    ) -> MarkReport {
        let before = self.deleted.clone();
        if action == MarkAction::Create {
            self.deleted.clear();
        }
        let current = history
            .iter()
            .rfind(|entry| entry.message.opens_round())
            .map(|entry| entry.message.message_id);
        let mut report = MarkReport::default();
        for text in ids
            .split(',')
            .map(str::trim)
            .filter(|text| !text.is_empty())
        {
            let Some(message) = find_message(text, history) else {
                report.unknown.push(text.to_owned());
                continue;
            };
            let id = message.message.message_id;
            let changed = match action {
                MarkAction::Delete => self.deleted.remove(&id),
                MarkAction::Create | MarkAction::Append => {
                    if Some(id) == current
                        || matches!(message.message.role, Role::System | Role::Summary)
                    {
                        report.refused.push(text.to_owned());
                        continue;
                    }
                    self.deleted.insert(id) && !before.contains(&id)
                }
            };
            report.changed += u32::from(changed);
            report.unchanged += u32::from(!changed);
        }
        report.marked = self.deleted.len();
        report
    }
}

/// Finds a message by its short or full id.
fn find_message<'a>(text: &str, history: &'a [Arc<Entry>]) -> Option<&'a Arc<Entry>> {
    if let Ok(id) = text.parse::<MessageId>() {
        return history.iter().find(|entry| entry.message.message_id == id);
    }
    let short: ShortId = text.to_ascii_lowercase().parse().ok()?;
    history
        .iter()
        .find(|entry| entry.message.message_id.short_id() == short)
}

/// Returns a line for every message of a conversation.
pub fn list_messages(history: &[Arc<Entry>], marks: &Marks) -> Vec<TranscriptLine> {
    const PREVIEW_LIMIT: usize = 60;
    let line = |entry: &Arc<Entry>| {
        let message = &entry.message;
        let calls = message
            .tool_calls()
            .map(|call| call.resolve_indirect().into_owned().name);
        let results = message.tool_results().map(|result| result.name.clone());
        let mut text = message.joined_text();
        text.extend(
            message
                .tool_results()
                .map(|result| result.envelope.text.as_str()),
        );
        let words: Vec<_> = text.split_whitespace().take(PREVIEW_LIMIT).collect();
        TranscriptLine {
            id: message.message_id.short_id(),
            role: message.role,
            tools: calls.chain(results).collect(),
            tokens: entry.tokens,
            preview: words.join(" ").chars().take(PREVIEW_LIMIT).collect(),
            marked: marks.deleted.contains(&message.message_id),
        }
    };
    history.iter().map(line).collect()
}

#[cfg(test)]
mod tests;
