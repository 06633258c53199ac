//! Module documents: the file `.ac.mod.md` in a folder describes the folder's purpose, use and
//! dependencies.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use haft_tool::{FileUse, Intent, Workspace};
use serde_json::Value;

use crate::failure::ToolFailure;
use crate::{paths, visible};

/// The file name of a module document.
pub(crate) const DOCUMENT_NAME: &str = ".ac.mod.md";
/// The number of bytes of a document that are read for its summary.
const SUMMARY_READ_BYTES: u64 = 4 * 1024;
/// The maximum length of a module's summary, in characters.
const MAX_SUMMARY_CHARS: usize = 120;

/// Returns the path of a module's document. `given` is the path of the module's folder or of the
/// document itself.
pub(crate) fn document_path(given: &str) -> String {
    if Path::new(given)
        .file_name()
        .is_some_and(|name| name == DOCUMENT_NAME)
    {
        return given.to_owned();
    }
    format!("{}/{DOCUMENT_NAME}", given.trim_end_matches('/'))
}

/// Returns the folder of a module. Fails if the folder does not exist.
pub(crate) fn resolve_module_folder(
    workspace: &Workspace,
    given: &str,
) -> Result<PathBuf, ToolFailure> {
    let document = paths::resolve_path(workspace, &document_path(given))?;
    let folder = document.parent().unwrap_or(&document);
    if folder.is_dir() {
        return Ok(folder.to_owned());
    }
    let message = format!(
        "`{}` is not a folder; a module is a folder",
        paths::display_path(workspace, folder)
    );
    Err(ToolFailure::new("not_a_folder", message))
}

/// Returns the document of the innermost module that contains a file, within the workspace.
pub(crate) fn find_enclosing_document(workspace: &Workspace, file: &Path) -> Option<PathBuf> {
    if file.file_name().is_some_and(|name| name == DOCUMENT_NAME) {
        return None;
    }
    let above = file
        .ancestors()
        .skip(1)
        .take_while(|folder| workspace.contains(folder));
    above
        .map(|folder| folder.join(DOCUMENT_NAME))
        .find(|document| document.is_file())
}

/// Reads the summary of a module: the first line of its document that is not a heading, or else its
/// first heading.
pub(crate) fn read_summary(document: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(document)
        .ok()?
        .take(SUMMARY_READ_BYTES)
        .read_to_end(&mut bytes)
        .ok()?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let lines = || {
        text.lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && *line != "---")
    };
    let heading = lines()
        .find_map(|line| line.strip_prefix('#'))
        .map(|line| line.trim_start_matches('#').trim());
    let line = lines().find(|line| !line.starts_with('#')).or(heading)?;
    let short = match line.char_indices().nth(MAX_SUMMARY_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    };
    Some(visible::reveal_line(&short).into_owned())
}

/// Returns the intent of a tool call that reads or writes the document of the module in its
/// argument `path`. `usage` creates the matching [`FileUse`] from the document's path.
pub(crate) fn derive_intent(arguments: &Value, usage: fn(String) -> FileUse) -> Intent {
    match arguments.get("path").and_then(Value::as_str) {
        Some(path) => Intent::Files(vec![usage(document_path(path))]),
        // The call itself reports the missing parameter.
        None => Intent::Nothing,
    }
}
