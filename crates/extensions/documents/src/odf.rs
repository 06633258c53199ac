//! Reads OpenDocument texts, spreadsheets, and presentations, which use common elements.
//!
//! Empty rows and cells that are repeated to the edge of a sheet are omitted.

use super::archive::DocumentArchive;
use super::flow::TextFlow;
use super::grid::{GridRow, format_cell, sheet_heading};
use super::xml::{Element, Node, XmlError, walk_xml};
use super::{DocumentError, DocumentText, Format, MAX_TEXT_BYTES};

/// The maximum number of times that a repeated cell or row is written.
const MAX_REPEATS: usize = 1_000;

/// Returns the format of an archive, or `None` if it is not an OpenDocument file.
pub(super) fn detect_format(archive: &mut DocumentArchive<'_>) -> Option<Format> {
    match archive.read_small_part("mimetype")?.trim() {
        "application/vnd.oasis.opendocument.text" => Some(Format::OpenText),
        "application/vnd.oasis.opendocument.spreadsheet" => Some(Format::OpenSpreadsheet),
        "application/vnd.oasis.opendocument.presentation" => Some(Format::OpenPresentation),
        _ => None,
    }
}

/// Extracts the text of an OpenDocument file.
pub(super) fn read_document(
    archive: &mut DocumentArchive<'_>,
    format: Format,
    stop: &dyn Fn() -> bool,
) -> Result<DocumentText, DocumentError> {
    if archive
        .read_small_part("META-INF/manifest.xml")
        .is_some_and(|manifest| manifest.contains("encryption-data"))
    {
        return Err(DocumentError::Encrypted);
    }
    let mut reading = OdfReader {
        sheets: format == Format::OpenSpreadsheet,
        ..OdfReader::default()
    };
    if format == Format::OpenText && archive.has_part("styles.xml") {
        for (element, label) in [("header", "Header"), ("footer", "Footer")] {
            let words = read_page_text(archive, element, stop)?;
            if !words.is_empty() {
                reading.flow.push_line(&format!("[{label}: {words}]"));
            }
        }
        reading.flow.push_line("");
    }
    walk_xml(archive.open_part("content.xml")?, stop, |node| {
        reading.visit_node(&node)
    })?;
    let mut flow = reading.flow;
    if !reading.notes.is_empty() {
        flow.push_line("");
    }
    for note in reading.notes {
        flow.push_line(&note);
    }
    Ok(flow.finish())
}

/// Returns the text of all page headers or of all page footers, depending on `element`.
fn read_page_text(
    archive: &mut DocumentArchive<'_>,
    element: &str,
    stop: &dyn Fn() -> bool,
) -> Result<String, DocumentError> {
    let mut words = String::new();
    let mut inside = 0_usize;
    walk_xml(archive.open_part("styles.xml")?, stop, |node| {
        match node {
            Node::Open(open) if inside > 0 || open.name() == element => inside += 1,
            Node::Close(_) if inside > 0 => inside -= 1,
            Node::Text(text) if inside > 0 => words.push_str(text),
            Node::Open(_) | Node::Close(_) | Node::Text(_) => {}
        }
        Ok(())
    })?;
    Ok(words.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Reads the nodes of an OpenDocument file, and collects the file's text.
#[derive(Default)]
struct OdfReader {
    flow: TextFlow,
    sheets: bool,
    /// The nesting depth inside paragraph and heading elements. 0 outside them.
    paragraphs: usize,
    level: usize,
    lists: usize,
    slides: usize,
    /// The text of the open footnote or comment, and the nesting depth inside it.
    open_note: Option<(String, usize)>,
    notes: Vec<String>,
    /// One flag for each open frame, outermost first: true if one of the frame's contents was read.
    /// The remaining contents are alternatives to it and are skipped.
    frames: Vec<bool>,
    /// True if the next text is the first text in the notes of a slide.
    notes_begin: bool,
    row: GridRow,
    row_number: usize,
    row_repeats: usize,
    column: usize,
    cell_repeats: usize,
    cell: String,
    formula: String,
}

impl OdfReader {
    fn visit_node(&mut self, node: &Node<'_>) -> Result<(), XmlError> {
        if self.open_note.is_some() {
            self.visit_note(node);
        } else {
            match node {
                Node::Open(element) => self.open_element(element),
                Node::Close(name) => self.close_element(name),
                Node::Text(text) if self.paragraphs > 0 => self.push_text(text),
                Node::Text(_) => {}
            }
        }
        self.flow.check_limit()
    }

    fn visit_note(&mut self, node: &Node<'_>) {
        let Some((words, depth)) = &mut self.open_note else {
            return;
        };
        match node {
            Node::Open(element) => {
                // The text that precedes the body is the label of the note.
                if element.name() == "note-body" {
                    let label = words.trim().to_owned();
                    self.flow.push_text(&format!("[^{label}]"));
                    *words = format!("[^{label}]: ");
                } else if element.name() == "date" {
                    words.push_str("]: ");
                }
                *depth += 1;
            }
            Node::Text(text) => words.push_str(text),
            Node::Close(name) => {
                *depth -= 1;
                if *name == "date" {
                    // The date of a comment is not part of its text.
                    let kept = words.rfind("]: ").map_or(words.len(), |at| at + 3);
                    words.truncate(kept);
                }
                if *depth == 0 {
                    let line = words.split_whitespace().collect::<Vec<_>>().join(" ");
                    self.notes.push(line);
                    self.open_note = None;
                }
            }
        }
    }

    fn push_text(&mut self, text: &str) {
        if self.notes_begin && !text.trim().is_empty() {
            self.flow.push_line("");
            self.flow.push_line("Notes:");
            self.notes_begin = false;
        }
        match self.sheets {
            true if self.cell.len() < MAX_TEXT_BYTES => self.cell.push_str(text),
            true => {}
            false => self.flow.push_text(text),
        }
    }

    /// Marks the innermost open frame as read. Returns true if it was not marked before.
    fn mark_frame_seen(&mut self) -> bool {
        self.frames
            .last_mut()
            .is_none_or(|seen| !std::mem::replace(seen, true))
    }

    fn open_element(&mut self, element: &Element<'_>) {
        match element.name() {
            "p" => self.paragraphs += 1,
            "h" => {
                self.paragraphs += 1;
                self.level = element
                    .number_attribute("outline-level")
                    .unwrap_or(1)
                    .clamp(1, 6);
            }
            "list" => self.lists += 1,
            "tab" => self.push_text("\t"),
            "line-break" => self.push_text("\n"),
            "s" => self.push_text(&" ".repeat(element.number_attribute("c").unwrap_or(1).min(100))),
            "note" => self.open_note = Some((String::new(), 1)),
            "annotation" => self.open_note = Some(("[Comment by ".to_owned(), 1)),
            "frame" => self.frames.push(false),
            "text-box" => drop(self.mark_frame_seen()),
            "image" if self.mark_frame_seen() => self.push_text("[Picture]"),
            "page" => {
                self.slides += 1;
                self.flow.push_heading(&format!("## Slide {}", self.slides));
            }
            "notes" => self.notes_begin = true,
            "table" if self.sheets => {
                self.flow.push_heading(&sheet_heading(
                    &element.attribute("name").unwrap_or_default(),
                    "",
                ));
                self.row_number = 0;
            }
            "table-row" if self.sheets => {
                self.row_repeats = element
                    .number_attribute("number-rows-repeated")
                    .unwrap_or(1);
                self.column = 0;
            }
            "table-cell" | "covered-table-cell" if self.sheets => {
                self.cell.clear();
                self.cell_repeats = element
                    .number_attribute("number-columns-repeated")
                    .unwrap_or(1);
                let formula = element.attribute("formula").unwrap_or_default();
                let formula = formula.strip_prefix("of:").unwrap_or(&formula);
                // OpenDocument files contain `[.A1:.B2]` for `A1:B2`.
                self.formula = formula
                    .replace("[.", "")
                    .replace(":.", ":")
                    .replace(']', "");
            }
            "table" => {
                self.mark_frame_seen();
                self.flow.open_table();
            }
            "table-cell" => self.flow.open_cell(),
            _ => {}
        }
    }

    fn close_element(&mut self, name: &str) {
        match name {
            "p" | "h" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                if self.sheets {
                    self.cell.push(' ');
                } else {
                    let prefix = match (self.level, self.lists) {
                        (0, 0) => String::new(),
                        (0, depth) => format!("{}- ", "  ".repeat(depth.min(9) - 1)),
                        (level, _) => format!("{} ", "#".repeat(level)),
                    };
                    self.flow.end_paragraph(&prefix);
                    self.level = 0;
                }
            }
            "list" => self.lists = self.lists.saturating_sub(1),
            "frame" => {
                self.frames.pop();
                // An image on a slide is not inside a paragraph.
                if self.paragraphs == 0 && !self.sheets {
                    self.flow.end_open_paragraph();
                }
            }
            "notes" => self.notes_begin = false,
            "table-cell" | "covered-table-cell" if self.sheets => self.end_cell(),
            "table-row" if self.sheets => self.end_row(),
            "table-cell" => self.flow.close_cell(),
            "table-row" => self.flow.close_row(),
            "table" if !self.sheets => self.flow.close_table(),
            _ => {}
        }
    }

    fn end_cell(&mut self) {
        let cell = format_cell(self.cell.trim(), &self.formula);
        if !cell.is_empty() {
            for step in 0..self.cell_repeats.min(MAX_REPEATS) {
                self.row.set_cell(self.column + step, &cell);
            }
        }
        self.column = self.column.saturating_add(self.cell_repeats);
    }

    fn end_row(&mut self) {
        if !self.row.is_empty() {
            let row = std::mem::take(&mut self.row);
            for step in 0..self.row_repeats.min(MAX_REPEATS) {
                if self.flow.check_limit().is_err() {
                    break;
                }
                row.clone()
                    .write_to(self.row_number + step + 1, &mut self.flow);
            }
        }
        self.row_number = self.row_number.saturating_add(self.row_repeats);
    }
}
