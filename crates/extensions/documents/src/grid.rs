//! Writes spreadsheets as text, with one line per row. Each line begins with the number of the row.

use super::MAX_TEXT_BYTES;
use super::flow::TextFlow;

/// The maximum number of columns in a row, as in Excel. Further columns are omitted.
const MAX_COLUMNS: usize = 16_384;
/// The maximum size of a cell, in bytes. Spreadsheet programs allow 32,767 characters.
const MAX_CELL_BYTES: usize = 128 * 1024;

/// The cells of one row of a sheet.
#[derive(Clone, Default)]
pub(super) struct GridRow {
    cells: Vec<String>,
    /// The total size of the cells, in bytes.
    size: usize,
}

impl GridRow {
    /// Sets the text of the cell in `column`, counted from 0. Does nothing once the row exceeds the
    /// size limit of a whole document.
    pub(super) fn set_cell(&mut self, column: usize, text: &str) {
        if text.is_empty() || column >= MAX_COLUMNS || self.size > MAX_TEXT_BYTES {
            return;
        }
        let text = &text[..text.floor_char_boundary(MAX_CELL_BYTES)];
        if self.cells.len() <= column {
            self.cells.resize(column + 1, String::new());
        }
        if let Some(cell) = self.cells.get_mut(column) {
            let words: Vec<&str> = text.split_whitespace().collect();
            *cell = words.join(" ").replace('|', "\\|");
            self.size += cell.len();
        }
    }

    /// Writes the row to `flow` and clears it. An empty row is not written.
    pub(super) fn write_to(&mut self, number: usize, flow: &mut TextFlow) {
        if !self.cells.is_empty() {
            flow.push_line(&format!("{number} | {}", self.cells.join(" | ").trim_end()));
        }
        *self = Self::default();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }
}

/// Formats the heading that precedes the rows of a sheet.
pub(super) fn sheet_heading(name: &str, remark: &str) -> String {
    let words: Vec<&str> = name.split_whitespace().collect();
    format!("## Sheet: {}{remark}", words.join(" "))
}

/// Formats the value of a cell and, if there is one, its formula.
pub(super) fn format_cell(value: &str, formula: &str) -> String {
    match formula.trim_start_matches('=') {
        "" => value.to_owned(),
        formula => format!("{value} [={formula}]"),
    }
}

/// Returns the column of a cell reference such as `BC12`, counted from 0. Returns `None` if the
/// reference has no column.
pub(super) fn parse_column(reference: &str) -> Option<usize> {
    let letters = reference
        .bytes()
        .take_while(u8::is_ascii_alphabetic)
        .take(4);
    let number = letters.fold(0, |sum, letter| {
        sum * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1
    });
    number.checked_sub(1)
}
