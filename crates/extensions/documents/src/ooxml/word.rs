//! Reads Word documents: paragraphs, headings, lists, and tables, then headers, footers, footnotes,
//! and comments separately.
//!
//! Of tracked changes, deleted text is omitted and inserted text is included.

use std::collections::HashMap;

use super::{find_main_part, list_parts_of_kind, read_relations};
use crate::archive::DocumentArchive;
use crate::flow::TextFlow;
use crate::xml::{Element, Node, XmlError, walk_xml};
use crate::{DocumentError, DocumentText};

/// Extracts the text of a Word document.
pub(in super::super) fn read_document(
    archive: &mut DocumentArchive<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<DocumentText, DocumentError> {
    let main = find_main_part(archive)?;
    let related = read_relations(archive, &main);
    let mut headings = HashMap::new();
    for part in list_parts_of_kind(&related, "styles") {
        headings = read_heading_styles(archive, &part, stop)?;
    }
    let mut flow = TextFlow::default();
    for (kind, label) in [("header", "Header"), ("footer", "Footer")] {
        let mut seen = Vec::new();
        for part in list_parts_of_kind(&related, kind) {
            let words = read_words(archive, &part, stop)?;
            if !words.is_empty() && !seen.contains(&words) {
                flow.push_line(&format!("[{label}: {words}]"));
                seen.push(words);
            }
        }
    }
    flow.push_line("");
    let mut body = WordBody {
        flow,
        headings,
        ..WordBody::default()
    };
    walk_xml(archive.open_part(&main)?, stop, |node| {
        body.visit_node(&node)
    })?;
    let mut flow = body.flow;
    for (kind, element, mark) in [
        ("footnotes", "footnote", "[^"),
        ("endnotes", "endnote", "[^e"),
        ("comments", "comment", "[Comment "),
    ] {
        for part in list_parts_of_kind(&related, kind) {
            push_notes(archive, &part, element, mark, &mut flow, stop)?;
        }
    }
    Ok(flow.finish())
}

/// Returns the levels of the heading styles, by style id. The styles are recognized by name,
/// because their ids depend on the language of the author's program.
fn read_heading_styles(
    archive: &mut DocumentArchive<'_>,
    part: &str,
    stop: &dyn Fn() -> bool,
) -> Result<HashMap<String, usize>, DocumentError> {
    let mut styles = HashMap::new();
    let mut current = None;
    walk_xml(archive.open_part(part)?, stop, |node| {
        match node {
            Node::Open(element) if element.name() == "style" => {
                current = element.attribute("styleId");
            }
            Node::Open(element) if element.name() == "name" => {
                let name = element.attribute("val").unwrap_or_default().to_lowercase();
                let level = match name.as_str() {
                    "title" => Some(1),
                    other => other
                        .strip_prefix("heading ")
                        .and_then(|level| level.parse().ok()),
                };
                if let (Some(style), Some(level)) = (current.clone(), level) {
                    styles.insert(style, level);
                }
            }
            Node::Open(_) | Node::Close(_) | Node::Text(_) => {}
        }
        Ok(())
    })?;
    Ok(styles)
}

/// Reads the nodes of a Word document's main part, and collects the part's text.
#[derive(Default)]
struct WordBody {
    flow: TextFlow,
    headings: HashMap<String, usize>,
    /// The text that precedes the current paragraph, such as a heading or list mark.
    prefix: String,
    in_text: bool,
    /// The nesting depth inside an element that repeats earlier content. 0 outside such elements.
    skipped: usize,
}

impl WordBody {
    fn visit_node(&mut self, node: &Node<'_>) -> Result<(), XmlError> {
        match node {
            // A `Fallback` element repeats the content of the preceding `Choice` element.
            Node::Open(element) if self.skipped > 0 || element.name() == "Fallback" => {
                self.skipped += 1;
            }
            Node::Close(_) if self.skipped > 0 => self.skipped -= 1,
            Node::Open(element) => self.open_element(element),
            Node::Close(name) => self.close_element(name),
            Node::Text(text) if self.in_text => self.flow.push_text(text),
            Node::Text(_) => {}
        }
        self.flow.check_limit()
    }

    fn open_element(&mut self, element: &Element<'_>) {
        match element.name() {
            "p" => self.prefix.clear(),
            "pStyle" => {
                let level = element
                    .attribute("val")
                    .and_then(|style| self.headings.get(&style).copied());
                if let Some(level) = level {
                    self.prefix = format!("{} ", "#".repeat(level.clamp(1, 6)));
                }
            }
            "numPr" if self.prefix.is_empty() => self.prefix.push_str("- "),
            "ilvl" if self.prefix.ends_with("- ") => {
                let depth = element.number_attribute("val").unwrap_or(0).min(8);
                self.prefix = format!("{}- ", "  ".repeat(depth));
            }
            "t" => self.in_text = true,
            "tab" => self.flow.push_text("\t"),
            "br" | "cr" => self.flow.push_text("\n"),
            "noBreakHyphen" => self.flow.push_text("-"),
            "footnoteReference" => self.flow.push_text(&format!(
                "[^{}]",
                element.attribute("id").unwrap_or_default()
            )),
            "endnoteReference" => self.flow.push_text(&format!(
                "[^e{}]",
                element.attribute("id").unwrap_or_default()
            )),
            "docPr" => {
                let description = element.attribute("descr").filter(|text| !text.is_empty());
                let name = description
                    .or_else(|| element.attribute("name"))
                    .unwrap_or_default();
                self.flow.push_text(&format!("[Picture: {name}]"));
            }
            "tbl" => self.flow.open_table(),
            "tc" => self.flow.open_cell(),
            _ => {}
        }
    }

    fn close_element(&mut self, name: &str) {
        match name {
            "t" => self.in_text = false,
            "p" => self.flow.end_paragraph(&self.prefix),
            "tc" => self.flow.close_cell(),
            "tr" => self.flow.close_row(),
            "tbl" => self.flow.close_table(),
            // The properties of a paragraph precede its text. Their tab stops use the element
            // `tab`, too, and are discarded here.
            "pPr" => self.flow.clear_paragraph(),
            _ => {}
        }
    }
}

/// Returns all text of a part on one line.
fn read_words(
    archive: &mut DocumentArchive<'_>,
    part: &str,
    stop: &dyn Fn() -> bool,
) -> Result<String, DocumentError> {
    let mut body = WordBody::default();
    walk_xml(archive.open_part(part)?, stop, |node| {
        body.visit_node(&node)
    })?;
    Ok(body
        .flow
        .finish()
        .text
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" "))
}

/// Writes footnotes, endnotes, or comments, with one note per line.
fn push_notes(
    archive: &mut DocumentArchive<'_>,
    part: &str,
    element: &str,
    mark: &str,
    flow: &mut TextFlow,
    stop: &dyn Fn() -> bool,
) -> Result<(), DocumentError> {
    let mut body = WordBody::default();
    let mut current = None;
    let mut lines = Vec::new();
    walk_xml(archive.open_part(part)?, stop, |node| {
        match &node {
            Node::Open(open) if open.name() == element => {
                // Separator lines are stored as notes with a special type.
                let real = open.attribute("type").is_none_or(|kind| kind == "normal");
                let label = open
                    .attribute("author")
                    .or_else(|| open.attribute("id"))
                    .unwrap_or_default();
                current = real.then_some(label);
                body = WordBody::default();
            }
            Node::Close(name) if *name == element => {
                let words = std::mem::take(&mut body).flow.finish().text;
                if let Some(label) = current.take() {
                    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
                    let by = if element == "comment" {
                        format!("by {label}")
                    } else {
                        label
                    };
                    lines.push(format!("{mark}{by}]: {words}"));
                }
            }
            Node::Open(_) | Node::Close(_) | Node::Text(_) => body.visit_node(&node)?,
        }
        Ok(())
    })?;
    if !lines.is_empty() {
        flow.push_line("");
    }
    for line in lines {
        flow.push_line(&line);
    }
    Ok(())
}
