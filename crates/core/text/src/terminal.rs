//! Renders text as a terminal would show it: control sequences are removed, and overwritten lines
//! are replayed to their final state.
//!
//! This module handles every control character. Invariant: the result contains no control character
//! but `\n` and `\t`, and the work is linear in the input, whatever the input is. Cursor movement
//! between lines is not replayed: a program that redraws several lines shows each state once.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use unicode_width::UnicodeWidthChar;

const ESC: char = '\x1b';
/// The last column that cursor movements can reach beyond the end of a line. Real terminals limit
/// the cursor to their width. Without a limit, a short sequence could create a very long line.
const MAX_CURSOR_COLUMN: usize = 200;
const TAB_STOP: usize = 8;

/// True for control characters other than line breaks and tabs.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// Returns the text as a terminal would show it after the last character.
pub(crate) fn render_screen(text: &str) -> String {
    let mut screen = TerminalText {
        out: String::with_capacity(text.len()),
        line_start: 0,
        row: None,
    };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => screen.push_newline(),
            '\r' => screen.apply_carriage_return(&chars),
            '\x08' => screen.current_row().step_back(1),
            ESC => apply_escape(&mut chars, &mut screen),
            '\u{9b}' => apply_control_sequence(&mut chars, &mut screen),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                skip_control_string(
                    &mut chars,
                    &mut screen,
                    if c == '\u{9d}' { ']' } else { 'P' },
                );
            }
            c if is_control(c) => screen.put_control(c),
            c => screen.put_char(c),
        }
    }
    screen.finish()
}

/// Reads and applies the escape sequence that follows an `ESC`.
fn apply_escape(chars: &mut Peekable<Chars<'_>>, screen: &mut TerminalText) {
    match chars.peek().copied() {
        Some('[') => {
            chars.next();
            apply_control_sequence(chars, screen);
        }
        Some(kind @ (']' | 'P' | 'X' | '^' | '_')) => {
            chars.next();
            skip_control_string(chars, screen, kind);
        }
        Some(' '..='~') => {
            // Two-character and charset sequences: intermediates, then one final character.
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
        Some(_) | None => screen.put_control(ESC),
    }
}

/// Reads and applies a control sequence, which follows `CSI`: parameters, intermediates and a final
/// character. Only sequences that move the cursor in the current line or erase parts of that line
/// have an effect.
fn apply_control_sequence(chars: &mut Peekable<Chars<'_>>, screen: &mut TerminalText) {
    let mut first: Option<usize> = None;
    let mut in_first = true;
    while let Some(c) = chars.next_if(|c| ('0'..='?').contains(c)) {
        match c.to_digit(10) {
            Some(digit) if in_first => {
                first = Some(
                    first
                        .unwrap_or(0)
                        .saturating_mul(10)
                        .saturating_add(digit as usize),
                );
            }
            _ => in_first = false,
        }
    }
    let mut plain = true;
    while chars.next_if(|c| (' '..='/').contains(c)).is_some() {
        plain = false;
    }
    let Some(last) = chars.next_if(|c| ('@'..='~').contains(c)) else {
        return;
    };
    if !plain {
        return;
    }
    let count = first.unwrap_or(1).max(1);
    match last {
        'C' => screen.current_row().step_forward(count),
        'D' => screen.current_row().step_back(count),
        'G' => screen.current_row().move_to(count - 1),
        'K' => screen.current_row().erase_cells(first.unwrap_or(0)),
        _ => {}
    }
}

/// Skips a control string such as a title (`OSC`) or a picture (`DCS`, `APC`), up to its
/// terminator.
///
/// If the terminator is missing, only the introducing control character is replaced and the rest
/// stays text, so that a stray byte in binary noise hides nothing. The scan ends at the next
/// control character, which keeps the total work linear.
fn skip_control_string(chars: &mut Peekable<Chars<'_>>, screen: &mut TerminalText, kind: char) {
    let mut ahead = chars.clone();
    while let Some(c) = ahead.next() {
        let ended = match c {
            '\x07' => kind == ']',
            '\u{9c}' | '\x18' | '\x1a' => true,
            ESC => ahead.next_if_eq(&'\\').is_some(),
            '\n' | '\r' | '\t' if kind != ']' => continue,
            c if c.is_control() => false,
            _ => continue,
        };
        if ended {
            *chars = ahead;
            return;
        }
        break;
    }
    screen.put_control(ESC);
    screen.put_char(kind);
}

/// The rendered text. The current line is either at the end of `out` or, after it was overwritten,
/// in `row`, split into columns.
struct TerminalText {
    out: String,
    line_start: usize,
    row: Option<TerminalRow>,
}

impl TerminalText {
    fn put_char(&mut self, c: char) {
        match &mut self.row {
            Some(row) => row.put_char(c),
            None => self.out.push(c),
        }
    }

    /// Replaces a control character with a visible symbol.
    fn put_control(&mut self, c: char) {
        match u32::from(c) {
            code @ 0..=0x1f => {
                self.put_char(char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            0x7f => self.put_char('\u{2421}'),
            code => format!("<U+{code:04X}>")
                .chars()
                .for_each(|c| self.put_char(c)),
        }
    }

    fn apply_carriage_return(&mut self, rest: &Peekable<Chars<'_>>) {
        // Before a newline or the end nothing is overwritten: the common `\r\n` stays on the fast
        // path.
        let mut rest = rest.clone();
        if self.row.is_some() || !matches!(rest.peek(), None | Some('\n')) {
            self.current_row().move_to(0);
        }
    }

    /// Returns the current line, split into columns. From then on, characters are placed one by one
    /// until the line ends.
    fn current_row(&mut self) -> &mut TerminalRow {
        let Self {
            out,
            line_start,
            row,
        } = self;
        row.get_or_insert_with(|| {
            let mut row = TerminalRow::default();
            out[*line_start..].chars().for_each(|c| row.put_char(c));
            out.truncate(*line_start);
            row
        })
    }

    fn end_row(&mut self) {
        if let Some(row) = self.row.take() {
            row.write_to(&mut self.out);
        }
    }

    fn push_newline(&mut self) {
        self.end_row();
        self.out.push('\n');
        self.line_start = self.out.len();
    }

    fn finish(mut self) -> String {
        self.end_row();
        self.out
    }
}

/// The content of the second column of a wide character. Control characters are never stored, so
/// this mark cannot be confused with text.
const WIDE_TAIL: char = '\0';

/// One line of the terminal, split into columns, with a cursor.
#[derive(Default)]
struct TerminalRow {
    cells: Vec<char>,
    /// The zero-width characters that modify another character, by the column of that character.
    marks: BTreeMap<usize, String>,
    cursor: usize,
}

impl TerminalRow {
    fn put_char(&mut self, c: char) {
        if c == '\t' {
            // A tab moves and erases nothing.
            self.cursor = (self.cursor / TAB_STOP + 1) * TAB_STOP;
            return;
        }
        match c.width().unwrap_or(0) {
            0 => {
                let column = self.cursor.saturating_sub(1);
                self.marks.entry(column).or_default().push(c);
            }
            width => {
                for offset in 0..width {
                    self.set_cell(
                        self.cursor + offset,
                        if offset == 0 { c } else { WIDE_TAIL },
                    );
                }
                self.cursor += width;
            }
        }
    }

    /// Writes a character to one column. If that column was half of a wide character, the other
    /// half becomes blank.
    fn set_cell(&mut self, column: usize, c: char) {
        if column >= self.cells.len() {
            self.cells.resize(column + 1, ' ');
        } else {
            if self.cells[column] == WIDE_TAIL && c != WIDE_TAIL && column > 0 {
                self.cells[column - 1] = ' ';
                self.marks.remove(&(column - 1));
            }
            if let Some(next) = self.cells.get_mut(column + 1)
                && *next == WIDE_TAIL
            {
                *next = ' ';
            }
            self.marks.remove(&column);
        }
        self.cells[column] = c;
    }

    fn move_to(&mut self, column: usize) {
        self.cursor = column.min(self.cells.len().max(MAX_CURSOR_COLUMN));
    }

    fn step_forward(&mut self, count: usize) {
        self.move_to(self.cursor.saturating_add(count));
    }

    fn step_back(&mut self, count: usize) {
        self.cursor = self.cursor.saturating_sub(count);
    }

    /// Applies `CSI K`. The value 0 erases from the cursor to the end of the line, 1 from the start
    /// to the cursor, and 2 the whole line.
    fn erase_cells(&mut self, what: usize) {
        let (from, to) = match what {
            0 => (self.cursor.min(self.cells.len()), self.cells.len()),
            1 => (0, (self.cursor + 1).min(self.cells.len())),
            2 => (0, self.cells.len()),
            _ => return,
        };
        for column in from..to {
            self.set_cell(column, ' ');
        }
        // Blanks at the end of the line are dropped.
        if to == self.cells.len() {
            self.cells.truncate(from);
        }
    }

    fn write_to(mut self, out: &mut String) {
        for (column, c) in self.cells.iter().enumerate() {
            if *c != WIDE_TAIL {
                out.push(*c);
            }
            if let Some(marks) = self.marks.remove(&column) {
                out.push_str(&marks);
            }
        }
        self.marks
            .into_values()
            .for_each(|marks| out.push_str(&marks));
    }
}
