//! Draws Markdown that arrives piece by piece.
//!
//! Decides which part of a reply is finished: a block once something else starts after it, and each
//! line of fenced code. Invariant: finished rows are returned once and never change; the rest, the
//! tail, is redrawn often and stays short.

mod block;
mod table;

use crate::highlight::Highlighter;
use crate::line::{StyledLine, TextStyle};
use crate::wrap::{has_wide_address, wrap_code, wrap_hanging};

use block::CodeLayout;
pub(crate) use block::draw_block;

/// The maximum number of bytes of an unfinished block that are drawn. More wouldn't fit on a
/// screen, and the cost of drawing must not grow with the block.
const TAIL_BYTES: usize = 8 * 1024;

/// The indentation of code blocks.
const CODE_INDENT: &str = "  ";

/// A Markdown text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    /// The complete lines of the unfinished block.
    block: String,
    /// The last line, whose end has not arrived yet.
    partial: String,
    /// The fence that opened the current code block, and the state of the block's highlighter.
    /// `None` outside of code blocks.
    fence: Option<(CodeFence, Highlighter)>,
    /// True if the last line of the block is blank.
    blank: bool,
    /// True if at least one row was returned as finished.
    begun: bool,
}

/// The characters that open a code block, such as three backquotes.
#[derive(Clone, Copy, Debug)]
struct CodeFence {
    mark: char,
    count: usize,
}

impl MarkdownStream {
    /// Appends text, and returns the rows that are finished because of it.
    pub(crate) fn push(&mut self, text: &str, columns: usize) -> Vec<StyledLine> {
        let mut finished = Vec::new();
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            self.partial.push_str(line);
            let line = std::mem::take(&mut self.partial);
            self.push_line(&line, columns, &mut finished);
            rest = after;
        }
        self.partial.push_str(rest);
        finished
    }

    /// Ends the text, and returns the rows that were not finished before.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<StyledLine> {
        let mut finished = Vec::new();
        let line = std::mem::take(&mut self.partial);
        if !line.is_empty() {
            self.push_line(&line, columns, &mut finished);
        }
        self.flush_block(columns, &mut finished);
        *self = Self::default();
        finished
    }

    /// Draws the unfinished part of the text, without changing the state.
    pub(crate) fn draw_tail(&self, columns: usize) -> Vec<StyledLine> {
        if self.fence.is_some() {
            // The line is highlighted later, when it is complete, because the highlighter reads
            // each line only once.
            return draw_code_line(
                &StyledLine::new(last_bytes(&self.partial), TextStyle::Plain),
                columns,
            );
        }
        let mut text = last_bytes(&self.block).to_owned();
        text.push_str(last_bytes(&self.partial));
        let mut rows = block::layout_block(&text, columns, CodeLayout::Plain);
        if self.begun && !rows.is_empty() {
            rows.insert(0, StyledLine::empty());
        }
        rows
    }

    /// Returns true if no text has arrived yet.
    pub(crate) fn is_idle(&self) -> bool {
        !self.begun && self.fence.is_none() && self.block.is_empty() && self.partial.is_empty()
    }

    /// Returns true if no row has been returned as finished yet.
    pub(crate) fn is_new(&self) -> bool {
        !self.begun
    }

    fn push_line(&mut self, line: &str, columns: usize, finished: &mut Vec<StyledLine>) {
        if let Some((fence, highlighter)) = &mut self.fence {
            if fence.is_closed_by(line) {
                self.fence = None;
            } else {
                finished.extend(draw_code_line(
                    &highlighter.highlight_line(line.trim_end()),
                    columns,
                ));
            }
            return;
        }
        let starts_here = !line.starts_with([' ', '\t']);
        if starts_here && let Some(fence) = CodeFence::parse_opening(line) {
            self.flush_block(columns, finished);
            self.push_separator(finished);
            let highlighter = Highlighter::for_language(line.trim_start_matches(fence.mark));
            self.fence = Some((fence, highlighter));
            return;
        }
        if line.trim().is_empty() {
            self.blank = true;
        } else {
            let heading = starts_here && line.starts_with('#');
            if starts_here && self.blank || heading {
                self.flush_block(columns, finished);
            }
            self.blank = false;
        }
        self.block.push_str(line);
        self.block.push('\n');
    }

    fn flush_block(&mut self, columns: usize, finished: &mut Vec<StyledLine>) {
        let rows = draw_block(&std::mem::take(&mut self.block), columns);
        self.blank = false;
        if !rows.is_empty() {
            self.push_separator(finished);
            finished.extend(rows);
        }
    }

    /// Adds an empty row between two blocks. Adds nothing before the first block.
    fn push_separator(&mut self, finished: &mut Vec<StyledLine>) {
        if std::mem::replace(&mut self.begun, true) {
            finished.push(StyledLine::empty());
        }
    }
}

impl CodeFence {
    fn parse_opening(line: &str) -> Option<Self> {
        let mark = line
            .chars()
            .next()
            .filter(|mark| ['`', '~'].contains(mark))?;
        let count = line.chars().take_while(|c| *c == mark).count();
        // With another backtick in the line, the text is inline code instead of a fence.
        (count >= 3 && !(mark == '`' && line[count..].contains('`')))
            .then_some(Self { mark, count })
    }

    fn is_closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.chars().count() >= self.count && line.chars().all(|c| c == self.mark)
    }
}

/// Draws one line of a code block, wrapped to `columns` columns.
fn draw_code_line(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let indent = StyledLine::new(CODE_INDENT, TextStyle::Plain);
    let room = columns.saturating_sub(indent.width());
    if has_wide_address(line, room) {
        return wrap_hanging(line, &indent, &indent, columns);
    }
    wrap_code(line, room)
        .iter()
        .map(|row| indent.clone().joined_with(row))
        .collect()
}

/// Returns at most the last [`TAIL_BYTES`] bytes of a text, starting at the beginning of a line if
/// possible.
fn last_bytes(text: &str) -> &str {
    let from = text.len().saturating_sub(TAIL_BYTES);
    if from == 0 {
        return text;
    }
    let tail = &text[text.ceil_char_boundary(from)..];
    tail.split_once('\n').map_or(tail, |(_, lines)| lines)
}

#[cfg(test)]
mod tests;
