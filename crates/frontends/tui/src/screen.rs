//! Turns lines into what a terminal does: prints what is finished, and draws the live region below
//! it.
//!
//! Responsible for every byte that is written to the terminal while it is in use. Invariant: the
//! cursor is always in the live region and its row there is known, so that moves are relative and
//! the terminal need never be asked. The live region is never higher than the terminal. While rows
//! are written the terminal does not wrap: a character that is wider than it was thought cannot
//! push anything to another row.

use std::io::{self, Write};

use crate::app::LiveRegion;
use crate::line::{StyledLine, StyledSpan, TextStyle};

/// How tones look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Palette {
    /// With the sixteen colours of the terminal's own theme, light or dark.
    #[default]
    Colour,
    /// Bold and the like, without colours.
    Attributes,
    /// As it is.
    Plain,
}

impl Palette {
    fn code(self, style: TextStyle) -> &'static str {
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
                // Neither blue nor yellow: the one is hard to read on black, the other on white.
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

/// Characters of a notification.
const ALERT_CHARS: usize = 120;

/// A terminal that is drawn on.
#[derive(Debug)]
pub struct TerminalScreen<W> {
    out: W,
    palette: Palette,
    /// The live region as it was drawn last.
    rows: Vec<StyledLine>,
    /// The row of the cursor in it.
    row: usize,
}

impl<W: Write> TerminalScreen<W> {
    /// A terminal whose cursor stands at the beginning of an empty row.
    pub fn new(out: W, palette: Palette) -> Self {
        Self {
            out,
            palette,
            rows: Vec::new(),
            row: 0,
        }
    }

    /// Prints what is finished above the live region, and brings that up to date.
    pub fn draw(&mut self, finished: &[StyledLine], frame: &LiveRegion) -> io::Result<()> {
        let mut bytes = ScreenWriter {
            text: String::from("\x1b[?2026h\x1b[?25l\x1b[?7l"),
            palette: self.palette,
        };
        if finished.is_empty() {
            self.change(&mut bytes, &frame.rows);
        } else {
            bytes.up(self.row);
            bytes.text.push_str("\x1b[J");
            for line in finished {
                bytes.row(line);
                bytes.text.push_str("\r\n");
            }
            self.whole(&mut bytes, &frame.rows);
        }
        let row = frame.cursor.0.min(frame.rows.len().saturating_sub(1));
        let column = frame.cursor.1;
        bytes.to(self.row, row);
        bytes.sequence(column + 1, 'G');
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

    /// Draws every row, from the top of the region, where the cursor is.
    fn whole(&mut self, bytes: &mut ScreenWriter, rows: &[StyledLine]) {
        for (at, line) in rows.iter().enumerate() {
            if at > 0 {
                bytes.text.push_str("\r\n");
            }
            bytes.row(line);
        }
        self.row = rows.len().saturating_sub(1);
    }

    /// Draws the rows that are not what they were.
    fn change(&mut self, bytes: &mut ScreenWriter, rows: &[StyledLine]) {
        let mut at = self.row;
        let mut there = self.rows.len().max(1);
        for (row, line) in rows.iter().enumerate() {
            if self.rows.get(row) == Some(line) {
                continue;
            }
            let reached = row.min(there - 1);
            bytes.to(at, reached);
            // Below the last row there may be no room: a line break makes it.
            if row >= there {
                bytes.text.push_str("\r\n");
                there = row + 1;
            }
            bytes.row(line);
            at = row;
        }
        if rows.len() < self.rows.len() {
            bytes.to(at, rows.len());
            bytes.text.push_str("\r\x1b[J");
            at = rows.len();
        }
        self.row = at;
    }

    /// The terminal has another width: what was drawn may lie on more rows than before.
    pub fn resized(&mut self, columns: usize) -> io::Result<()> {
        let rows_of = |line: &StyledLine| line.width().div_ceil(columns.max(1)).max(1);
        let above: usize = self.rows.iter().take(self.row).map(rows_of).sum();
        self.start_again(above)
    }

    /// What is on the screen is not to be relied on.
    pub fn forget(&mut self) -> io::Result<()> {
        self.start_again(self.row)
    }

    /// Others have written to the terminal: the live region begins anew below that.
    pub fn abandon(&mut self) -> io::Result<()> {
        (self.rows, self.row) = (Vec::new(), 0);
        self.out.write_all(b"\r\n")?;
        self.out.flush()
    }

    fn start_again(&mut self, above: usize) -> io::Result<()> {
        let mut bytes = ScreenWriter {
            text: String::new(),
            palette: self.palette,
        };
        bytes.up(above);
        bytes.text.push_str("\x1b[J");
        (self.rows, self.row) = (Vec::new(), 0);
        self.out.write_all(bytes.text.as_bytes())?;
        self.out.flush()
    }

    /// Rings the bell, and shows a notification where there is one.
    pub fn alert(&mut self, notification: Option<&str>) -> io::Result<()> {
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

    /// Sets the terminal's title; what it was before the first is kept by the terminal.
    pub fn title(&mut self, is_first: bool, title: &str) -> io::Result<()> {
        let keep = if is_first { "\x1b[22;2t" } else { "" };
        write!(
            self.out,
            "{keep}\x1b]2;{}\x1b\\",
            StyledSpan::new(title, TextStyle::Plain).text()
        )?;
        self.out.flush()
    }

    /// Gives the terminal the title back that it had.
    pub fn restore_title(&mut self) -> io::Result<()> {
        self.out.write_all(b"\x1b[23;2t")?;
        self.out.flush()
    }

    /// Takes the live region away: the cursor stands at the beginning of an empty row.
    pub fn leave(&mut self) -> io::Result<()> {
        self.forget()
    }
}

struct ScreenWriter {
    text: String,
    palette: Palette,
}

impl ScreenWriter {
    fn sequence(&mut self, number: usize, what: char) {
        self.text.push_str("\x1b[");
        self.text.push_str(&number.to_string());
        self.text.push(what);
    }

    fn up(&mut self, rows: usize) {
        self.text.push('\r');
        if rows > 0 {
            self.sequence(rows, 'A');
        }
    }

    /// From one row of the region to another that is there.
    fn to(&mut self, from: usize, to: usize) {
        if to > from {
            self.sequence(to - from, 'B');
        } else if from > to {
            self.sequence(from - to, 'A');
        }
    }

    /// One row, over what was there.
    fn row(&mut self, line: &StyledLine) {
        // Erased first: behind the last character of a full row the cursor stands on that
        // character.
        self.text.push_str("\r\x1b[K");
        line.spans().iter().for_each(|span| self.span(span));
    }

    fn span(&mut self, span: &StyledSpan) {
        if let Some(link) = span.link() {
            self.text.extend(["\x1b]8;;", link, "\x1b\\"]);
        }
        match self.palette.code(span.style()) {
            "" => self.text.push_str(span.text()),
            code => self
                .text
                .extend(["\x1b[", code, "m", span.text(), "\x1b[0m"]),
        }
        if span.link().is_some() {
            self.text.push_str("\x1b]8;;\x1b\\");
        }
    }
}

#[cfg(test)]
mod tests;
