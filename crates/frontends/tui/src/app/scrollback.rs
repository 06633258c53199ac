//! Finished rows on their way to the terminal's scrollback.
//!
//! Invariant: rows are taken in the order in which they were printed, and a delayed echo comes
//! before everything that is printed after it.

use crate::line::{StyledLine, TextStyle};
use crate::wrap::{wrap_hanging, wrap_line};

/// The mark before the user's input.
pub(super) const PROMPT_MARK: &str = "> ";
/// The maximum number of lines of a prompt that are echoed.
const MAX_ECHOED_LINES: usize = 12;

/// The rows that the handling of the current input has printed, laid out for a terminal of
/// `columns` columns.
#[derive(Debug)]
pub(super) struct Scrollback {
    columns: usize,
    rows: Vec<StyledLine>,
    /// The rows of the input that opened a list, printed only if the user chooses something in the
    /// list.
    echo: Option<Vec<StyledLine>>,
    /// True if the last printed row belongs to a notice.
    after_notice: bool,
}

impl Scrollback {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            columns,
            rows: Vec::new(),
            echo: None,
            after_notice: false,
        }
    }

    pub(super) fn columns(&self) -> usize {
        self.columns
    }

    pub(super) fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    pub(super) fn print_rows(&mut self, rows: Vec<StyledLine>) {
        self.print_echo();
        self.after_notice &= rows.is_empty();
        self.rows.extend(rows);
    }

    /// Returns true if the last printed row belongs to a notice.
    pub(super) fn is_after_notice(&self) -> bool {
        self.after_notice
    }

    /// Prints a notice, wrapped to the width of the terminal. A blank row separates the notice from
    /// other output, but not from another notice.
    pub(super) fn print_notice(&mut self, text: &str, style: TextStyle) {
        if text.trim().is_empty() {
            return;
        }
        if !self.after_notice {
            self.print_rows(vec![StyledLine::empty()]);
        }
        self.print_note(text, style);
        self.after_notice = true;
    }

    /// Prints rows below a blank row; prints nothing if there are no rows.
    pub(super) fn print_separated(&mut self, rows: Vec<StyledLine>) {
        if !rows.is_empty() {
            self.print_echo();
            self.after_notice = false;
            self.rows.push(StyledLine::empty());
            self.rows.extend(rows);
        }
    }

    /// Prints a text, wrapped to the width of the terminal.
    pub(super) fn print_note(&mut self, text: &str, style: TextStyle) {
        let rows = text
            .lines()
            .flat_map(|line| wrap_line(&StyledLine::new(line, style), self.columns))
            .collect();
        self.print_rows(rows);
    }

    /// Prints the user's input.
    pub(super) fn print_prompt(&mut self, text: &str) {
        self.print_separated(layout_prompt(text, self.columns));
    }

    /// Holds back the echo of the user's input until [`Self::print_echo`] is called or another row
    /// is printed.
    pub(super) fn delay_echo(&mut self, text: &str) {
        self.echo = Some(layout_prompt(text, self.columns));
    }

    pub(super) fn print_echo(&mut self) {
        if let Some(rows) = self.echo.take() {
            self.print_separated(rows);
        }
    }

    pub(super) fn discard_echo(&mut self) {
        self.echo = None;
    }

    /// Removes and returns the printed rows.
    pub(super) fn take_rows(&mut self) -> Vec<StyledLine> {
        std::mem::take(&mut self.rows)
    }
}

/// Lays out the user's input, cut to [`MAX_ECHOED_LINES`].
pub(super) fn layout_prompt(text: &str, columns: usize) -> Vec<StyledLine> {
    let first = StyledLine::new(PROMPT_MARK, TextStyle::Accent);
    let rest = StyledLine::new("  ", TextStyle::Plain);
    let mut rows = Vec::new();
    let shown: Vec<_> = text.lines().take(MAX_ECHOED_LINES).collect();
    for (at, line) in shown.iter().enumerate() {
        let front = if at == 0 { &first } else { &rest };
        rows.extend(wrap_hanging(
            &StyledLine::new(line, TextStyle::Strong),
            front,
            &rest,
            columns,
        ));
    }
    let more = text.lines().count().saturating_sub(shown.len());
    if more > 0 {
        rows.push(
            StyledLine::new(
                format!("  {}", text!("app-more-lines", more)),
                TextStyle::Dim,
            )
            .cut(columns),
        );
    }
    rows
}
