//! Collects the lines of a range, with their numbers, until the limits are reached.
//!
//! Invariant: the numbered text never exceeds the limits. Each line is shown completely, unless it
//! is too long for the limits on its own: then it is cut and reported as cut.

use std::fmt::Write as _;

use haft_tool::OutputLimits;

use super::ReadError;
use crate::visible;

/// The range of requested lines. Lines are numbered from 1, and both ends are included.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineRange {
    start: usize,
    end: Option<usize>,
}

impl LineRange {
    pub(super) fn new(start: Option<usize>, end: Option<usize>) -> Result<Self, ReadError> {
        let first = start.unwrap_or(1);
        if first == 0 || end.is_some_and(|end| end < first) {
            let end = end.map_or_else(|| "no end".to_owned(), |end| end.to_string());
            return Err(ReadError::Range { start: first, end });
        }
        Ok(Self { start: first, end })
    }

    pub(super) fn start_line(self) -> usize {
        self.start
    }

    fn contains(self, line: usize) -> bool {
        line >= self.start && self.end.is_none_or(|end| line <= end)
    }
}

/// Collects the lines of a range until the limits are reached.
pub(super) struct FilePage {
    range: LineRange,
    limits: OutputLimits,
    numbered: String,
    content: String,
    shown: usize,
    full: bool,
    cut: Option<(usize, usize)>,
    escaped: bool,
}

impl FilePage {
    pub(super) fn new(range: LineRange, limits: OutputLimits) -> Self {
        let numbered = String::new();
        let content = String::new();
        Self {
            range,
            limits,
            numbered,
            content,
            shown: 0,
            full: false,
            cut: None,
            escaped: false,
        }
    }

    /// Adds the next line of the file if it is in the range and fits into the limits. `length` is
    /// the full length of the line in bytes; `line` may be only its beginning.
    pub(super) fn offer_line(&mut self, number: usize, line: &str, length: usize) {
        if self.full || !self.range.contains(number) {
            return;
        }
        if self.shown >= self.limits.lines {
            self.full = true;
            return;
        }
        let shown = visible::reveal_line(line);
        // The number, its tab and the line break count too.
        let used = self.numbered.len() + number.to_string().len() + 2;
        let mut take = shown.as_ref();
        if used + take.len() > self.limits.bytes || length > line.len() {
            if self.shown > 0 {
                self.full = true;
                return;
            }
            take = visible::prefix_within(take, self.limits.bytes.saturating_sub(used));
            self.cut = Some((number, length));
        }
        self.escaped |= shown != line;
        if self.shown > 0 {
            self.numbered.push('\n');
            self.content.push('\n');
        }
        // Writing to a string can't fail.
        let _ = write!(self.numbered, "{number}\t{take}");
        self.content.push_str(take);
        self.shown += 1;
    }

    pub(super) fn range(&self) -> LineRange {
        self.range
    }

    /// Returns the number of the last collected line, or `None` if the file has no line in the
    /// range.
    pub(super) fn last_line(&self) -> Option<usize> {
        self.shown
            .checked_sub(1)
            .map(|more| self.range.start + more)
    }

    /// True if lines of the range were omitted because they exceed the limits.
    pub(super) fn is_full(&self) -> bool {
        self.full
    }

    /// Returns the collected lines with their numbers.
    pub(super) fn numbered_lines(&self) -> &str {
        &self.numbered
    }

    /// Returns the collected lines without numbers.
    pub(super) fn plain_lines(&self) -> &str {
        &self.content
    }

    /// Returns remarks about cut lines and replaced control characters.
    pub(super) fn remarks(&self) -> impl Iterator<Item = String> {
        let cut = self.cut.map(|(number, length)| {
            format!("[Line {number} has {length} bytes and is cut here; a program such as `cut` shows the rest of it.]")
        });
        let escaped = self.escaped.then(|| {
            "[Control characters are shown in a visible form, not as they are in the file.]"
                .to_owned()
        });
        cut.into_iter().chain(escaped)
    }
}
