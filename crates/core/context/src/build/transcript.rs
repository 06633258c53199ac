//! A conversation as plain paragraphs: for models that take no structured history, and for whoever
//! summarises one.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_types::{Entry, Message, Part, Role};

use crate::policy::CompressLimits;
use crate::reduce::compress::compress;

/// What stands before each paragraph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// Who speaks.
    Roles,
    /// Who speaks, and the message's id.
    RolesAndIds,
}

/// The messages as paragraphs labelled `[user]`, `[assistant]` and `[tool]`, an empty line between.
/// Results are compressed envelopes of one line, summaries stand verbatim, and there are no call
/// ids.
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
            // Reasoning is the model's own; what came of it is said or done.
            Part::Thinking(_) => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests;
