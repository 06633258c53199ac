//! Renders a conversation as plain paragraphs, for models that accept no structured history and for
//! summaries.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_text::{CutLimits, cut_lines};
use haft_types::{Entry, Message, Part, Role};

use crate::policy::CompressLimits;
use crate::reduce::compress::compress_envelope;
use crate::reduce::excerpt::largest_limit;

/// The label at the beginning of each paragraph of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// The label is the role of the message.
    Roles,
    /// The label is the role and the id of the message.
    RolesAndIds,
}

/// The minimum size, in bytes, to which a paragraph is cut.
const MIN_PARAGRAPH: usize = 400;

/// Renders a transcript like [`render_transcript`], but in at most about `room` bytes. The longest
/// paragraphs are cut to head and tail; the paragraphs of the user and of summaries are cut last.
/// If that is not enough, the middle of the transcript is left out.
pub(crate) fn transcript_within(
    entries: &[Arc<Entry>],
    limits: CompressLimits,
    labels: Labels,
    room: usize,
) -> String {
    let mut paragraphs: Vec<_> = entries
        .iter()
        .map(|entry| {
            let text = render_paragraph(&entry.message, limits, labels);
            (entry.message.role, text.trim_end().to_owned())
        })
        .filter(|(_, text)| !text.trim().is_empty())
        .collect();
    let size = |paragraphs: &[(Role, String)]| -> usize {
        paragraphs.iter().map(|(_, text)| text.len() + 2).sum()
    };
    let cuttable: [fn(Role) -> bool; 2] = [
        |role| matches!(role, Role::Tool | Role::Assistant | Role::System),
        |_| true,
    ];
    for is_cuttable in cuttable {
        let mut sizes = Vec::new();
        let mut fixed = 0;
        for (role, text) in &paragraphs {
            if is_cuttable(*role) {
                sizes.push(text.len() + 2);
            } else {
                fixed += text.len() + 2;
            }
        }
        sizes.sort_unstable();
        let limit = largest_limit(&sizes, room.saturating_sub(fixed)).max(MIN_PARAGRAPH);
        for (role, text) in &mut paragraphs {
            if is_cuttable(*role) && text.len() > limit {
                let limits = CutLimits {
                    lines: usize::MAX,
                    bytes: limit,
                };
                let cut = cut_lines(text, limits).text;
                cut.trim_end().clone_into(text);
            }
        }
        if size(&paragraphs) <= room {
            break;
        }
    }
    // The first paragraphs state the task, and the last ones its current state.
    let mut omitted = 0;
    while size(&paragraphs) > room && paragraphs.len() > 2 {
        let half = paragraphs.len() / 2;
        paragraphs.remove(half);
        omitted += 1;
    }
    if omitted > 0 {
        let note = format!("({omitted} messages are left out here because they do not fit)");
        paragraphs.insert(paragraphs.len().div_ceil(2), (Role::System, note));
    }
    let texts: Vec<_> = paragraphs.into_iter().map(|(_, text)| text).collect();
    texts.join("\n\n")
}

/// Renders the messages as paragraphs separated by empty lines, each beginning with its role:
/// `[user]`, `[assistant]` or `[tool]`. Each result becomes a compressed envelope on one line,
/// summaries stay verbatim, and call ids are omitted.
pub fn render_transcript(entries: &[Arc<Entry>], limits: CompressLimits, labels: Labels) -> String {
    let mut text = String::new();
    for entry in entries {
        let paragraph = render_paragraph(&entry.message, limits, labels);
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

fn render_paragraph(message: &Message, limits: CompressLimits, labels: Labels) -> String {
    let role = match message.role {
        Role::Summary => return message.joined_text(),
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let mut text = match labels {
        Labels::Roles => format!("[{role}]"),
        Labels::RolesAndIds => format!("[{role} {}]", message.message_id.short_id()),
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
                    compress_envelope(&result.name, &result.envelope, limits)
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
