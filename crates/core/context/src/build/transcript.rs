//! Renders a conversation as plain paragraphs, for models that accept no structured history and for
//! summaries.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_types::{Entry, Message, Part, Role};

use crate::policy::CompressLimits;
use crate::reduce::compress::compress;

/// The label of each paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// The role of the message.
    Roles,
    /// The role and the id of the message.
    RolesAndIds,
}

/// Renders the messages as paragraphs labeled `[user]`, `[assistant]` and `[tool]`, separated by
/// empty lines. Results become compressed envelopes of one line, summaries stay verbatim, and call
/// ids are omitted.
pub fn transcript(entries: &[Arc<Entry>], limits: CompressLimits, labels: Labels) -> String {
    let mut text = String::new();
    for entry in entries {
        let paragraph = paragraph(&entry.message, limits, labels);
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

fn paragraph(message: &Message, limits: CompressLimits, labels: Labels) -> String {
    let role = match message.role {
        Role::Summary => return message.joined_text(),
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut text = match labels {
        Labels::Roles => format!("[{role}]"),
        Labels::RolesAndIds => format!("[{role} {}]", message.message_id.short()),
    };
    for part in &message.content {
        // Writing to a String cannot fail.
        let _ = match part {
            Part::Text { text: said, .. } => write!(text, "\n{}", said.trim_end()),
            Part::ToolCall(call) => write!(text, "\ncalls {} {}", call.name, call.arguments),
            Part::ToolResult(result) => {
                write!(
                    text,
                    "\n{}",
                    compress(&result.name, &result.envelope, limits)
                )
            }
            Part::Image(image) => write!(text, "\n(a picture, {})", image.media_type),
            // The model's reasoning is omitted; its outcome is in the text and the calls.
            Part::Thinking(_) => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests;
