//! config.toml as a document, so that what changes it keeps its comments and order.

use std::path::Path;

use toml_edit::{DocumentMut, Item, Table, TomlError};

use crate::exit::usage_error;
use crate::wiring;

/// The text as a document; it need not be a valid configuration.
pub(crate) fn parse(file: &Path, text: &str) -> anyhow::Result<DocumentMut> {
    text.parse()
        .map_err(|error: TomlError| usage_error(format!("{}: {error}", file.display())))
}

/// The text as a document, if it is a valid configuration.
pub(crate) fn checked(file: &Path, text: &str) -> anyhow::Result<DocumentMut> {
    wiring::check_config(file, text)?;
    parse(file, text)
}

/// A section of named tables, made if it is not there; its own heading is not printed. None where
/// it is something else.
pub(crate) fn section<'a>(document: &'a mut DocumentMut, name: &str) -> Option<&'a mut Table> {
    document.entry(name).or_insert_with(implicit).as_table_mut()
}

/// A table whose own heading is not printed.
pub(super) fn implicit() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

/// The text without an entry of a section; none where it is not there.
#[cfg(any(feature = "mcp", feature = "rag"))]
pub(crate) fn without_entry(
    file: &Path,
    text: &str,
    section: &str,
    name: &str,
) -> anyhow::Result<Option<String>> {
    let mut document = checked(file, text)?;
    let section = document.get_mut(section).and_then(Item::as_table_like_mut);
    Ok(section
        .and_then(|section| section.remove(name))
        .map(|_| document.to_string()))
}
