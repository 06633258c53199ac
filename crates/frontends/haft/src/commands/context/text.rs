//! Formats messages and numbers for people. Secrets in texts are masked.

use std::borrow::Cow;

use haft_text::{Masker, format_dollars, format_thousands};
use haft_types::Message;

use crate::commands::conversations::part_to_text;

/// Returns the beginning of a message on one line, up to 200 characters. Tables shorten it further.
pub(super) fn message_opening(message: &Message, masker: &Masker) -> String {
    const MAX_CHARS: usize = 200;
    let text = message
        .content
        .iter()
        .map(part_to_text)
        .find(|text| !text.trim().is_empty())
        .unwrap_or_default();
    let text = masker.mask(&text);
    let words: Vec<_> = text.split_whitespace().take(MAX_CHARS / 2).collect();
    words.join(" ").chars().take(MAX_CHARS).collect()
}

/// Returns the full text of a message.
pub(super) fn full_message_text(message: &Message, masker: &Masker) -> String {
    let mut text = String::new();
    for part in &message.content {
        text.push_str(&part_to_text(part));
        if !text.ends_with('\n') {
            text.push('\n');
        }
    }
    match masker.mask(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(masked) => masked,
    }
}

/// The kinds of items that are counted in sentences about a context.
#[derive(Clone, Copy)]
pub(super) enum Countable {
    Break,
    Edit,
    Message,
    Request,
    Segment,
    Tool,
}

/// Formats a number with its noun, such as `1 edit` or `2 edits`.
pub(super) fn format_count(number: usize, thing: Countable) -> String {
    let number = format_thousands(number as u64);
    match thing {
        Countable::Break => text!("context-breaks", number),
        Countable::Edit => text!("context-edits", number),
        Countable::Message => text!("context-messages", number),
        Countable::Request => text!("context-requests", number),
        Countable::Segment => text!("context-segments", number),
        Countable::Tool => text!("context-tools", number),
    }
}

/// Formats a cost to append to other text, or returns an empty string if the cost is unknown.
pub(super) fn cost_suffix(usd: Option<f64>) -> String {
    usd.map_or_else(String::new, |usd| {
        format!("{}{}", text!("output-comma"), format_dollars(usd))
    })
}

#[cfg(test)]
mod tests {
    use haft_types::{MessageId, Role, Timestamp};

    use super::*;

    #[test]
    fn message_opening_is_one_short_line() {
        let text = "  fix\n\tthe   bug \u{6f22}".to_owned() + &"\nmore words".repeat(300);
        let message = Message::from_text(
            MessageId(uuid::Uuid::nil()),
            Role::User,
            text,
            Timestamp::UNIX_EPOCH,
        );
        let words = message_opening(&message, &Masker::default());
        assert!(words.starts_with("fix the bug 漢 more words"), "{words}");
        assert_eq!(words.chars().count(), 200);
    }

    #[test]
    fn money_keeps_small_amounts_and_counts_are_grouped() {
        assert_eq!(
            (format_dollars(0.00042), format_dollars(12.345)),
            ("$0.0004".into(), "$12.35".into())
        );
        assert_eq!(
            (format_thousands(0), format_thousands(1_234_567)),
            ("0".into(), "1,234,567".into())
        );
        assert_eq!(
            (
                format_count(1, Countable::Segment),
                format_count(1_000, Countable::Segment)
            ),
            ("1 segment".into(), "1,000 segments".into())
        );
    }
}
