//! `multi_edit`: exact pieces of text replaced in any number of files, all or none.
//!
//! The files need not have been read before: a text that fits proves that their content is known.

use std::path::Path;

use haft_tool::{Access, FileUse, Intent, Tool, ToolDefinition, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::{Coded, Failure};
use crate::files::edit::drafts::{self, Count, Draft};
use crate::files::edit::report;
use crate::files::edit::source::{Free, Source};
use crate::files::edit::strings::{self, NoFit, Which};
use crate::manual::{Alias, Arguments, Group, Manual, rename};
use crate::paths;
use crate::scope::{OnFiles, PreviewsFiles, Scope};

const NAME: &str = "multi_edit";

static MANUAL: Manual = Manual {
    example_of: "Renaming a constant in two files",
    example: r#"{"edits": [{"path": "src/limits.rs", "old_string": "const LONGEST:", "new_string": "const MAX_NAME:"}, {"path": "src/name.rs", "old_string": "LONGEST", "new_string": "MAX_NAME", "replace_all": true}]}"#,
    aliases: &[Alias { name: "MultiEdit", translate: classic }, Alias { name: "Edit", translate: classic_single }],
    ..Manual::of(Group::Files)
};

/// One file for all edits, as other agents have it.
fn classic(mut arguments: Arguments) -> Arguments {
    rename(&mut arguments, "file_path", "path");
    let path = arguments.shift_remove("path");
    if let (Some(path), Some(Value::Array(edits))) = (path, arguments.get_mut("edits")) {
        for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
            edit.entry("path").or_insert_with(|| path.clone());
        }
    }
    arguments
}

/// One edit, as other agents have it.
fn classic_single(mut arguments: Arguments) -> Arguments {
    if arguments.contains_key("edits") {
        return arguments;
    }
    rename(&mut arguments, "file_path", "path");
    Arguments::from_iter([("edits".to_owned(), Value::Array(vec![Value::Object(arguments)]))])
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The edits, applied in this order, all or none.
    #[schemars(length(min = 1))]
    edits: Vec<Edit>,
}

/// One replacement.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The file to change.
    path: String,
    /// The exact text to replace; empty to make a new file.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Whether every place is replaced; default `false`.
    replace_all: Option<bool>,
}

impl Edit {
    fn which(&self) -> Which {
        if self.replace_all == Some(true) { Which::All } else { Which::Only }
    }
}

/// The tool.
pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(NAME, include_str!("multi_edit/prompt.md"), &MANUAL, Access::Write, intent)
        .on_files(|scope, parameters: &Parameters| edit(scope, &parameters.edits))
        .previews_files(|scope, parameters| drafts::foresee(&drafts(scope, &parameters.edits)?))
}

fn intent(arguments: &Value) -> Intent {
    Intent::parsed(arguments, |Parameters { edits }| {
        Intent::Files(edits.into_iter().map(|edit| FileUse::Write(edit.path)).collect())
    })
}

/// An edit that does not fit. Nothing is changed then; edits count from 1.
#[derive(Debug, thiserror::Error)]
enum EditError {
    #[error("`edits` is empty: give at least one edit")]
    NoEdits,
    #[error("edit {edit} changes nothing in `{name}`: `old_string` and `new_string` are the same")]
    NoChange { edit: usize, name: String },
    #[error(
        "`old_string` of edit {edit} is empty, but `{name}` has content; nothing was changed. Give the text to replace, or write the whole file with `write_to_file`"
    )]
    Empty { edit: usize, name: String },
    #[error("`old_string` of edit {edit} is not in `{name}`{after}; nothing was changed.{hint}")]
    NotFound { edit: usize, name: String, after: &'static str, hint: String },
    #[error("`old_string` of edit {edit} fits {} places in `{name}`{after}, at lines {}; nothing was changed. Add neighbouring text until it fits only one, or pass `replace_all`", .lines.len(), report::list(.lines))]
    Ambiguous { edit: usize, name: String, after: &'static str, lines: Vec<usize> },
}

impl Coded for EditError {
    fn code(&self) -> &'static str {
        match self {
            Self::NoEdits => "invalid_arguments",
            Self::NoChange { .. } => "no_change",
            Self::Empty { .. } => "invalid_edit",
            Self::NotFound { .. } => "no_match",
            Self::Ambiguous { .. } => "ambiguous_match",
        }
    }
}

fn edit(scope: &Scope, edits: &[Edit]) -> Result<ToolOutput, Failure> {
    let drafts = drafts(scope, edits)?;
    let (applied, files) = (Count(edits.len(), "edit"), Count(drafts.len(), "file"));
    let mut data = Map::new();
    data.insert("applied".into(), edits.len().into());
    Ok(drafts::carry_out(scope, &drafts)?.into_output(&format!("{applied} applied in {files}."), data))
}

fn drafts(scope: &Scope, edits: &[Edit]) -> Result<Vec<Draft>, Failure> {
    if edits.is_empty() {
        return Err(EditError::NoEdits.into());
    }
    let mut drafts: Vec<Draft> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let number = index + 1;
        let path = paths::resolve(&scope.workspace, &edit.path)?;
        match drafts.iter_mut().find(|draft| path_of(draft) == path) {
            Some(draft) => edit_again(draft, edit, number)?,
            None => drafts.push(first_edit(scope, &path, edit, number)?),
        }
    }
    Ok(drafts)
}

fn path_of(draft: &Draft) -> &Path {
    match draft {
        Draft::Add { place, .. } => &place.path,
        Draft::Edit { old, .. } | Draft::Move { old, .. } => &old.source.path,
        Draft::Rename { old, .. } | Draft::Delete { old } => &old.path,
    }
}

/// The first edit of a file in a call.
fn first_edit(scope: &Scope, path: &Path, edit: &Edit, number: usize) -> Result<Draft, Failure> {
    if edit.old_string.is_empty() && !path.exists() {
        let place = Free::find(scope, &edit.path, "Read it again.")?;
        return Ok(Draft::Add { place, text: edit.new_string.clone() });
    }
    let old = Source::load(scope, &edit.path)?.text(scope)?;
    let text = replaced(old.as_str(), &old.source.name, edit, number, "")?;
    Ok(Draft::Edit { old: Box::new(old), text, applied: Count(1, "edit"), remarks: Vec::new() })
}

/// A further edit of a file, on what the ones before made of it.
fn edit_again(draft: &mut Draft, edit: &Edit, number: usize) -> Result<(), EditError> {
    let (name, text) = match draft {
        Draft::Add { place, text } => (&place.name, text),
        Draft::Edit { old, text, applied, .. } | Draft::Move { old, text, applied, .. } => {
            applied.0 += 1;
            (&old.source.name, text)
        }
        // This tool moves and deletes no files.
        Draft::Rename { .. } | Draft::Delete { .. } => return Ok(()),
    };
    *text = replaced(text, name, edit, number, " as the edits before leave it")?;
    Ok(())
}

fn replaced(text: &str, name: &str, edit: &Edit, number: usize, after: &'static str) -> Result<String, EditError> {
    let name = || name.to_owned();
    match (edit.old_string.is_empty(), text.is_empty()) {
        (true, true) => return Ok(edit.new_string.clone()),
        (true, false) => return Err(EditError::Empty { edit: number, name: name() }),
        (false, _) => {}
    }
    if edit.old_string == edit.new_string {
        return Err(EditError::NoChange { edit: number, name: name() });
    }
    match strings::replace(text, &edit.old_string, &edit.new_string, edit.which()) {
        Ok((text, _)) => Ok(text),
        Err(NoFit::NotFound { hint }) => Err(EditError::NotFound { edit: number, name: name(), after, hint }),
        Err(NoFit::Ambiguous { lines }) => Err(EditError::Ambiguous { edit: number, name: name(), after, lines }),
    }
}

#[cfg(test)]
mod tests;
