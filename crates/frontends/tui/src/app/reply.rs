//! The model's reply while it arrives: text, reasoning, and output that is held back until the text
//! ends.
//!
//! Invariant: rows are printed in the order in which their text arrived.

use haft_text::format_thousands;

use super::reply_rows::{FreshRows, ReplyRows};
use super::scrollback::Scrollback;
use crate::call::ToolCallView;
use crate::line::{StyledLine, TextStyle};
use crate::markdown::MarkdownStream;
use crate::viewer::ResultList;
use crate::wrap::{wrap_hanging, wrap_line};

/// The number of bytes shown at the end of reasoning that is still arriving.
const THOUGHT_BYTES: usize = 600;

#[derive(Debug, Default)]
pub(super) struct Reply {
    markdown: MarkdownStream,
    /// The finished rows, kept to compare them with the rows of another attempt at the reply.
    rows: ReplyRows,
    /// The reasoning that is arriving.
    thinking: String,
    /// Rows of output that isn't part of the reply, held back until the reply's text is complete.
    held: Vec<StyledLine>,
    /// True if the last printed row is text of the model. A blank row then separates the text from
    /// a tool call.
    after_text: bool,
}

impl Reply {
    /// Returns true if no text or reasoning is arriving.
    pub(super) fn is_idle(&self) -> bool {
        self.markdown.is_idle() && self.thinking.is_empty()
    }

    /// Appends text and prints the rows that it completes.
    pub(super) fn push_text(&mut self, text: &str, results: &mut ResultList, out: &mut Scrollback) {
        self.finish_thinking(results, out);
        let is_first = self.markdown.is_new();
        let rows = self.markdown.push(text, out.columns());
        let fresh = self.rows.add_rows(rows);
        self.print_fresh_rows(fresh, is_first, out);
    }

    pub(super) fn push_thinking(&mut self, text: &str) {
        self.thinking.push_str(text);
    }

    /// Prints the rest of the arriving text and reasoning, then the held rows. Returns true if
    /// there were held rows.
    pub(super) fn finish_reply(&mut self, results: &mut ResultList, out: &mut Scrollback) -> bool {
        self.finish_thinking(results, out);
        let is_first = self.markdown.is_new();
        let rows = self.markdown.finish(out.columns());
        let fresh = self.rows.add_rows(rows);
        self.print_fresh_rows(fresh, is_first, out);
        let fresh = self.rows.finish_reply();
        self.print_fresh_rows(fresh, false, out);
        let held = std::mem::take(&mut self.held);
        let had_held_rows = !held.is_empty();
        out.print_separated(held);
        had_held_rows
    }

    /// Discards the unfinished reply, because its request is sent again.
    pub(super) fn discard_reply(&mut self) {
        self.markdown = MarkdownStream::default();
        self.rows.discard_attempt();
        self.thinking.clear();
    }

    /// Prints output that isn't part of the reply: at once if no reply is arriving, else after the
    /// reply.
    pub(super) fn print_aside(&mut self, rows: Vec<StyledLine>, out: &mut Scrollback) {
        if self.is_idle() {
            out.print_rows(rows);
        } else {
            self.held.extend(rows);
        }
    }

    pub(super) fn has_held_rows(&self) -> bool {
        !self.held.is_empty()
    }

    /// Records that text of the model was printed by the caller.
    pub(super) fn note_printed_text(&mut self) {
        self.after_text = true;
    }

    /// Prints the rows of a tool call, below a blank row if text was printed before.
    pub(super) fn print_call(&mut self, rows: Vec<StyledLine>, out: &mut Scrollback) {
        if std::mem::take(&mut self.after_text) || out.is_after_notice() {
            out.print_separated(rows);
        } else {
            out.print_rows(rows);
        }
    }

    fn print_fresh_rows(&mut self, fresh: FreshRows, is_first: bool, out: &mut Scrollback) {
        match fresh {
            FreshRows::Next(rows) => {
                self.after_text |= !rows.is_empty();
                if is_first {
                    out.print_separated(rows);
                } else {
                    out.print_rows(rows);
                }
            }
            FreshRows::Again(rows) => {
                self.after_text = true;
                let note = StyledLine::new(text!("app-answer-again"), TextStyle::Dim);
                out.print_separated(wrap_line(&note, out.columns()));
                out.print_separated(rows);
            }
        }
    }

    /// Prints the length of the finished reasoning, and adds its text to `results`.
    fn finish_thinking(&mut self, results: &mut ResultList, out: &mut Scrollback) {
        let thought = std::mem::take(&mut self.thinking);
        if thought.trim().is_empty() {
            return;
        }
        let count = count_words(&thought);
        out.print_note(
            &text!("app-thought", count, words = format_thousands(count)),
            TextStyle::Dim,
        );
        results.push(ToolCallView::new("", text!("app-thoughts")), &thought);
    }

    /// Draws the text and reasoning that have arrived but are not printed yet.
    pub(super) fn draw_live_rows(&self, columns: usize) -> Vec<StyledLine> {
        let mut rows = Vec::new();
        let tail = self.markdown.draw_tail(columns);
        if self.markdown.is_new() && !tail.is_empty() {
            rows.push(StyledLine::empty());
        }
        rows.extend(tail);
        if !self.thinking.trim().is_empty() {
            rows.extend(self.draw_thinking(columns));
        }
        rows
    }

    /// Draws the last two rows of the reasoning.
    fn draw_thinking(&self, columns: usize) -> impl Iterator<Item = StyledLine> + use<> {
        let from = self
            .thinking
            .ceil_char_boundary(self.thinking.len().saturating_sub(THOUGHT_BYTES));
        let last = self.thinking[from..]
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let rows = wrap_hanging(
            &StyledLine::new(last, TextStyle::Dim),
            &StyledLine::new("∴ ", TextStyle::Accent),
            &StyledLine::new("  ", TextStyle::Plain),
            columns,
        );
        let extra = rows.len().saturating_sub(2);
        rows.into_iter().skip(extra)
    }
}

/// Counts the words of a text. In scripts without spaces, every character counts as a word.
fn count_words(text: &str) -> u64 {
    text.split_whitespace()
        .map(|word| {
            let wide = word
                .chars()
                .filter(|c| c.is_alphabetic() && *c >= '\u{2e80}');
            wide.count().max(1) as u64
        })
        .sum()
}
