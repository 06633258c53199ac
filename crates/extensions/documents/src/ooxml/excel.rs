//! Reads Excel workbooks: the rows of every sheet, with values and formulas.

use super::dates::{self, Epoch};
use super::{find_main_part, list_parts_of_kind, read_relations};
use crate::archive::DocumentArchive;
use crate::flow::TextFlow;
use crate::grid::{GridRow, format_cell, parse_column, sheet_heading};
use crate::xml::{Node, XmlError, walk_xml};
use crate::{DocumentError, DocumentText, MAX_TEXT_BYTES};

/// Extracts the text of a workbook.
pub(in super::super) fn read_workbook(
    archive: &mut DocumentArchive<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<DocumentText, DocumentError> {
    let main = find_main_part(archive)?;
    let related = read_relations(archive, &main);
    let (sheets, epoch) = read_sheets(archive, &main, stop)?;
    let mut book = Book {
        epoch,
        ..Book::default()
    };
    for part in list_parts_of_kind(&related, "sharedStrings") {
        book.strings = read_shared_strings(archive, &part, stop)?;
    }
    for part in list_parts_of_kind(&related, "styles") {
        book.dates = read_date_styles(archive, &part, stop)?;
    }
    let mut flow = TextFlow::default();
    for sheet in sheets {
        flow.push_heading(&sheet_heading(
            &sheet.name,
            if sheet.hidden { " (hidden)" } else { "" },
        ));
        // Chart sheets contain no cells, so they are skipped.
        let Some(relation) = related
            .get(&sheet.id)
            .filter(|relation| relation.kind == "worksheet")
        else {
            continue;
        };
        let mut reading = SheetReader::new(&book, &mut flow);
        walk_xml(archive.open_part(&relation.target)?, stop, |node| {
            reading.visit_node(&node)
        })?;
    }
    Ok(flow.finish())
}

/// An entry in the workbook's list of sheets.
struct Sheet {
    name: String,
    id: String,
    hidden: bool,
}

/// The data that all sheets of a workbook share: strings, date styles and the start of the day
/// count.
#[derive(Default)]
struct Book {
    strings: Vec<String>,
    /// One flag for each cell style, true if the style shows a date.
    dates: Vec<bool>,
    epoch: Epoch,
}

fn read_sheets(
    archive: &mut DocumentArchive<'_>,
    part: &str,
    stop: &dyn Fn() -> bool,
) -> Result<(Vec<Sheet>, Epoch), DocumentError> {
    let mut sheets = Vec::new();
    let mut epoch = Epoch::default();
    walk_xml(archive.open_part(part)?, stop, |node| {
        if let Node::Open(element) = node {
            match element.name() {
                "sheet" => sheets.push(Sheet {
                    name: element.attribute("name").unwrap_or_default(),
                    id: element.attribute("r:id").unwrap_or_default(),
                    hidden: element
                        .attribute("state")
                        .is_some_and(|state| state != "visible"),
                }),
                "workbookPr"
                    if element
                        .attribute("date1904")
                        .is_some_and(|value| value == "1" || value == "true") =>
                {
                    epoch = Epoch::From1904;
                }
                _ => {}
            }
        }
        Ok(())
    })?;
    Ok((sheets, epoch))
}

fn read_shared_strings(
    archive: &mut DocumentArchive<'_>,
    part: &str,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<String>, DocumentError> {
    let mut strings = Vec::new();
    let mut current = String::new();
    let mut size = 0;
    let mut in_text = false;
    let mut in_hint = false;
    walk_xml(archive.open_part(part)?, stop, |node| {
        match node {
            Node::Open(element) => match element.name() {
                "t" => in_text = true,
                // The pronunciation of Japanese text is not part of the text.
                "rPh" => in_hint = true,
                _ => {}
            },
            Node::Close("t") => in_text = false,
            Node::Close("rPh") => in_hint = false,
            Node::Close("si") => strings.push(std::mem::take(&mut current)),
            Node::Text(text) if in_text && !in_hint => {
                size += text.len();
                current.push_str(text);
            }
            Node::Close(_) | Node::Text(_) => {}
        }
        if size > 4 * MAX_TEXT_BYTES {
            Err(XmlError::TooLarge("it holds too much text".to_owned()))
        } else {
            Ok(())
        }
    })?;
    Ok(strings)
}

fn read_date_styles(
    archive: &mut DocumentArchive<'_>,
    part: &str,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<bool>, DocumentError> {
    let mut formats = Vec::new();
    let mut styles = Vec::new();
    let mut in_cells = false;
    walk_xml(archive.open_part(part)?, stop, |node| {
        match node {
            Node::Open(element) => match element.name() {
                "numFmt" => formats.extend(
                    element
                        .number_attribute("numFmtId")
                        .zip(element.attribute("formatCode")),
                ),
                "cellXfs" => in_cells = true,
                "xf" if in_cells => {
                    let id = element.number_attribute("numFmtId").unwrap_or(0);
                    let code = formats
                        .iter()
                        .find(|(known, _)| *known == id)
                        .map(|(_, code)| code.as_str());
                    styles.push(dates::is_date_format(id, code));
                }
                _ => {}
            },
            Node::Close("cellXfs") => in_cells = false,
            Node::Close(_) | Node::Text(_) => {}
        }
        Ok(())
    })?;
    Ok(styles)
}

/// Reads the nodes of one worksheet, and writes its rows as text.
struct SheetReader<'a> {
    book: &'a Book,
    flow: &'a mut TextFlow,
    row: GridRow,
    number: usize,
    column: usize,
    kind: String,
    style: usize,
    value: String,
    formula: String,
    within: CellPart,
}

/// The part of a cell element to which the text being read belongs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CellPart {
    Outside,
    Value,
    Formula,
}

impl<'a> SheetReader<'a> {
    fn new(book: &'a Book, flow: &'a mut TextFlow) -> Self {
        let row = GridRow::default();
        let kind = String::new();
        let value = String::new();
        let formula = String::new();
        Self {
            book,
            flow,
            row,
            number: 0,
            column: 0,
            kind,
            style: 0,
            value,
            formula,
            within: CellPart::Outside,
        }
    }

    fn visit_node(&mut self, node: &Node<'_>) -> Result<(), XmlError> {
        match node {
            Node::Open(element) => match element.name() {
                "row" => self.number = element.number_attribute("r").unwrap_or(self.number + 1),
                "c" => {
                    let column = element
                        .attribute("r")
                        .and_then(|reference| parse_column(&reference));
                    self.column = column.unwrap_or(self.column);
                    self.kind = element.attribute("t").unwrap_or_default();
                    self.style = element.number_attribute("s").unwrap_or(0);
                    self.value.clear();
                    self.formula.clear();
                }
                "v" | "t" => self.within = CellPart::Value,
                "f" => self.within = CellPart::Formula,
                _ => {}
            },
            Node::Close("v" | "t" | "f") => self.within = CellPart::Outside,
            Node::Close("c") => {
                let cell = format_cell(&self.cell_text(), &self.formula);
                self.row.set_cell(self.column, &cell);
                self.column += 1;
            }
            Node::Close("row") => {
                self.row.write_to(self.number, self.flow);
                self.column = 0;
            }
            Node::Text(text) => match self.within {
                CellPart::Value => self.value.push_str(text),
                CellPart::Formula => self.formula.push_str(text),
                CellPart::Outside => {}
            },
            Node::Close(_) => {}
        }
        self.flow.check_limit()
    }

    /// Returns the value of the current cell in the form in which Excel shows it.
    fn cell_text(&self) -> String {
        match self.kind.as_str() {
            "s" => {
                let index: Option<usize> = self.value.trim().parse().ok();
                index
                    .and_then(|index| self.book.strings.get(index))
                    .cloned()
                    .unwrap_or_default()
            }
            "b" => if self.value.trim() == "1" {
                "true"
            } else {
                "false"
            }
            .to_owned(),
            "" | "n" if self.book.dates.get(self.style).copied().unwrap_or(false) => {
                let days: Option<f64> = self.value.trim().parse().ok();
                days.and_then(|days| dates::format_date(days, self.book.epoch))
                    .unwrap_or_else(|| self.value.clone())
            }
            _ => self.value.clone(),
        }
    }
}
