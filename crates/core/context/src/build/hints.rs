//! Message id hints: a last line on each message, with an id by which the model can refer to the
//! message. Hints are added when a request is built and are never stored.
//!
//! A message has a hint in every request, beginning with the first that contains the message, so
//! that sent bytes never change later. Summaries are sent verbatim and have no hint.

use std::borrow::Cow;
use std::sync::Arc;

use haft_types::{Entry, MessageId, Part, Role, ShortId, TokenCounter};

use crate::build::rounds::{Timeline, TimelineItem};
use crate::memo::{EntryMaker, MessageForm};
use crate::policy::MessageIds;

const HINT_PREFIX: &str = "[Hint: message_id: ";

fn format_hint(id: MessageId) -> String {
    format!("{HINT_PREFIX}{}]", id.short_id())
}

fn needs_hint(item: &TimelineItem, ids: MessageIds) -> bool {
    match ids {
        MessageIds::Off => false,
        MessageIds::Results => item.role() == Role::Tool,
        MessageIds::All => true,
    }
}

/// Returns the number of tokens that hints with message ids will add to the request.
pub(crate) fn count_hint_tokens(
    line: &Timeline,
    ids: MessageIds,
    counter: &dyn TokenCounter,
) -> u64 {
    match ids {
        MessageIds::Off => 0,
        MessageIds::Results | MessageIds::All => {
            let each = u64::from(counter.count_text("\n\n[Hint: message_id: 00000000]"));
            each * line
                .items
                .iter()
                .filter(|item| needs_hint(item, ids))
                .count() as u64
        }
    }
}

/// Adds a line with the message id to every message that `ids` selects.
pub(crate) fn add_hints(line: &mut Timeline, ids: MessageIds, maker: EntryMaker<'_>) {
    for item in line.items.iter_mut().filter(|item| needs_hint(item, ids)) {
        item.entry = add_hint(&item.entry, maker);
    }
}

fn add_hint(entry: &Arc<Entry>, maker: EntryMaker<'_>) -> Arc<Entry> {
    let message = &entry.message;
    maker.derived_entry(message.message_id, entry.hash, MessageForm::Hinted, || {
        let mut message = message.clone();
        let hint = format_hint(message.message_id);
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
        // The hint goes before the calls, because some APIs accept no text after them. Signed text
        // must stay unchanged.
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
            _ => message.content.insert(end, Part::from_text(hint)),
        }
        message
    })
}

/// Returns the text without the hint lines, with message ids, that the model copied into its reply.
pub fn strip_hints(text: &str) -> Cow<'_, str> {
    if !text.contains(HINT_PREFIX) {
        return Cow::Borrowed(text);
    }
    let mut filter = HintFilter::default();
    let mut stripped = filter.feed(text);
    stripped.push_str(&filter.take_rest());
    Cow::Owned(stripped)
}

/// Removes copied hint lines from streamed text. Text that may become a hint is held back,
/// including the line breaks before the hint. Each character is examined once, or twice if the held
/// text turns out not to be a hint.
///
/// Apply the filter only to the model's text, not to the arguments of its calls, which must stay as
/// the model wrote them.
#[derive(Debug, Default)]
pub struct HintFilter {
    /// The number of line breaks held back, which are removed if a hint follows.
    breaks: usize,
    /// The text held back because it may be the beginning of a hint.
    held: String,
}

impl HintFilter {
    /// Adds `piece` to the stream and returns the text that can be shown now.
    pub fn feed(&mut self, piece: &str) -> String {
        let mut shown = String::with_capacity(piece.len());
        for c in piece.chars() {
            self.push_char(c, &mut shown);
        }
        shown
    }

    /// Returns the held text and resets the filter. Call this at the end of the stream, when the
    /// held text can no longer become a hint.
    pub fn take_rest(&mut self) -> String {
        let mut shown = String::new();
        self.release_held(&mut shown);
        shown
    }

    fn push_char(&mut self, c: char, shown: &mut String) {
        if self.continues_hint(c) {
            self.held.push(c);
        } else if c == ']'
            && self
                .held
                .strip_prefix(HINT_PREFIX)
                .is_some_and(|id| id.parse::<ShortId>().is_ok())
        {
            *self = Self::default();
        } else {
            if !self.held.is_empty() {
                self.release_held(shown);
            }
            match c {
                '\n' => self.breaks += 1,
                // A hint contains no other bracket, so text held before this one is not a hint.
                '[' => self.held.push(c),
                _ => {
                    self.release_held(shown);
                    shown.push(c);
                }
            }
        }
    }

    /// True if the held text, extended by `c`, may still be the beginning of a hint.
    fn continues_hint(&self, c: char) -> bool {
        match self.held.strip_prefix(HINT_PREFIX) {
            Some(id) => id.len() < 8 && c.is_ascii_hexdigit(),
            None => !self.held.is_empty() && HINT_PREFIX[self.held.len()..].starts_with(c),
        }
    }

    fn release_held(&mut self, shown: &mut String) {
        shown.extend(std::iter::repeat_n('\n', self.breaks));
        shown.push_str(&self.held);
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests;
