//! Reads PowerPoint presentations: the slides in order, each with its notes.

use super::{find_main_part, list_parts_of_kind, read_relations};
use crate::archive::DocumentArchive;
use crate::flow::TextFlow;
use crate::xml::{Node, walk_xml};
use crate::{DocumentError, DocumentText};

/// Extracts the text of a presentation.
pub(in super::super) fn read_presentation(
    archive: &mut DocumentArchive<'_>,
    stop: &dyn Fn() -> bool,
) -> Result<DocumentText, DocumentError> {
    let main = find_main_part(archive)?;
    let related = read_relations(archive, &main);
    let mut order = Vec::new();
    walk_xml(archive.open_part(&main)?, stop, |node| {
        if let Node::Open(element) = node
            && element.name() == "sldId"
        {
            order.extend(element.attribute("r:id"));
        }
        Ok(())
    })?;
    let mut flow = TextFlow::default();
    for (number, id) in (1..).zip(order) {
        let Some(slide) = related.get(&id).map(|relation| relation.target.clone()) else {
            continue;
        };
        flow.push_heading(&format!("## Slide {number}"));
        push_slide(archive, &slide, &mut flow, stop)?;
        let slide_relations = read_relations(archive, &slide);
        for notes in list_parts_of_kind(&slide_relations, "notesSlide") {
            flow.push_line("");
            flow.push_line("Notes:");
            push_slide(archive, &notes, &mut flow, stop)?;
        }
    }
    Ok(flow.finish())
}

fn push_slide(
    archive: &mut DocumentArchive<'_>,
    part: &str,
    flow: &mut TextFlow,
    stop: &dyn Fn() -> bool,
) -> Result<(), DocumentError> {
    // Fields are skipped, because they only contain slide numbers and dates.
    let mut in_text = false;
    let mut in_field = false;
    let mut skipped = 0_usize;
    walk_xml(archive.open_part(part)?, stop, |node| {
        match node {
            // A `Fallback` element repeats the content of the preceding `Choice` element.
            Node::Open(element) if skipped > 0 || element.name() == "Fallback" => skipped += 1,
            Node::Close(_) if skipped > 0 => skipped -= 1,
            Node::Open(element) => match element.name() {
                "t" => in_text = true,
                "fld" => in_field = true,
                "br" => flow.push_text("\n"),
                "tbl" => flow.open_table(),
                "tc" => flow.open_cell(),
                "pic" => flow.push_text("[Picture]"),
                _ => {}
            },
            Node::Close(name) => match name {
                "t" => in_text = false,
                "fld" => in_field = false,
                "p" | "pic" => flow.end_paragraph(""),
                "tc" => flow.close_cell(),
                "tr" => flow.close_row(),
                "tbl" => flow.close_table(),
                _ => {}
            },
            Node::Text(text) if in_text && !in_field => flow.push_text(text),
            Node::Text(_) => {}
        }
        flow.check_limit()
    })?;
    Ok(())
}
