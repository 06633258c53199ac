//! Markdown that arrives piece by piece, as rows.
//!
//! Responsible for what of an answer is finished: a block is, once something else has begun after
//! it, and so is each line of code in a fence. Invariant: what is finished is given once and never
//! changes; the rest, the tail, is drawn again and again and stays short.

mod block;

use crate::highlight::Highlighter;
use crate::line::{StyledLine, TextStyle};
use crate::wrap::chop;

use block::CodeLayout;
pub(crate) use block::render;

/// No more of an unfinished block is drawn: it would not fit a screen, and drawing must not take
/// longer the longer it gets.
const TAIL_BYTES: usize = 8 * 1024;

/// What stands before a line of code.
const CODE_INDENT: &str = "  ";

/// Text as it arrives.
#[derive(Debug, Default)]
pub(crate) struct MarkdownStream {
    /// The lines of the block that is not finished.
    block: String,
    /// The line that is not finished.
    partial: String,
    /// The fence that is open, and the code in it so far.
    fence: Option<(CodeFence, Highlighter)>,
    /// Whether the block's last line is blank.
    blank: bool,
    /// Whether anything was finished before.
    begun: bool,
}

/// The line that opened a block of code.
#[derive(Clone, Copy, Debug)]
struct CodeFence {
    mark: char,
    count: usize,
}

impl MarkdownStream {
    /// Takes more text; gives the rows that it finished.
    pub(crate) fn push(&mut self, text: &str, columns: usize) -> Vec<StyledLine> {
        let mut finished = Vec::new();
        let mut rest = text;
        while let Some((line, after)) = rest.split_once('\n') {
            self.partial.push_str(line);
            let line = std::mem::take(&mut self.partial);
            self.line(&line, columns, &mut finished);
            rest = after;
        }
        self.partial.push_str(rest);
        finished
    }

    /// There is no more; gives what was not finished.
    pub(crate) fn finish(&mut self, columns: usize) -> Vec<StyledLine> {
        let mut finished = Vec::new();
        let line = std::mem::take(&mut self.partial);
        if !line.is_empty() {
            self.line(&line, columns, &mut finished);
        }
        self.flush(columns, &mut finished);
        *self = Self::default();
        finished
    }

    /// What is not finished, as it looks now.
    pub(crate) fn tail(&self, columns: usize) -> Vec<StyledLine> {
        if self.fence.is_some() {
            // It gets its tones once it is whole: a line is read once.
            return code(
                &StyledLine::of(last_bytes(&self.partial), TextStyle::Plain),
                columns,
            );
        }
        let mut text = last_bytes(&self.block).to_owned();
        text.push_str(last_bytes(&self.partial));
        let mut rows = block::laid_out(&text, columns, CodeLayout::Plain);
        if self.begun && !rows.is_empty() {
            rows.insert(0, StyledLine::empty());
        }
        rows
    }

    /// Whether nothing has arrived.
    pub(crate) fn is_idle(&self) -> bool {
        !self.begun && self.fence.is_none() && self.block.is_empty() && self.partial.is_empty()
    }

    /// Whether nothing was finished yet.
    pub(crate) fn is_new(&self) -> bool {
        !self.begun
    }

    fn line(&mut self, line: &str, columns: usize, finished: &mut Vec<StyledLine>) {
        if let Some((fence, highlighter)) = &mut self.fence {
            if fence.closed_by(line) {
                self.fence = None;
            } else {
                finished.extend(code(&highlighter.line(line.trim_end()), columns));
            }
            return;
        }
        let starts_here = !line.starts_with([' ', '\t']);
        if starts_here && let Some(fence) = CodeFence::opened_by(line) {
            self.flush(columns, finished);
            self.separate(finished);
            let highlighter = Highlighter::of_language(line.trim_start_matches(fence.mark));
            self.fence = Some((fence, highlighter));
            return;
        }
        if line.trim().is_empty() {
            self.blank = true;
        } else {
            let heading = starts_here && line.starts_with('#');
            if starts_here && self.blank || heading {
                self.flush(columns, finished);
            }
            self.blank = false;
        }
        self.block.push_str(line);
        self.block.push('\n');
    }

    fn flush(&mut self, columns: usize, finished: &mut Vec<StyledLine>) {
        let rows = render(&std::mem::take(&mut self.block), columns);
        self.blank = false;
        if !rows.is_empty() {
            self.separate(finished);
            finished.extend(rows);
        }
    }

    /// An empty row between two blocks.
    fn separate(&mut self, finished: &mut Vec<StyledLine>) {
        if std::mem::replace(&mut self.begun, true) {
            finished.push(StyledLine::empty());
        }
    }
}

impl CodeFence {
    fn opened_by(line: &str) -> Option<Self> {
        let mark = line
            .chars()
            .next()
            .filter(|mark| ['`', '~'].contains(mark))?;
        let count = line.chars().take_while(|c| *c == mark).count();
        // A backtick further on makes it code within a line.
        (count >= 3 && !(mark == '`' && line[count..].contains('`')))
            .then_some(Self { mark, count })
    }

    fn closed_by(self, line: &str) -> bool {
        let line = line.trim();
        line.chars().count() >= self.count && line.chars().all(|c| c == self.mark)
    }
}

/// Rows of one line of code.
fn code(line: &StyledLine, columns: usize) -> Vec<StyledLine> {
    let rows = chop(line, columns.saturating_sub(CODE_INDENT.len()));
    rows.into_iter()
        .map(|row| {
            StyledLine::of(CODE_INDENT, TextStyle::Plain)
                .spans()
                .iter()
                .chain(row.spans())
                .cloned()
                .collect()
        })
        .collect()
}

/// The end of a text that may be long, from the beginning of a line where there is one.
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
