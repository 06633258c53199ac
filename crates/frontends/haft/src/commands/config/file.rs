//! Edits config.toml as a document, so that its comments and order stay.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, TomlError};

use crate::exit::usage_error;
use crate::wiring;

/// Parses the text as a TOML document, which need not be a valid configuration.
pub(crate) fn parse_document(file: &Path, text: &str) -> anyhow::Result<DocumentMut> {
    text.parse()
        .map_err(|error: TomlError| usage_error(format!("{}: {error}", file.display())))
}

/// Parses the text as a document. Returns an error if it is not a valid configuration.
pub(crate) fn parse_valid_config(file: &Path, text: &str) -> anyhow::Result<DocumentMut> {
    wiring::check_config(file, text)?;
    parse_document(file, text)
}

/// Returns a section of named tables, or `None` if the key holds something else. A missing section
/// is created without a printed heading of its own.
pub(crate) fn get_or_insert_section<'a>(
    document: &'a mut DocumentMut,
    name: &str,
) -> Option<&'a mut Table> {
    document
        .entry(name)
        .or_insert_with(new_implicit_table)
        .as_table_mut()
}

/// Creates a table whose own heading is not printed.
pub(super) fn new_implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// Returns the text without an entry of a section, or `None` if there is no such entry.
#[cfg(any(feature = "mcp", feature = "rag"))]
pub(crate) fn remove_entry(
    file: &Path,
    text: &str,
    section: &str,
    name: &str,
) -> anyhow::Result<Option<String>> {
    let mut document = parse_valid_config(file, text)?;
    let section = document.get_mut(section).and_then(Item::as_table_like_mut);
    Ok(section
        .and_then(|section| section.remove(name))
        .map(|_| document.to_string()))
}
