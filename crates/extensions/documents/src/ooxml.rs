//! Reads the structure that Word, Excel, and PowerPoint files have in common: parts with content
//! types, and relations between parts.

pub(super) mod dates;
pub(super) mod excel;
pub(super) mod powerpoint;
pub(super) mod word;

use std::collections::HashMap;

use super::archive::DocumentArchive;
use super::xml::{Node, walk_xml};
use super::{DocumentError, Format};

/// Returns the format of an archive, derived from the content type of its main part. Returns `None`
/// if the archive is not an Office file.
pub(super) fn detect_format(archive: &mut DocumentArchive<'_>) -> Option<Format> {
    let types = read_content_types(archive).ok()?;
    types
        .iter()
        .find_map(|(_, kind)| format_from_content_type(kind))
}

fn format_from_content_type(content_type: &str) -> Option<Format> {
    let kind = content_type.strip_suffix(".main+xml")?;
    // The content types are `…wordprocessingml.document`, `…wordprocessingml.template`,
    // `…ms-word.document.macroEnabled`, and similar ones.
    let families = [
        (["wordprocessingml.", "ms-word."], Format::Word),
        (["spreadsheetml.", "ms-excel."], Format::Excel),
        (["presentationml.", "ms-powerpoint."], Format::PowerPoint),
    ];
    let family = families
        .iter()
        .find(|(names, _)| names.iter().any(|name| kind.contains(name)));
    family.map(|(_, format)| *format)
}

/// Returns the name and the content type of each part that the archive declares.
fn read_content_types(
    archive: &mut DocumentArchive<'_>,
) -> Result<Vec<(String, String)>, DocumentError> {
    let mut types = Vec::new();
    walk_xml(
        archive.open_part("[Content_Types].xml")?,
        &|| false,
        |node| {
            if let Node::Open(element) = node
                && element.name() == "Override"
                && let (Some(part), Some(kind)) = (
                    element.attribute("PartName"),
                    element.attribute("ContentType"),
                )
            {
                types.push((part.trim_start_matches('/').to_owned(), kind));
            }
            Ok(())
        },
    )?;
    Ok(types)
}

/// Returns the name of the main part, which contains the document's body.
fn find_main_part(archive: &mut DocumentArchive<'_>) -> Result<String, DocumentError> {
    let main = read_content_types(archive)?
        .into_iter()
        .find(|(_, kind)| format_from_content_type(kind).is_some());
    main.map(|(part, _)| part)
        .ok_or_else(|| DocumentError::Damaged("its main part is missing".to_owned()))
}

/// A relation from one part of an archive to a target, such as another part or a web address.
struct Relation {
    /// The last segment of the relation's type, such as `header`.
    kind: String,
    target: String,
}

/// Reads the relations of a part, by id. Returns an empty map if the part has no relations.
fn read_relations(archive: &mut DocumentArchive<'_>, part: &str) -> HashMap<String, Relation> {
    let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
    let name = if folder.is_empty() {
        format!("_rels/{file}.rels")
    } else {
        format!("{folder}/_rels/{file}.rels")
    };
    let mut relations = HashMap::new();
    let Ok(source) = archive.open_part(&name) else {
        return relations;
    };
    let result = walk_xml(source, &|| false, |node| {
        if let Node::Open(element) = node
            && element.name() == "Relationship"
            && let (Some(id), Some(kind), Some(target)) = (
                element.attribute("Id"),
                element.attribute("Type"),
                element.attribute("Target"),
            )
        {
            let kind = kind.rsplit('/').next().unwrap_or_default().to_owned();
            relations.insert(
                id,
                Relation {
                    kind,
                    target: resolve_target(folder, &target),
                },
            );
        }
        Ok(())
    });
    // If the list is damaged, the entries before the damage are still used.
    drop(result);
    relations
}

/// Resolves the path of a relation's target. A relative path starts at `folder`.
fn resolve_target(folder: &str, target: &str) -> String {
    let start = if target.starts_with('/') { "" } else { folder };
    let mut steps: Vec<&str> = Vec::new();
    for step in start.split('/').chain(target.split('/')) {
        match step {
            "" | "." => {}
            ".." => drop(steps.pop()),
            name => steps.push(name),
        }
    }
    steps.join("/")
}

/// Returns the targets of all relations of one kind. They are sorted, so that the extracted text is
/// deterministic.
fn list_parts_of_kind(relations: &HashMap<String, Relation>, kind: &str) -> Vec<String> {
    let mut parts: Vec<String> = relations
        .values()
        .filter(|relation| relation.kind == kind)
        .map(|relation| relation.target.clone())
        .collect();
    parts.sort();
    parts.dedup();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beside_resolves_targets_relative_to_their_part() {
        assert_eq!(
            resolve_target("ppt/slides", "../notesSlides/notesSlide1.xml"),
            "ppt/notesSlides/notesSlide1.xml"
        );
        assert_eq!(
            resolve_target("xl", "/xl/worksheets/sheet1.xml"),
            "xl/worksheets/sheet1.xml"
        );
        assert_eq!(resolve_target("word", "header1.xml"), "word/header1.xml");
        assert_eq!(resolve_target("", "../../../etc/passwd"), "etc/passwd");
    }

    #[test]
    fn main_format_recognizes_templates_and_macros() {
        let main = "application/vnd.openxmlformats-officedocument.wordprocessingml.";
        assert_eq!(
            format_from_content_type(&format!("{main}document.main+xml")),
            Some(Format::Word)
        );
        assert_eq!(
            format_from_content_type(&format!("{main}template.main+xml")),
            Some(Format::Word)
        );
        assert_eq!(
            format_from_content_type("application/vnd.ms-excel.sheet.macroEnabled.main+xml"),
            Some(Format::Excel)
        );
        assert_eq!(format_from_content_type("application/xml"), None);
    }
}
