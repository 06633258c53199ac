//! `extract_to_text`: writes the text of a document to a new file.

use haft_tool::{FileChange, FileUse};
use haft_types::ChangeKind;

use crate::files::change::{self, ChangeAction, PlannedChange};
use crate::files::disk::{self, DiskError, MAX_LOADED};
use crate::files::documents::{self, DocumentFile};
use crate::files::guard::{self, ReadRequirement};
use crate::on_files::OnFiles;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "extract_to_text";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    ..Manual::of(Group::Files)
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
    /// Returns the output path, beside the path as given and not beside the target of a link there.
    /// The declared intent and the call both use it.
    fn target(&self) -> String {
        self.output
            .clone()
            .unwrap_or_else(|| format!("{}.txt", self.path))
    }
}

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("extract_to_text/prompt"),
        &MANUAL,
        Access::Write,
        |arguments| {
            Intent::parsed(arguments, |parameters: ExtractToTextParameters| {
                let target = parameters.target();
                Intent::Files(vec![FileUse::Read(parameters.path), FileUse::Write(target)])
            })
        },
    )
    .on_files(run)
}

fn run(scope: &FileScope, parameters: &ExtractToTextParameters) -> CallResult {
    let path = paths::resolve(&scope.workspace, &parameters.path)?;
    let name = paths::shown(&scope.workspace, &path);
    let target = paths::resolve(&scope.workspace, &parameters.target())?;
    let (file, metadata) = disk::open(&path, &name)?;
    if metadata.len() > MAX_LOADED {
        return Err(documents::too_large(&name, metadata.len()).into());
    }
    let document = disk::load_open(file, &metadata, &name)?;
    let Some(format) = documents::format_of(scope, &path, &document.bytes) else {
        let message = format!(
            "`{name}` is no document that is understood here; if it is text, read it as text"
        );
        return Err(ToolFailure::new("unknown_format", message));
    };
    // Checked before the extraction: a rejection should not take a minute.
    let target_name = paths::shown(&scope.workspace, &target);
    let old = match disk::load(&target, &target_name) {
        Ok(old) => Some(old),
        Err(DiskError::NotFound { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    if let Some(old) = &old {
        guard::check(
            scope,
            &target,
            &target_name,
            old,
            ReadRequirement::MustBeRead,
        )?;
    }
    let extracted = documents::extract(
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
    let done = change::apply(scope, &changes)?;

    let lines = extracted.text.lines().count();
    let size = bytes.len();
    let what = format.name;
    let mut text = format!(
        "Wrote the text of `{name}`, {what}, to `{target_name}`: {lines} lines, {size} bytes."
    );
    let mut data = json!({
        "path": target_name, "change": verb, "from": name, "document": format.id, "lines": lines, "bytes": size,
    });
    if extracted.cut {
        text.push_str(" The document holds more text than was taken out of it.");
        data["truncated"] = true.into();
    }
    let envelope = done.envelope(text, data, &changes);
    Ok(ToolOutput {
        changes: vec![FileChange { path: target, kind }],
        ..envelope.into()
    })
}

#[cfg(test)]
mod tests;
