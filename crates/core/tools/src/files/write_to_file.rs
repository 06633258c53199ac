//! `write_to_file`: creates a file or replaces its whole content.

use std::path::Path;

use haft_tool::FileChange;
use haft_types::ChangeKind;

use crate::files::change::{self, ChangeAction, PlannedChange};
use crate::files::disk::{self, DiskError, LoadedFile};
use crate::files::edit::drafts::UnitCount;
use crate::files::edit::edit_report::{self, DEV_NULL, format_diff};
use crate::files::encoding::decode_text;
use crate::files::write_guard::{self, ReadRequirement};
use crate::on_files::{OnFiles, PreviewsFiles};
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "write_to_file";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "Write",
        translate: translate_arguments,
    }],
    ..Manual::for_group(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteToFileParameters {
    /// The file to write.
    path: String,
    /// The complete content; end a text with a line break.
    content: String,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("write_to_file/prompt"),
        &MANUAL,
        Access::Write,
        |arguments| Intent::for_write(arguments, "path"),
    )
    .on_files(write_file)
    .with_file_preview(preview_write)
}

/// Writes a whole file, on behalf of another tool.
pub fn write_whole_file(
    scope: &FileScope,
    path: &str,
    content: &str,
) -> Result<ToolOutput, ToolFailure> {
    write_file(
        scope,
        &WriteToFileParameters {
            path: path.to_owned(),
            content: content.to_owned(),
        },
    )
}

/// Loads the existing file. Fails if it may not be replaced, and returns `None` if there is no
/// file.
fn load_replaceable(
    scope: &FileScope,
    path: &Path,
    name: &str,
) -> Result<Option<LoadedFile>, ToolFailure> {
    match disk::load_file(path, name).map(|old| scope.apply_unsaved(path, old)) {
        Ok(old) => {
            write_guard::check_changeable(scope, path, name, &old, ReadRequirement::MustBeRead)?;
            Ok(Some(old))
        }
        Err(DiskError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn preview_write(
    scope: &FileScope,
    parameters: &WriteToFileParameters,
) -> Result<String, ToolFailure> {
    let path = paths::resolve_path(&scope.workspace, &parameters.path)?;
    let name = paths::display_path(&scope.workspace, &path);
    let old = load_replaceable(scope, &path, &name)?;
    let from = if old.is_some() {
        name.as_str()
    } else {
        DEV_NULL
    };
    // The preview omits old content that is not text.
    let text = old
        .and_then(|old| decode_text(&old.bytes))
        .map_or_else(String::new, |decoded| decoded.text);
    Ok(format_diff((from, &name), &text, &parameters.content))
}

fn write_file(scope: &FileScope, parameters: &WriteToFileParameters) -> CallResult {
    let path = paths::resolve_path(&scope.workspace, &parameters.path)?;
    let name = paths::display_path(&scope.workspace, &path);
    let old = load_replaceable(scope, &path, &name)?;
    let bytes = parameters.content.as_bytes();
    if old.as_ref().is_some_and(|old| old.bytes == bytes) {
        let text = format!("`{name}` holds exactly this already: nothing was changed.");
        return Ok(Envelope::success(text)
            .with_data(json!({ "path": name, "change": haft_tool::UNCHANGED }))
            .into());
    }
    let (step, kind, change, verb) = match &old {
        None => (
            ChangeAction::Create { bytes },
            ChangeKind::Added,
            "created",
            "Created",
        ),
        Some(old) => (
            ChangeAction::Replace { old, bytes },
            ChangeKind::Modified,
            "overwritten",
            "Overwrote",
        ),
    };
    let changes = [PlannedChange {
        path: &path,
        name: &name,
        step,
    }];
    let done = change::apply_changes(scope, &changes)?;

    let lines = parameters.content.lines().count();
    let text = format!(
        "{verb} `{name}`: {}, {}.",
        UnitCount(lines, "line"),
        UnitCount(bytes.len(), "byte")
    );
    let mut data = json!({ "path": name, "change": change, "lines": lines, "bytes": bytes.len() });
    if old.is_none() && lines > 0 {
        data["diff"] = edit_report::diff_new_text(&parameters.content).into();
    }
    let envelope = done.build_envelope(text, data, &changes);
    Ok(ToolOutput {
        changes: vec![FileChange { path, kind }],
        ..envelope.into()
    })
}

/// Renames `file_path`, which other agents use, to `path`.
fn translate_arguments(mut arguments: Arguments) -> Arguments {
    rename_argument(&mut arguments, "file_path", "path");
    arguments
}

#[cfg(test)]
mod tests;
