//! A conversation as plain paragraphs: for models that take no structured history, and for whoever summarises one (SPEC 4.4).

use std::fmt::Write as _;
use std::sync::Arc;

use haft_types::{Entry, Message, Part, Role};

use crate::compress::{CompressLimits, compress};

/// The messages as paragraphs labelled `[user]`, `[assistant]` and `[tool]`, an empty line between. Results are compressed
/// envelopes of one line, summaries stand verbatim, and there are no call ids.
pub fn transcript(entries: &[Arc<Entry>], limits: CompressLimits) -> String {
    let mut text = String::new();
    for entry in entries {
        let paragraph = paragraph(&entry.message, limits);
        if paragraph.trim().is_empty() {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(paragraph.trim_end());
    }
    text
}

fn paragraph(message: &Message, limits: CompressLimits) -> String {
    let mut text = match message.role {
        Role::Summary => return message.joined_text(),
        Role::System => String::from("[system]"),
        Role::User => String::from("[user]"),
        Role::Assistant => String::from("[assistant]"),
        Role::Tool => String::from("[tool]"),
    };
    for part in &message.content {
        // Writing to a String cannot fail.
        let _ = match part {
            Part::Text { text: words, .. } => write!(text, "\n{}", words.trim_end()),
            Part::ToolCall(call) => write!(text, "\ncalls {} {}", call.name, call.arguments),
            Part::ToolResult(result) => {
                write!(text, "\n{}", compress(&result.name, &result.envelope, limits))
            }
            Part::Image(image) => write!(text, "\n(a picture, {})", image.media_type),
            // Reasoning is the model's own; what came of it is said or done.
            Part::Thinking(_) => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests;
