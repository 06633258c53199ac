//! What a terminal would show of a text: control sequences are taken out, overwritten lines are
//! played to their end.
//!
//! Responsible for every control character. Invariant: the result holds no control character but
//! `\n` and `\t`, and the work is linear in the input, whatever the input is. Movement between
//! lines is not played: a program that redraws several lines shows each state once.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

use unicode_width::UnicodeWidthChar;

const ESC: char = '\x1b';
/// The furthest column a cursor move may reach: a terminal would stop at its edge, and a short
/// sequence must not make a long line.
const EDGE: usize = 200;
const TAB_STOP: usize = 8;

/// Whether the character does something other than being shown.
pub(crate) fn is_control(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
}

/// The text as a terminal would leave it on the screen.
pub(crate) fn render(text: &str) -> String {
    let mut screen = TerminalText {
        out: String::with_capacity(text.len()),
        line_start: 0,
        row: None,
    };
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\n' => screen.newline(),
            '\r' => screen.carriage_return(&chars),
            '\x08' => screen.row().step_back(1),
            ESC => escape(&mut chars, &mut screen),
            '\u{9b}' => control_sequence(&mut chars, &mut screen),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => {
                control_string(
                    &mut chars,
                    &mut screen,
                    if c == '\u{9d}' { ']' } else { 'P' },
                );
            }
            c if is_control(c) => screen.put_control(c),
            c => screen.put(c),
        }
    }
    screen.finish()
}

/// What follows an `ESC`.
fn escape(chars: &mut Peekable<Chars<'_>>, screen: &mut TerminalText) {
    match chars.peek().copied() {
        Some('[') => {
            chars.next();
            control_sequence(chars, screen);
        }
        Some(kind @ (']' | 'P' | 'X' | '^' | '_')) => {
            chars.next();
            control_string(chars, screen, kind);
        }
        Some(' '..='~') => {
            // Two-character and charset sequences: intermediates, then one final character.
            while chars.next_if(|c| (' '..='/').contains(c)).is_some() {}
            chars.next_if(|c| ('0'..='~').contains(c));
        }
        Some(_) | None => screen.put_control(ESC),
    }
}

/// `CSI parameters intermediates final`; only what moves inside or erases the current line is
/// played.
fn control_sequence(chars: &mut Peekable<Chars<'_>>, screen: &mut TerminalText) {
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
        'C' => screen.row().step_forward(count),
        'D' => screen.row().step_back(count),
        'G' => screen.row().move_to(count - 1),
        'K' => screen.row().erase(first.unwrap_or(0)),
        _ => {}
    }
}

/// A string such as a title (`OSC`) or a picture (`DCS`, `APC`), up to its terminator.
///
/// Without one it was no string: only its first character is replaced and the rest is text, so that
/// a stray byte in binary noise hides nothing. The scan ends at the next control character, which
/// keeps the whole linear.
fn control_string(chars: &mut Peekable<Chars<'_>>, screen: &mut TerminalText, kind: char) {
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
    screen.put(kind);
}

/// The finished text, with the current line either at its end or, once overwritten, in columns.
struct TerminalText {
    out: String,
    line_start: usize,
    row: Option<TerminalRow>,
}

impl TerminalText {
    fn put(&mut self, c: char) {
        match &mut self.row {
            Some(row) => row.put(c),
            None => self.out.push(c),
        }
    }

    /// A control character made visible.
    fn put_control(&mut self, c: char) {
        match u32::from(c) {
            code @ 0..=0x1f => {
                self.put(char::from_u32(0x2400 + code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            0x7f => self.put('\u{2421}'),
            code => format!("<U+{code:04X}>").chars().for_each(|c| self.put(c)),
        }
    }

    fn carriage_return(&mut self, rest: &Peekable<Chars<'_>>) {
        // Before a newline or the end nothing is overwritten: the common `\r\n` stays on the fast
        // path.
        let mut rest = rest.clone();
        if self.row.is_some() || !matches!(rest.peek(), None | Some('\n')) {
            self.row().move_to(0);
        }
    }

    /// The current line in columns; from here to its end it is played character by character.
    fn row(&mut self) -> &mut TerminalRow {
        let Self {
            out,
            line_start,
            row,
        } = self;
        row.get_or_insert_with(|| {
            let mut row = TerminalRow::default();
            out[*line_start..].chars().for_each(|c| row.put(c));
            out.truncate(*line_start);
            row
        })
    }

    fn end_row(&mut self) {
        if let Some(row) = self.row.take() {
            row.write_to(&mut self.out);
        }
    }

    fn newline(&mut self) {
        self.end_row();
        self.out.push('\n');
        self.line_start = self.out.len();
    }

    fn finish(mut self) -> String {
        self.end_row();
        self.out
    }
}

/// The second column of a wide character. No control character is ever stored, so it cannot be
/// confused with text.
const CONTINUED: char = '\0';

/// One line in columns with a cursor.
#[derive(Default)]
struct TerminalRow {
    cells: Vec<char>,
    /// Characters without a width, by the column they belong to.
    marks: BTreeMap<usize, String>,
    cursor: usize,
}

impl TerminalRow {
    fn put(&mut self, c: char) {
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
                    self.set(
                        self.cursor + offset,
                        if offset == 0 { c } else { CONTINUED },
                    );
                }
                self.cursor += width;
            }
        }
    }

    /// Sets one cell; a wide character of which it was a half leaves a blank in its other half.
    fn set(&mut self, column: usize, c: char) {
        if column >= self.cells.len() {
            self.cells.resize(column + 1, ' ');
        } else {
            if self.cells[column] == CONTINUED && c != CONTINUED && column > 0 {
                self.cells[column - 1] = ' ';
                self.marks.remove(&(column - 1));
            }
            if let Some(next) = self.cells.get_mut(column + 1)
                && *next == CONTINUED
            {
                *next = ' ';
            }
            self.marks.remove(&column);
        }
        self.cells[column] = c;
    }

    fn move_to(&mut self, column: usize) {
        self.cursor = column.min(self.cells.len().max(EDGE));
    }

    fn step_forward(&mut self, count: usize) {
        self.move_to(self.cursor.saturating_add(count));
    }

    fn step_back(&mut self, count: usize) {
        self.cursor = self.cursor.saturating_sub(count);
    }

    /// `CSI K`: 0 from the cursor to the end, 1 from the start to the cursor, 2 the whole line.
    fn erase(&mut self, what: usize) {
        let (from, to) = match what {
            0 => (self.cursor.min(self.cells.len()), self.cells.len()),
            1 => (0, (self.cursor + 1).min(self.cells.len())),
            2 => (0, self.cells.len()),
            _ => return,
        };
        for column in from..to {
            self.set(column, ' ');
        }
        // What is blank up to the end of the line is not there.
        if to == self.cells.len() {
            self.cells.truncate(from);
        }
    }

    fn write_to(mut self, out: &mut String) {
        for (column, c) in self.cells.iter().enumerate() {
            if *c != CONTINUED {
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
