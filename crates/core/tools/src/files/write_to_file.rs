//! `write_to_file`: creates a file or replaces its whole content.

use std::path::Path;

use haft_tool::FileChange;
use haft_types::ChangeKind;

use crate::files::change::{self, ChangeAction, PlannedChange};
use crate::files::disk::{self, DiskError, Loaded};
use crate::files::edit::drafts::Count;
use crate::files::edit::report::{self, NOWHERE, whole_diff};
use crate::files::encoding::decode;
use crate::files::guard::{self, ReadRequirement};
use crate::on_files::{OnFiles, PreviewsFiles};
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "write_to_file";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "Write",
        translate: classic,
    }],
    ..Manual::of(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteToFileParameters {
    /// The file to write.
    path: String,
    /// The complete content; end a text with a line break.
    content: String,
}

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("write_to_file/prompt"),
        &MANUAL,
        Access::Write,
        |arguments| Intent::writes(arguments, "path"),
    )
    .on_files(write)
    .previews_files(foresee)
}

/// Writes a whole file, for another tool.
pub(crate) fn write_whole(scope: &FileScope, path: &str, content: &str) -> CallResult {
    write(
        scope,
        &WriteToFileParameters {
            path: path.to_owned(),
            content: content.to_owned(),
        },
    )
}

/// Loads the existing file if it may be replaced, or returns `None` if there is no file.
fn replaceable(scope: &FileScope, path: &Path, name: &str) -> Result<Option<Loaded>, ToolFailure> {
    match disk::load(path, name).map(|old| scope.as_open(path, old)) {
        Ok(old) => {
            guard::check(scope, path, name, &old, ReadRequirement::MustBeRead)?;
            Ok(Some(old))
        }
        Err(DiskError::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn foresee(scope: &FileScope, parameters: &WriteToFileParameters) -> Result<String, ToolFailure> {
    let path = paths::resolve(&scope.workspace, &parameters.path)?;
    let name = paths::shown(&scope.workspace, &path);
    let old = replaceable(scope, &path, &name)?;
    let from = if old.is_some() {
        name.as_str()
    } else {
        NOWHERE
    };
    // The preview omits old content that is not text.
    let text = old
        .and_then(|old| decode(&old.bytes))
        .map_or_else(String::new, |decoded| decoded.text);
    Ok(whole_diff((from, &name), &text, &parameters.content))
}

fn write(scope: &FileScope, parameters: &WriteToFileParameters) -> CallResult {
    let path = paths::resolve(&scope.workspace, &parameters.path)?;
    let name = paths::shown(&scope.workspace, &path);
    let old = replaceable(scope, &path, &name)?;
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
    let done = change::apply(scope, &changes)?;

    let lines = parameters.content.lines().count();
    let text = format!(
        "{verb} `{name}`: {}, {}.",
        Count(lines, "line"),
        Count(bytes.len(), "byte")
    );
    let mut data = json!({ "path": name, "change": change, "lines": lines, "bytes": bytes.len() });
    if old.is_none() && lines > 0 {
        data["diff"] = report::beginning(&parameters.content).into();
    }
    let envelope = done.envelope(text, data, &changes);
    Ok(ToolOutput {
        changes: vec![FileChange { path, kind }],
        ..envelope.into()
    })
}

/// Translates `file_path`.
fn classic(mut arguments: Arguments) -> Arguments {
    rename(&mut arguments, "file_path", "path");
    arguments
}

#[cfg(test)]
mod tests;
