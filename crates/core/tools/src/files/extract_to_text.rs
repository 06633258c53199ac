//! `extract_to_text`: writes the text of a document to a new file.

use haft_tool::{FileChange, FileUse};
use haft_types::ChangeKind;

use crate::files::change::{self, ChangeAction, PlannedChange};
use crate::files::disk::{self, DiskError, MAX_LOADED};
use crate::files::documents::{self, DocumentFile};
use crate::files::write_guard::{self, ReadRequirement};
use crate::on_files::OnFiles;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "extract_to_text";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ExtractToTextParameters {
    /// The document: PDF, Word (`.docx`), Excel (`.xlsx`), PowerPoint (`.pptx`), OpenDocument
    /// (`.odt`, `.ods`, `.odp`) or a Jupyter notebook.
    path: String,
    /// The text file to write; default beside the document, with `.txt` added to its name.
    output: Option<String>,
}

impl ExtractToTextParameters {
    /// Returns the output path. If the document's path is a symbolic link, the default output lies
    /// beside the link, not beside its target. The declared intent and the call both use this path.
    fn output_path(&self) -> String {
        self.output
            .clone()
            .unwrap_or_else(|| format!("{}.txt", self.path))
    }
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("extract_to_text/prompt"),
        &MANUAL,
        Access::Write,
        |arguments| {
            Intent::from_parameters(arguments, |parameters: ExtractToTextParameters| {
                let target = parameters.output_path();
                Intent::Files(vec![FileUse::Read(parameters.path), FileUse::Write(target)])
            })
        },
    )
    .on_files(extract_document)
}

fn extract_document(scope: &FileScope, parameters: &ExtractToTextParameters) -> CallResult {
    let path = paths::resolve_path(&scope.workspace, &parameters.path)?;
    let name = paths::display_path(&scope.workspace, &path);
    let target = paths::resolve_path(&scope.workspace, &parameters.output_path())?;
    let (file, metadata) = disk::open_file(&path, &name)?;
    if metadata.len() > MAX_LOADED {
        return Err(documents::too_large_error(&name, metadata.len()).into());
    }
    let document = disk::load_open_file(file, &metadata, &name)?;
    let Some(format) = documents::detect_format(scope, &path, &document.bytes) else {
        let message = format!(
            "`{name}` is no document that is understood here; if it is text, read it as text"
        );
        return Err(ToolFailure::new("unknown_format", message));
    };
    // Checked before the extraction: a rejection should not take a minute.
    let target_name = paths::display_path(&scope.workspace, &target);
    let old = match disk::load_file(&target, &target_name) {
        Ok(old) => Some(old),
        Err(DiskError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(old) = &old {
        write_guard::check_changeable(
            scope,
            &target,
            &target_name,
            old,
            ReadRequirement::MustBeRead,
        )?;
    }
    let extracted = documents::extract_text(
        scope,
        &DocumentFile {
            path: &path,
            name: &name,
            bytes: &document.bytes,
            format,
        },
    )?;
    let bytes = extracted.text.as_bytes();
    let (step, kind, verb) = match &old {
        None => (ChangeAction::Create { bytes }, ChangeKind::Added, "created"),
        Some(old) => (
            ChangeAction::Replace { old, bytes },
            ChangeKind::Modified,
            "overwritten",
        ),
    };
    let changes = [PlannedChange {
        path: &target,
        name: &target_name,
        step,
    }];
    let done = change::apply_changes(scope, &changes)?;

    let lines = extracted.text.lines().count();
    let size = bytes.len();
    let what = format.name;
    let mut text = format!(
        "Wrote the text of `{name}`, {what}, to `{target_name}`: {lines} lines, {size} bytes."
    );
    let mut data = json!({
        "path": target_name, "change": verb, "from": name, "document": format.id, "lines": lines, "bytes": size,
    });
    if extracted.truncated {
        text.push_str(" The document holds more text than was taken out of it.");
        data["truncated"] = true.into();
    }
    let envelope = done.build_envelope(text, data, &changes);
    Ok(ToolOutput {
        changes: vec![FileChange { path: target, kind }],
        ..envelope.into()
    })
}

#[cfg(test)]
mod tests;
