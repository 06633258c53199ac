//! `multi_edit`: replaces exact pieces of text in any number of files, all or none.
//!
//! The files need not have been read before: matching text proves that their content is known.

use std::path::Path;

use haft_tool::FileUse;
use serde_json::Map;

use crate::files::edit::drafts::{self, FileDraft, UnitCount};
use crate::files::edit::edit_report;
use crate::files::edit::nearest::EditTerms;
use crate::files::edit::source::{EditSource, FreePath};
use crate::files::edit::strings::{self, Occurrences, StringMisfit};
use crate::on_files::{OnFiles, PreviewsFiles};
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "multi_edit";
const EDIT_TERMS: EditTerms = EditTerms {
    old: "`old_string`",
    new: "`new_string`",
    next: "",
};

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "MultiEdit",
        translate: translate_arguments,
    }],
    availability: Availability::Extension,
    ..Manual::for_group(Group::Files)
};

/// Copies the top-level path of a call, which other agents write only once, into each edit.
fn translate_arguments(mut arguments: Arguments) -> Arguments {
    rename_argument(&mut arguments, "file_path", "path");
    let path = arguments.shift_remove("path");
    if let (Some(path), Some(Value::Array(edits))) = (path, arguments.get_mut("edits")) {
        for edit in edits.iter_mut().filter_map(Value::as_object_mut) {
            edit.entry("path").or_insert_with(|| path.clone());
        }
    }
    arguments
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MultiEditParameters {
    /// The edits, in order.
    #[schemars(length(min = 1))]
    edits: Vec<StringEdit>,
}

/// One replacement.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StringEdit {
    /// The file to change.
    path: String,
    /// The text to replace, exactly as it is in the file: part of a line or several lines.
    old_string: String,
    /// The text to put in its place; empty to delete.
    new_string: String,
    /// Replace every place that fits; default `false`.
    replace_all: Option<bool>,
}

impl StringEdit {
    fn occurrences(&self) -> Occurrences {
        if self.replace_all == Some(true) {
            Occurrences::All
        } else {
            Occurrences::Only
        }
    }
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("multi_edit/prompt"),
        &MANUAL,
        Access::Write,
        derive_intent,
    )
    .on_files(|scope, parameters: &MultiEditParameters| edit_files(scope, &parameters.edits))
    .with_file_preview(|scope, parameters| {
        drafts::preview_drafts(&build_drafts(scope, &parameters.edits)?)
    })
}

fn derive_intent(arguments: &Value) -> Intent {
    Intent::from_parameters(arguments, |MultiEditParameters { edits }| {
        Intent::Files(
            edits
                .into_iter()
                .map(|edit| FileUse::Write(edit.path))
                .collect(),
        )
    })
}

fn edit_files(scope: &FileScope, edits: &[StringEdit]) -> CallResult {
    let drafts = build_drafts(scope, edits)?;
    let applied = UnitCount(edits.len(), "edit");
    let files = UnitCount(drafts.len(), "file");
    let mut data = Map::new();
    data.insert("applied".into(), edits.len().into());
    Ok(drafts::write_drafts(scope, &drafts)?
        .into_output(&format!("{applied} applied in {files}."), data))
}

fn build_drafts(scope: &FileScope, edits: &[StringEdit]) -> Result<Vec<FileDraft>, ToolFailure> {
    if edits.is_empty() {
        return Err(ToolFailure::new(
            "invalid_arguments",
            "`edits` is empty: give at least one edit",
        ));
    }
    let mut drafts: Vec<FileDraft> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let number = index + 1;
        let path = paths::resolve_path(&scope.workspace, &edit.path)?;
        match drafts.iter_mut().find(|draft| draft_path(draft) == path) {
            Some(draft) => apply_further_edit(draft, edit, number)?,
            None => drafts.push(draft_first_edit(scope, &path, edit, number)?),
        }
    }
    Ok(drafts)
}

fn draft_path(draft: &FileDraft) -> &Path {
    match draft {
        FileDraft::Add { place, .. } => &place.path,
        FileDraft::Edit { old, .. } | FileDraft::Move { old, .. } => &old.source.path,
        FileDraft::Rename { old, .. } | FileDraft::Delete { old } => &old.path,
    }
}

/// Drafts the first of the call's edits to a file.
fn draft_first_edit(
    scope: &FileScope,
    path: &Path,
    edit: &StringEdit,
    number: usize,
) -> Result<FileDraft, ToolFailure> {
    if edit.old_string.is_empty() && !path.exists() {
        let place = FreePath::resolve(scope, &edit.path, "Read it again.")?;
        return Ok(FileDraft::Add {
            place,
            text: edit.new_string.clone(),
        });
    }
    let old = EditSource::load(scope, &edit.path)?.into_text(scope)?;
    let text = apply_edit(old.as_str(), &old.source.name, edit, number, "")?;
    Ok(FileDraft::Edit {
        old: Box::new(old),
        text,
        applied: UnitCount(1, "edit"),
        remarks: Vec::new(),
    })
}

/// Applies another edit to a file that the call has already edited.
fn apply_further_edit(
    draft: &mut FileDraft,
    edit: &StringEdit,
    number: usize,
) -> Result<(), ToolFailure> {
    let (name, text) = match draft {
        FileDraft::Add { place, text } => (&place.name, text),
        FileDraft::Edit {
            old, text, applied, ..
        }
        | FileDraft::Move {
            old, text, applied, ..
        } => {
            applied.0 += 1;
            (&old.source.name, text)
        }
        // This tool neither moves nor deletes files.
        FileDraft::Rename { .. } | FileDraft::Delete { .. } => return Ok(()),
    };
    *text = apply_edit(text, name, edit, number, " as the edits before leave it")?;
    Ok(())
}

/// Applies an edit to a text and returns the new text. On an error, nothing is changed. `number` is
/// the number of the edit, counting from 1.
fn apply_edit(
    text: &str,
    name: &str,
    edit: &StringEdit,
    number: usize,
    after: &str,
) -> Result<String, ToolFailure> {
    let old = format!("`old_string` of edit {number}");
    let (code, message) = match (edit.old_string.is_empty(), text.is_empty()) {
        (true, true) => return Ok(edit.new_string.clone()),
        (true, false) => (
            "invalid_edit",
            format!(
                "{old} is empty, but `{name}` has content; nothing was changed. Give the text to replace, or write the whole file anew"
            ),
        ),
        (false, _) if edit.old_string == edit.new_string => (
            "no_change",
            format!(
                "edit {number} changes nothing in `{name}`: `old_string` and `new_string` are the same"
            ),
        ),
        (false, _) => match strings::replace_text(
            text,
            (&edit.old_string, &edit.new_string),
            edit.occurrences(),
            EDIT_TERMS,
        ) {
            Ok((text, _)) => return Ok(text),
            Err(StringMisfit::NotFound { hint }) => (
                "no_match",
                format!("{old} is not in `{name}`{after}; nothing was changed.{hint}"),
            ),
            Err(StringMisfit::Ambiguous { lines }) => (
                "ambiguous_match",
                format!(
                    "{old} fits {} places in `{name}`{after}, at lines {}; nothing was changed. Add neighbouring text until it fits only one, or pass `replace_all`",
                    lines.len(),
                    edit_report::format_line_numbers(&lines)
                ),
            ),
        },
    };
    Err(ToolFailure::new(code, message))
}

#[cfg(test)]
mod tests;
