//! Builds the text of a document from paragraphs and tables.
//!
//! Invariant: the text never exceeds its limit. A nested table becomes text of the cell that
//! contains it; beyond [`MAX_TABLES`] levels, its paragraphs become text of the cell, because every
//! level copies its text once more.

use super::xml::XmlError;
use super::{DocumentText, MAX_TEXT_BYTES};

/// The maximum nesting depth of tables that are written as tables. The text of a table nested more
/// deeply goes into a cell of the surrounding table.
const MAX_TABLES: usize = 8;

/// Collects the paragraphs and tables of a document as text.
#[derive(Default)]
pub(super) struct TextFlow {
    text: String,
    paragraph: String,
    tables: Vec<OpenTable>,
    /// The number of open tables that are nested more deeply than [`MAX_TABLES`].
    deeper: usize,
    cut: bool,
}

/// A table that is still being read: its current row, and its open cell if there is one.
#[derive(Default)]
struct OpenTable {
    row: Vec<String>,
    cell: Option<String>,
}

impl TextFlow {
    /// Appends text to the current paragraph.
    pub(super) fn push_text(&mut self, text: &str) {
        if self.paragraph.len() + text.len() > MAX_TEXT_BYTES {
            self.cut = true;
            return;
        }
        self.paragraph.push_str(text);
    }

    /// Discards the text of the current paragraph.
    pub(super) fn clear_paragraph(&mut self) {
        self.paragraph.clear();
    }

    /// Ends the current paragraph. It becomes a line that begins with `prefix`, or a part of the
    /// open cell.
    pub(super) fn end_paragraph(&mut self, prefix: &str) {
        let paragraph = std::mem::take(&mut self.paragraph);
        match self.tables.last_mut().map(|table| &mut table.cell) {
            Some(Some(cell)) => push_to_cell(cell, &paragraph),
            // Text between the cells of a table is dropped.
            Some(None) => {}
            None => self.push_line(&format!("{prefix}{}", paragraph.trim_end())),
        }
    }

    /// Ends the current paragraph, without a prefix. Does nothing if the paragraph is empty.
    pub(super) fn end_open_paragraph(&mut self) {
        if !self.paragraph.is_empty() {
            self.end_paragraph("");
        }
    }

    /// Writes a line of its own, even while a table is open. A second empty line in a row is
    /// omitted.
    pub(super) fn push_line(&mut self, line: &str) {
        if line.is_empty() && (self.text.is_empty() || self.text.ends_with("\n\n")) {
            return;
        }
        if self.text.len() + line.len() + 1 > MAX_TEXT_BYTES {
            self.cut = true;
            return;
        }
        self.text.extend(
            line.chars()
                .filter(|one| !one.is_control() || matches!(one, '\n' | '\t')),
        );
        self.text.push('\n');
    }

    /// Writes a heading, preceded by an empty line.
    pub(super) fn push_heading(&mut self, heading: &str) {
        self.push_line("");
        self.push_line(heading);
    }

    /// Returns [`XmlError::Enough`], which ends the walk of the document, if the text has reached
    /// [`MAX_TEXT_BYTES`].
    pub(super) fn check_limit(&self) -> Result<(), XmlError> {
        if self.cut {
            Err(XmlError::Enough)
        } else {
            Ok(())
        }
    }

    pub(super) fn open_table(&mut self) {
        if self.tables.len() < MAX_TABLES {
            self.tables.push(OpenTable::default());
        } else {
            self.deeper += 1;
        }
    }

    /// Returns the innermost open table, unless it is nested too deeply to be written as a table.
    fn innermost_table(&mut self) -> Option<&mut OpenTable> {
        if self.deeper > 0 {
            None
        } else {
            self.tables.last_mut()
        }
    }

    pub(super) fn close_table(&mut self) {
        if self.deeper > 0 {
            self.deeper -= 1;
            return;
        }
        self.tables.pop();
        if self.tables.is_empty() {
            self.push_line("");
        }
    }

    pub(super) fn open_cell(&mut self) {
        if let Some(table) = self.innermost_table() {
            table.cell = Some(String::new());
        }
    }

    pub(super) fn close_cell(&mut self) {
        self.end_open_paragraph();
        if let Some(table) = self.innermost_table() {
            table.row.extend(table.cell.take());
        }
    }

    pub(super) fn close_row(&mut self) {
        let Some(table) = self.innermost_table() else {
            return;
        };
        let row = std::mem::take(&mut table.row);
        if row.is_empty() {
            return;
        }
        let line = format!("| {} |", row.join(" | "));
        let outer = self
            .tables
            .len()
            .checked_sub(2)
            .and_then(|outer| self.tables.get_mut(outer));
        match outer.map(|table| &mut table.cell) {
            Some(Some(cell)) => push_to_cell(cell, &line),
            Some(None) => {}
            None => self.push_line(&line),
        }
    }

    pub(super) fn finish(mut self) -> DocumentText {
        self.tables.clear();
        self.end_open_paragraph();
        let end = self.text.trim_end().len();
        self.text.truncate(end);
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        DocumentText {
            text: self.text,
            truncated: self.cut,
        }
    }
}

/// Appends text to a cell. Line breaks are replaced and separators are escaped, so that a row stays
/// on one line.
fn push_to_cell(cell: &mut String, text: &str) {
    if cell.len() + text.len() > MAX_TEXT_BYTES {
        return;
    }
    for word in text.split_whitespace() {
        if !cell.is_empty() {
            cell.push(' ');
        }
        cell.push_str(&word.replace('|', "\\|"));
    }
}
