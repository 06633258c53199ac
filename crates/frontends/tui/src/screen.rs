//! Draws on a terminal: prints finished rows, and draws the live region below them.
//!
//! Writes every byte to the terminal while it is in use. Invariant: the cursor is always in the
//! live region and its row there is known, so that movements are relative and the terminal is never
//! queried. The live region is never higher than the terminal. Wrapping is off while rows are
//! written: a character that is wider than expected can't push anything to another row.

use std::io::{self, Write};

use crate::app::LiveRegion;
use crate::line::{StyledLine, StyledSpan, TextStyle};
use crate::markdown;

/// Selects the escape sequences with which styles are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// The sixteen colors of the terminal's own theme, light or dark.
    #[default]
    Colour,
    /// Bold and similar attributes, without colors.
    Attributes,
    /// Neither colors nor attributes.
    Plain,
}

impl Palette {
    fn escape_codes(self, style: TextStyle) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Attributes => match style {
                TextStyle::Dim | TextStyle::LineNumber | TextStyle::Comment => "2",
                TextStyle::Strong
                | TextStyle::Heading
                | TextStyle::Accent
                | TextStyle::Warning
                | TextStyle::Bad => "1",
                TextStyle::Emphasis => "3",
                TextStyle::Link => "4",
                TextStyle::Plain
                | TextStyle::Code
                | TextStyle::Keyword
                | TextStyle::Literal
                | TextStyle::Number
                | TextStyle::Added
                | TextStyle::Removed
                | TextStyle::Good => "",
            },
            Self::Colour => match style {
                TextStyle::Plain => "",
                // Neither blue nor yellow is used: blue is hard to read on black, and yellow on
                // white.
                TextStyle::Dim | TextStyle::LineNumber => "2",
                TextStyle::Comment => "2;3",
                TextStyle::Strong => "1",
                TextStyle::Emphasis => "3",
                TextStyle::Heading => "1;36",
                TextStyle::Code | TextStyle::Number => "36",
                TextStyle::Link => "4;34",
                TextStyle::Added | TextStyle::Good | TextStyle::Literal => "32",
                TextStyle::Removed | TextStyle::Bad => "31",
                TextStyle::Warning => "33",
                TextStyle::Accent | TextStyle::Keyword => "35",
            },
        }
    }
}

/// Lets the terminal break a row that is wider than the terminal.
const WRAP_ON: &str = "\x1b[?7h";
const WRAP_OFF: &str = "\x1b[?7l";
/// The maximum number of characters in a notification.
const ALERT_CHARS: usize = 120;

/// A terminal on which haft draws: finished rows scroll up, and a live region at the bottom is
/// redrawn.
#[derive(Debug)]
pub struct TerminalScreen<W> {
    out: W,
    palette: Palette,
    /// True if the terminal supports links.
    draws_links: bool,
    /// The rows of the live region that are on the screen now.
    rows: Vec<StyledLine>,
    /// The row of the live region that contains the cursor.
    row: usize,
}

impl<W: Write> TerminalScreen<W> {
    /// Creates the screen of a terminal whose cursor is at the start of an empty row.
    pub fn new(out: W, palette: Palette) -> Self {
        Self {
            out,
            palette,
            draws_links: true,
            rows: Vec::new(),
            row: 0,
        }
    }

    /// Draws no links, for a terminal that may not support them.
    #[must_use]
    pub fn without_links(self) -> Self {
        Self {
            draws_links: false,
            ..self
        }
    }

    /// Prints the finished rows above the live region, and redraws the rows of the live region that
    /// have changed.
    pub fn draw(&mut self, finished: &[StyledLine], frame: &LiveRegion) -> io::Result<()> {
        let mut bytes = ScreenWriter {
            text: String::from("\x1b[?2026h\x1b[?25l\x1b[?7l"),
            palette: self.palette,
            draws_links: self.draws_links,
        };
        if finished.is_empty() {
            self.draw_changes(&mut bytes, &frame.rows);
        } else {
            bytes.move_up(self.row);
            bytes.text.push_str("\x1b[J");
            bytes.write_finished_rows(finished);
            self.draw_all(&mut bytes, &frame.rows);
        }
        let row = frame.cursor.0.min(frame.rows.len().saturating_sub(1));
        let column = frame.cursor.1;
        bytes.move_between(self.row, row);
        bytes.write_sequence(column + 1, 'G');
        bytes.text.push_str("\x1b[?7h");
        if frame.shows_cursor {
            bytes.text.push_str("\x1b[?25h");
        }
        bytes.text.push_str("\x1b[?2026l");
        self.row = row;
        self.rows.clone_from(&frame.rows);
        self.out.write_all(bytes.text.as_bytes())?;
        self.out.flush()
    }

    /// Draws all rows of the live region. The cursor must be at the top of the region.
    fn draw_all(&mut self, bytes: &mut ScreenWriter, rows: &[StyledLine]) {
        for (at, line) in rows.iter().enumerate() {
            if at > 0 {
                bytes.text.push_str("\r\n");
            }
            bytes.write_row(line);
        }
        self.row = rows.len().saturating_sub(1);
    }

    /// Draws the rows of the live region that have changed.
    fn draw_changes(&mut self, bytes: &mut ScreenWriter, rows: &[StyledLine]) {
        let mut at = self.row;
        let mut there = self.rows.len().max(1);
        for (row, line) in rows.iter().enumerate() {
            if self.rows.get(row) == Some(line) {
                continue;
            }
            let reached = row.min(there - 1);
            bytes.move_between(at, reached);
            // If there is no row below the last one, a line break creates it.
            if row >= there {
                bytes.text.push_str("\r\n");
                there = row + 1;
            }
            bytes.write_row(line);
            at = row;
        }
        if rows.len() < self.rows.len() {
            bytes.move_between(at, rows.len());
            bytes.text.push_str("\r\x1b[J");
            at = rows.len();
        }
        self.row = at;
    }

    /// Handles a change of the terminal's width. Afterwards, the drawn rows may occupy more rows of
    /// the terminal than before.
    pub fn handle_resize(&mut self, columns: usize) -> io::Result<()> {
        let rows_of = |line: &StyledLine| line.width().div_ceil(columns.max(1)).max(1);
        let above: usize = self.rows.iter().take(self.row).map(rows_of).sum();
        self.restart_region(above)
    }

    /// Clears the live region. The next frame redraws it completely.
    pub fn clear_region(&mut self) -> io::Result<()> {
        self.restart_region(self.row)
    }

    /// Starts a new live region below the output of another program.
    pub fn restart_below(&mut self) -> io::Result<()> {
        (self.rows, self.row) = (Vec::new(), 0);
        self.out.write_all(b"\r\n")?;
        self.out.flush()
    }

    fn restart_region(&mut self, above: usize) -> io::Result<()> {
        let mut bytes = ScreenWriter {
            text: String::new(),
            palette: self.palette,
            draws_links: self.draws_links,
        };
        bytes.move_up(above);
        bytes.text.push_str("\x1b[J");
        (self.rows, self.row) = (Vec::new(), 0);
        self.out.write_all(bytes.text.as_bytes())?;
        self.out.flush()
    }

    /// Rings the bell, and shows a notification if one is given.
    pub fn send_alert(&mut self, notification: Option<&str>) -> io::Result<()> {
        if let Some(text) = notification {
            let text: String = StyledSpan::new(text, TextStyle::Plain)
                .text()
                .chars()
                .take(ALERT_CHARS)
                .collect();
            write!(self.out, "\x1b]9;{text}\x1b\\")?;
        }
        self.out.write_all(b"\x07")?;
        self.out.flush()
    }

    /// Sets the title of the terminal. If `is_first` is true, the terminal first saves its previous
    /// title.
    pub fn set_title(&mut self, is_first: bool, title: &str) -> io::Result<()> {
        let keep = if is_first { "\x1b[22;2t" } else { "" };
        write!(
            self.out,
            "{keep}\x1b]2;{}\x1b\\",
            StyledSpan::new(title, TextStyle::Plain).text()
        )?;
        self.out.flush()
    }

    /// Restores the terminal title that was saved by [`Self::set_title`].
    pub fn restore_title(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x1b[23;2t")?;
        self.out.flush()
    }

    /// Removes the live region, and leaves the cursor at the start of an empty row.
    pub fn close_region(&mut self) -> io::Result<()> {
        self.clear_region()
    }
}

/// Draws Markdown as text with escape codes, for a terminal on which nothing is redrawn.
pub fn format_markdown(text: &str, columns: usize, palette: Palette) -> String {
    let mut bytes = ScreenWriter {
        text: String::new(),
        palette,
        draws_links: false,
    };
    for line in markdown::draw_block(text, columns) {
        line.spans().iter().for_each(|span| bytes.write_span(span));
        bytes.text.push('\n');
    }
    bytes.text
}

struct ScreenWriter {
    text: String,
    palette: Palette,
    draws_links: bool,
}

impl ScreenWriter {
    fn write_sequence(&mut self, number: usize, what: char) {
        self.text.push_str("\x1b[");
        self.text.push_str(&number.to_string());
        self.text.push(what);
    }

    fn move_up(&mut self, rows: usize) {
        self.text.push('\r');
        if rows > 0 {
            self.write_sequence(rows, 'A');
        }
    }

    /// Moves the cursor from one row of the live region to another. Both rows must exist.
    fn move_between(&mut self, from: usize, to: usize) {
        if to > from {
            self.write_sequence(to - from, 'B');
        } else if from > to {
            self.write_sequence(from - to, 'A');
        }
    }

    /// Draws one row in place of the old one.
    fn write_row(&mut self, line: &StyledLine) {
        // The row is erased first, because after a full row the cursor is still on the last
        // character.
        self.text.push_str("\r\x1b[K");
        line.spans().iter().for_each(|span| self.write_span(span));
    }

    /// Writes rows that are never drawn again, each followed by a line break. A row that continues
    /// in the next one is broken by the terminal itself, which can join the rows again. Wrapping must
    /// be on before the last column is written: otherwise, the next character overwrites it.
    fn write_finished_rows(&mut self, rows: &[StyledLine]) {
        let mut is_continued = false;
        for line in rows {
            if is_continued {
                line.spans().iter().for_each(|span| self.write_span(span));
            } else {
                if line.continues() {
                    self.text.push_str(WRAP_ON);
                }
                self.write_row(line);
            }
            if is_continued && !line.continues() {
                self.text.push_str(WRAP_OFF);
            }
            is_continued = line.continues();
            if !is_continued {
                self.text.push_str("\r\n");
            }
        }
    }

    fn write_span(&mut self, span: &StyledSpan) {
        let link = span.link().filter(|_| self.draws_links);
        if let Some(link) = link {
            self.text.extend(["\x1b]8;;", link, "\x1b\\"]);
        }
        match self.palette.escape_codes(span.style()) {
            "" => self.text.push_str(span.text()),
            code => self
                .text
                .extend(["\x1b[", code, "m", span.text(), "\x1b[0m"]),
        }
        if link.is_some() {
            self.text.push_str("\x1b]8;;\x1b\\");
        }
    }
}

#[cfg(test)]
mod tests;
