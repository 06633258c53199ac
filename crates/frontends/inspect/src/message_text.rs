//! Formats messages and numbers for people. Secrets in texts are masked.

use std::borrow::Cow;

use haft_text::{Masker, format_thousands};
use haft_types::{Message, Part, ToolStatus};

use crate::localize_text;

/// Returns the beginning of a message on one line, up to 200 characters. Tables shorten it further.
pub fn message_opening(message: &Message, masker: &Masker) -> String {
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
pub fn full_message_text(message: &Message, masker: &Masker) -> String {
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
pub enum Countable {
    Break,
    Edit,
    Message,
    Request,
    Segment,
    Tool,
}

/// Formats `n things`, or `1 thing`.
pub fn format_count(number: usize, thing: Countable) -> String {
    let number = format_thousands(number as u64);
    match thing {
        Countable::Break => text!("inspect-breaks", number),
        Countable::Edit => text!("inspect-edits", number),
        Countable::Message => text!("inspect-messages", number),
        Countable::Request => text!("inspect-requests", number),
        Countable::Segment => text!("inspect-segments", number),
        Countable::Tool => text!("inspect-tools", number),
    }
}

/// Formats a part of a message for people.
pub fn part_to_text(part: &Part) -> String {
    match part {
        Part::Text { text, .. } => text.clone(),
        Part::Thinking(thinking) => {
            format!("({}) {}", localize_text("thinking"), thinking.text)
        }
        Part::ToolCall(call) => format!("→ {} {}", call.name, call.arguments),
        Part::ToolResult(result) => {
            let status = match result.envelope.status {
                ToolStatus::Success => "ok",
                ToolStatus::Partial => "partial",
                ToolStatus::Error => "error",
            };
            format!(
                "← {} ({}) {}",
                result.name,
                localize_text(status),
                result.envelope.text
            )
        }
        Part::Image(image) => localize_text(format_args!("[{} picture]", image.media_type)),
    }
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
            (
                haft_text::format_dollars(0.00042),
                haft_text::format_dollars(12.345)
            ),
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
