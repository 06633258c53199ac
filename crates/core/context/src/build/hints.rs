//! Message ids the model can name: a last line on each message, added when a request is built and never stored.
//!
//! The line is put on a message from its first request on, the current input included, so that it never changes what was sent
//! before. Summaries stand verbatim and carry none.

use std::borrow::Cow;
use std::sync::Arc;

use haft_types::{Entry, MessageId, Part, Role, ShortId, TokenCounter};

use crate::build::rounds::{Timeline, TimelineItem};
use crate::memo::{EntryMaker, MessageForm};
use crate::policy::MessageIds;

const OPEN: &str = "[Hint: message_id: ";

fn hint(id: MessageId) -> String {
    format!("{OPEN}{}]", id.short())
}

fn carries(item: &TimelineItem, ids: MessageIds) -> bool {
    match ids {
        MessageIds::Off => false,
        MessageIds::Results => item.role() == Role::Tool,
        MessageIds::All => true,
    }
}

/// The tokens the hints will add.
pub(crate) fn tokens(line: &Timeline, ids: MessageIds, counter: &dyn TokenCounter) -> u64 {
    match ids {
        MessageIds::Off => 0,
        MessageIds::Results | MessageIds::All => {
            let each = u64::from(counter.text("\n\n[Hint: message_id: 00000000]"));
            each * line.items.iter().filter(|item| carries(item, ids)).count() as u64
        }
    }
}

/// Adds the hints.
pub(crate) fn add(line: &mut Timeline, ids: MessageIds, maker: EntryMaker<'_>) {
    for item in line.items.iter_mut().filter(|item| carries(item, ids)) {
        item.entry = hinted(&item.entry, maker);
    }
}

fn hinted(entry: &Arc<Entry>, maker: EntryMaker<'_>) -> Arc<Entry> {
    let message = &entry.message;
    maker.entry(message.message_id, entry.hash, MessageForm::Hinted, || {
        let mut message = message.clone();
        let hint = hint(message.message_id);
        let mut results = message.content.iter_mut().rev().filter_map(|part| match part {
            Part::ToolResult(result) => Some(result),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) => None,
        });
        if let Some(result) = results.next() {
            result.envelope.text = format!("{}\n\n{hint}", result.envelope.text);
            return message;
        }
        // Before the calls: some APIs take no text after them. A signed text must stay as it was signed.
        let calls = |part: &Part| matches!(part, Part::ToolCall(_));
        let end = message.content.iter().position(calls).unwrap_or(message.content.len());
        match message.content[..end].last_mut() {
            Some(Part::Text { text, signature: None }) => *text = format!("{text}\n\n{hint}"),
            _ => message.content.insert(end, Part::text(hint)),
        }
        message
    })
}

/// The text without any hint line it repeats.
pub fn strip_hints(text: &str) -> Cow<'_, str> {
    if !text.contains(OPEN) {
        return Cow::Borrowed(text);
    }
    let mut stripped = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(OPEN) {
        let after = &rest[start + OPEN.len()..];
        let is_hint = after.get(..8).is_some_and(|id| id.parse::<ShortId>().is_ok()) && after[8..].starts_with(']');
        if is_hint {
            stripped.push_str(rest[..start].trim_end_matches('\n'));
            rest = &after[9..];
        } else {
            stripped.push_str(&rest[..start + OPEN.len()]);
            rest = after;
        }
    }
    stripped.push_str(rest);
    Cow::Owned(stripped)
}

#[cfg(test)]
mod tests;
