//! Bounded cuts: the head and the tail of a text that is too long, with one line between them that
//! counts the missing lines and bytes.
//!
//! Invariants: a cut never exceeds its limits (the marker line alone excepted), never splits a
//! character, and shown plus omitted lines and bytes equal the totals.

use crate::numbers::format_thousands;

/// The maximum size of a text that is cut to its head and tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CutLimits {
    /// The maximum number of lines, including the marker line.
    pub lines: usize,
    /// The maximum size in bytes, including the marker line.
    pub bytes: usize,
}

impl Default for CutLimits {
    /// Returns the limits of one tool output for the model: 2,000 lines or 50 KB.
    fn default() -> Self {
        Self {
            lines: 2_000,
            bytes: 50 * 1024,
        }
    }
}

/// The size of the part of a text that is missing between a head and a tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gap {
    /// The number of line ends in the missing text.
    pub newlines: u64,
    /// The size of the missing text in bytes.
    pub bytes: u64,
}

/// The result of cutting a text: the shortened text, and the counts of all and of omitted lines and
/// bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The shortened text, with a marker line in place of the omitted part.
    pub text: String,
    /// The number of lines in the whole text. The last line counts even if it has no line end.
    pub total_lines: u64,
    /// The size of the whole text in bytes.
    pub total_bytes: u64,
    /// The number of lines that are omitted entirely.
    pub omitted_lines: u64,
    pub omitted_bytes: u64,
}

impl Cut {
    pub fn is_cut(&self) -> bool {
        self.omitted_bytes > 0
    }
}

/// The number of bytes reserved for the marker line and the line end before it.
const MARKER_BYTES: usize = 100;

/// Shortens a text to `limits`. Lines are omitted from the middle, so that the head and the tail
/// remain.
pub fn cut_lines(text: &str, limits: CutLimits) -> Cut {
    cut_ends(text, Gap::default(), "", limits)
}

/// Like [`cut_lines`], but for a text whose middle is already missing: `gap` is the size of the
/// missing part between `head` and `tail`.
pub fn cut_ends(head: &str, gap: Gap, tail: &str, limits: CutLimits) -> Cut {
    let last = if tail.is_empty() && gap.bytes == 0 {
        head
    } else {
        tail
    };
    let unfinished = !last.is_empty() && !last.ends_with('\n');
    let total_bytes = head.len() as u64 + gap.bytes + tail.len() as u64;
    let total_lines =
        count_newlines(head) + gap.newlines + count_newlines(tail) + u64::from(unfinished);
    let cut = |text, omitted_lines, omitted_bytes| Cut {
        text,
        total_lines,
        total_bytes,
        omitted_lines,
        omitted_bytes,
    };

    if gap.bytes == 0 && total_bytes <= limits.bytes as u64 && total_lines <= limits.lines as u64 {
        return cut([head, tail].concat(), 0, 0);
    }

    let lines = limits.lines.saturating_sub(1);
    let bytes = limits.bytes.saturating_sub(MARKER_BYTES);
    let whole;
    // Without a gap, head and tail are joined first, so that the point at which the caller split
    // the text limits neither half.
    let (head, tail) = if gap.bytes == 0 && !tail.is_empty() {
        whole = [head, tail].concat();
        (whole.as_str(), "")
    } else {
        (head, tail)
    };
    let shown_head = take_head(head, lines.div_ceil(2), bytes.div_ceil(2));
    let rest = &head[shown_head.len()..];
    let from = if gap.bytes == 0 { rest } else { tail };
    let shown_tail = take_tail(from, lines / 2, bytes / 2);

    let omitted_bytes = total_bytes - (shown_head.len() + shown_tail.len()) as u64;
    if omitted_bytes == 0 {
        // Only the room for the marker was missing; both halves touch and nothing is left out.
        return cut([shown_head, shown_tail].concat(), 0, 0);
    }
    let omitted_newlines = count_total_newlines(total_lines, unfinished)
        - count_newlines(shown_head)
        - count_newlines(shown_tail);
    let head_is_open = !shown_head.is_empty() && !shown_head.ends_with('\n');
    // The first omitted line end belongs to a line that is partly shown; an unfinished last line
    // has none of its own.
    let mut omitted_lines = omitted_newlines - u64::from(head_is_open && omitted_newlines > 0);
    if unfinished && shown_tail.is_empty() && !(head_is_open && omitted_newlines == 0) {
        omitted_lines += 1;
    }

    let mut text = String::with_capacity(shown_head.len() + shown_tail.len() + MARKER_BYTES);
    text.push_str(shown_head);
    if head_is_open {
        text.push('\n');
    }
    text.push_str(&format_marker(omitted_lines, omitted_bytes));
    text.push('\n');
    text.push_str(shown_tail);
    cut(text, omitted_lines, omitted_bytes)
}

fn count_total_newlines(total_lines: u64, unfinished: bool) -> u64 {
    total_lines - u64::from(unfinished)
}

fn format_marker(lines: u64, bytes: u64) -> String {
    let plural = |count: u64, unit: &str| {
        format!(
            "{} {unit}{}",
            format_thousands(count),
            if count == 1 { "" } else { "s" }
        )
    };
    match lines {
        0 => format!("[... {} of a long line omitted ...]", plural(bytes, "byte")),
        _ => format!(
            "[... {} ({}) omitted ...]",
            plural(lines, "line"),
            plural(bytes, "byte")
        ),
    }
}

/// Returns as many whole lines from the start of the text as fit into the limits `lines` and
/// `bytes`. If the whole lines fill at most half of `bytes`, a part of the next line is added.
fn take_head(text: &str, lines: usize, bytes: usize) -> &str {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(lines) {
        if end + line.len() > bytes {
            if end <= bytes / 2 {
                end = text.floor_char_boundary(bytes);
            }
            break;
        }
        end += line.len();
    }
    &text[..end]
}

/// Like [`take_head`], but returns lines from the end of the text.
fn take_tail(text: &str, lines: usize, bytes: usize) -> &str {
    let mut start = text.len();
    for _ in 0..lines {
        if start == 0 {
            break;
        }
        let body = text[..start].strip_suffix('\n').unwrap_or(&text[..start]);
        let line_start = body.rfind('\n').map_or(0, |at| at + 1);
        if text.len() - line_start > bytes {
            if text.len() - start <= bytes / 2 {
                start = text.ceil_char_boundary(text.len() - bytes);
            }
            break;
        }
        start = line_start;
    }
    &text[start..]
}

fn count_newlines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests;
