//! Message ids the model can name: a last line on each message, added when a request is built and
//! never stored.
//!
//! The line is put on a message from its first request on, the current input included, so that it
//! never changes what was sent before. Summaries stand verbatim and carry none.

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
        let mut results = message
            .content
            .iter_mut()
            .rev()
            .filter_map(|part| match part {
                Part::ToolResult(result) => Some(result),
                Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::Image(_) => None,
            });
        if let Some(result) = results.next() {
            result.envelope.text = format!("{}\n\n{hint}", result.envelope.text);
            return message;
        }
        // Before the calls: some APIs take no text after them. A signed text must stay as it was
        // signed.
        let calls = |part: &Part| matches!(part, Part::ToolCall(_));
        let end = message
            .content
            .iter()
            .position(calls)
            .unwrap_or(message.content.len());
        match message.content[..end].last_mut() {
            Some(Part::Text {
                text,
                signature: None,
            }) => *text = format!("{text}\n\n{hint}"),
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
    let mut filter = HintFilter::default();
    let mut stripped = filter.feed(text);
    stripped.push_str(&filter.finish());
    Cow::Owned(stripped)
}

/// Takes repeated hint lines out of text that arrives in pieces. What may yet become a hint is held
/// back, the line breaks before it included; each character is looked at once, or twice if it shows
/// that what was held back is none.
///
/// Only for what a model says: the arguments of a call are the model's own text, whatever they
/// hold.
#[derive(Debug, Default)]
pub struct HintFilter {
    /// Line breaks that go with a hint, if one follows.
    breaks: usize,
    /// The beginning of what may be a hint.
    held: String,
}

impl HintFilter {
    /// What can be shown now.
    pub fn feed(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.take(c, &mut shown);
        }
        shown
    }

    /// What was held back and is no hint, since nothing follows. The filter is as new.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.release(&mut shown);
        shown
    }

    fn take(&mut self, c: char, shown: &mut String) {
        if self.goes_on(c) {
            self.held.push(c);
        } else if c == ']'
            && self
                .held
                .strip_prefix(OPEN)
                .is_some_and(|id| id.parse::<ShortId>().is_ok())
        {
            *self = Self::default();
        } else {
            if !self.held.is_empty() {
                self.release(shown);
            }
            match c {
                '\n' => self.breaks += 1,
                // No other bracket is part of a hint, so nothing held back before this one can be.
                '[' => self.held.push(c),
                _ => {
                    self.release(shown);
                    shown.push(c);
                }
            }
        }
    }

    /// Whether the beginning of a hint goes on with this character.
    fn goes_on(&self, c: char) -> bool {
        match self.held.strip_prefix(OPEN) {
            Some(id) => id.len() < 8 && c.is_ascii_hexdigit(),
            None => !self.held.is_empty() && OPEN[self.held.len()..].starts_with(c),
        }
    }

    fn release(&mut self, shown: &mut String) {
        shown.extend(std::iter::repeat_n('\n', self.breaks));
        shown.push_str(&self.held);
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests;
