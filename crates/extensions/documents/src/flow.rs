//! Paragraphs and tables as lines of text.
//!
//! Invariant: the text never exceeds its limit; tables in tables end up in the cell they stand in,
//! and from some depth on as plain paragraphs of it, since every level writes its text once more.

use super::xml::XmlError;
use super::{DocumentText, MAX_TEXT};

/// Tables in each other that are written as tables.
const MAX_TABLES: usize = 8;

/// Collects the text of a document.
#[derive(Default)]
pub(super) struct TextFlow {
    text: String,
    paragraph: String,
    tables: Vec<OpenTable>,
    /// Tables that are open beyond [`MAX_TABLES`].
    deeper: usize,
    cut: bool,
}

/// A table that is being read.
#[derive(Default)]
struct OpenTable {
    row: Vec<String>,
    cell: Option<String>,
}

impl TextFlow {
    /// Adds to the current paragraph.
    pub(super) fn push(&mut self, text: &str) {
        if self.paragraph.len() + text.len() > MAX_TEXT {
            self.cut = true;
            return;
        }
        self.paragraph.push_str(text);
    }

    /// Takes back what the current paragraph holds so far.
    pub(super) fn forget(&mut self) {
        self.paragraph.clear();
    }

    /// Ends the current paragraph: a line, or a part of the cell it is in.
    pub(super) fn end_paragraph(&mut self, prefix: &str) {
        let paragraph = std::mem::take(&mut self.paragraph);
        match self.tables.last_mut().map(|table| &mut table.cell) {
            Some(Some(cell)) => add_to_cell(cell, &paragraph),
            // Between the cells of a table there is nothing to read.
            Some(None) => {}
            None => self.line(&format!("{prefix}{}", paragraph.trim_end())),
        }
    }

    /// Ends the current paragraph if there is something in it.
    pub(super) fn end_open_paragraph(&mut self) {
        if !self.paragraph.is_empty() {
            self.end_paragraph("");
        }
    }

    /// A line of its own, wherever the document is. Empty lines don't pile up.
    pub(super) fn line(&mut self, line: &str) {
        if line.is_empty() && (self.text.is_empty() || self.text.ends_with("\n\n")) {
            return;
        }
        if self.text.len() + line.len() + 1 > MAX_TEXT {
            self.cut = true;
            return;
        }
        self.text.extend(
            line.chars()
                .filter(|one| !one.is_control() || matches!(one, '\n' | '\t')),
        );
        self.text.push('\n');
    }

    /// A heading with an empty line before it.
    pub(super) fn heading(&mut self, heading: &str) {
        self.line("");
        self.line(heading);
    }

    /// Ends a walk when nothing more will be taken.
    pub(super) fn go_on(&self) -> Result<(), XmlError> {
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

    /// The innermost table, unless it is too deep to be one.
    fn table(&mut self) -> Option<&mut OpenTable> {
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
            self.line("");
        }
    }

    pub(super) fn open_cell(&mut self) {
        if let Some(table) = self.table() {
            table.cell = Some(String::new());
        }
    }

    pub(super) fn close_cell(&mut self) {
        self.end_open_paragraph();
        if let Some(table) = self.table() {
            table.row.extend(table.cell.take());
        }
    }

    pub(super) fn close_row(&mut self) {
        let Some(table) = self.table() else { return };
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
            Some(Some(cell)) => add_to_cell(cell, &line),
            Some(None) => {}
            None => self.line(&line),
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
            cut: self.cut,
        }
    }
}

/// A cell is one line, and what separates cells is escaped in it.
fn add_to_cell(cell: &mut String, text: &str) {
    if cell.len() + text.len() > MAX_TEXT {
        return;
    }
    for word in text.split_whitespace() {
        if !cell.is_empty() {
            cell.push(' ');
        }
        cell.push_str(&word.replace('|', "\\|"));
    }
}
