//! Spreadsheets as lines of text: one a row, with its number.

use super::MAX_TEXT;
use super::flow::TextFlow;

/// The most columns any program has.
const MAX_COLUMNS: usize = 16_384;
/// Bytes of a cell; programs allow 32,767 characters.
const MAX_CELL: usize = 128 * 1024;

/// A row that is being read.
#[derive(Clone, Default)]
pub(super) struct GridRow {
    cells: Vec<String>,
    /// Bytes of all of them.
    size: usize,
}

impl GridRow {
    /// Puts a cell in its column, from 0. A row takes no more than a document.
    pub(super) fn set(&mut self, column: usize, text: &str) {
        if text.is_empty() || column >= MAX_COLUMNS || self.size > MAX_TEXT {
            return;
        }
        let text = &text[..text.floor_char_boundary(MAX_CELL)];
        if self.cells.len() <= column {
            self.cells.resize(column + 1, String::new());
        }
        if let Some(cell) = self.cells.get_mut(column) {
            let words: Vec<&str> = text.split_whitespace().collect();
            *cell = words.join(" ").replace('|', "\\|");
            self.size += cell.len();
        }
    }

    /// Writes the row if there is something in it, and is empty again.
    pub(super) fn write(&mut self, number: usize, flow: &mut TextFlow) {
        if !self.cells.is_empty() {
            flow.line(&format!("{number} | {}", self.cells.join(" | ").trim_end()));
        }
        *self = Self::default();
    }

    /// Whether it holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

/// The heading of a sheet.
pub(super) fn heading(name: &str, remark: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    format!("## Sheet: {}{remark}", words.join(" "))
}

/// A value and the formula it comes from.
pub(super) fn with_formula(value: &str, formula: &str) -> String {
    match formula.trim_start_matches('=') {
        "" => value.to_owned(),
        formula => format!("{value} [={formula}]"),
    }
}

/// The column of a reference such as `BC12`, from 0.
pub(super) fn column_of(reference: &str) -> Option<usize> {
    let letters = reference
        .bytes()
        .take_while(u8::is_ascii_alphabetic)
        .take(4);
    let number = letters.fold(0, |sum, letter| {
        sum * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1
    });
    number.checked_sub(1)
}
