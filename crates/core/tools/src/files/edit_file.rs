//! `edit_file`: replaces an exact piece of text in a file.
//!
//! The file need not have been read before: matching text proves that its content is known.

use crate::files::edit::drafts::{self, FileDraft, UnitCount};
use crate::files::edit::edit_report;
use crate::files::edit::nearest::EditTerms;
use crate::files::edit::source::EditSource;
use crate::files::edit::strings::{self, Occurrences, StringMisfit};
use crate::on_files::{OnFiles, PreviewsFiles};
use crate::prelude::*;
use crate::scope::FileScope;

const NAME: &str = "edit_file";

/// Returns the parameter names for error messages, and the advice that follows if an error message
/// contains a short file in full.
fn build_edit_terms(tools: &ToolNames) -> EditTerms {
    let next = tools.hint_if_known(
        "write_to_file",
        "\nSend the whole corrected file with `write_to_file`.",
    );
    EditTerms {
        old: "`old_text`",
        new: "`new_text`",
        next,
    }
}

static MANUAL: Manual = Manual {
    aliases: &[
        Alias {
            name: "Edit",
            translate: translate_arguments,
        },
        Alias {
            name: "str_replace",
            translate: translate_arguments,
        },
    ],
    availability: Availability::Native,
    ..Manual::for_group(Group::Files)
};

/// Renames the arguments that other agents use, such as `file_path` and `old_string`, to haft's
/// names, `path` and `old_text`.
fn translate_arguments(mut arguments: Arguments) -> Arguments {
    for (classic, own) in [
        ("file_path", "path"),
        ("old_string", "old_text"),
        ("old_str", "old_text"),
        ("new_string", "new_text"),
        ("new_str", "new_text"),
    ] {
        rename_argument(&mut arguments, classic, own);
    }
    arguments
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditFileParameters {
    /// The file to change.
    path: String,
    /// The text to replace, exactly as it is in the file, white space included: part of a line or
    /// several lines.
    old_text: String,
    /// The text to put in its place; empty to delete.
    new_text: String,
    /// Replace every place that fits; default `false`.
    replace_all: Option<bool>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("edit_file/prompt"),
        &MANUAL,
        Access::Write,
        |arguments| Intent::for_write(arguments, "path"),
    )
    .on_files(|scope, parameters: &EditFileParameters| {
        Ok(drafts::write_drafts(scope, &[build_draft(scope, parameters)?])?.into_single_output())
    })
    .with_file_preview(|scope, parameters| {
        drafts::preview_drafts(&[build_draft(scope, parameters)?])
    })
}

fn build_draft(
    scope: &FileScope,
    parameters: &EditFileParameters,
) -> Result<FileDraft, ToolFailure> {
    let old = EditSource::load(scope, &parameters.path)?.into_text(scope)?;
    let (text, places) = apply_edit(
        old.as_str(),
        &old.source.name,
        parameters,
        build_edit_terms(&scope.tools),
    )
    .map_err(|failure| {
        // The message asks for the whole corrected file, which must then not be refused as unread.
        if failure.shows(old.as_str()) {
            failure.with_context(old.source.record_seen(scope))
        } else {
            failure
        }
    })?;
    Ok(FileDraft::Edit {
        old: Box::new(old),
        text,
        applied: UnitCount(places, "edit"),
        remarks: Vec::new(),
    })
}

/// Applies the edit to a text, and returns the new text with the number of replacements. On an
/// error, nothing is changed.
fn apply_edit(
    text: &str,
    name: &str,
    parameters: &EditFileParameters,
    terms: EditTerms,
) -> Result<(String, usize), ToolFailure> {
    let EditFileParameters {
        old_text,
        new_text,
        replace_all,
        ..
    } = parameters;
    let which = if *replace_all == Some(true) {
        Occurrences::All
    } else {
        Occurrences::Only
    };
    let (code, message) = match (old_text.is_empty(), text.is_empty()) {
        (true, true) => return Ok((new_text.clone(), 1)),
        (true, false) => (
            "invalid_edit",
            format!(
                "`old_text` is empty, but `{name}` has content; nothing was changed. Give the text to replace, or write the whole file anew"
            ),
        ),
        (false, _) if old_text == new_text => (
            "no_change",
            format!("nothing would change in `{name}`: `old_text` and `new_text` are the same"),
        ),
        (false, _) => match strings::replace_text(text, (old_text, new_text), which, terms) {
            Ok(done) => return Ok(done),
            Err(StringMisfit::NotFound { hint }) => (
                "no_match",
                format!("`old_text` is not in `{name}`; nothing was changed.{hint}"),
            ),
            Err(StringMisfit::Ambiguous { lines }) => (
                "ambiguous_match",
                format!(
                    "`old_text` fits {} places in `{name}`, at lines {}; nothing was changed. Add neighbouring text until it fits only one, or pass `replace_all`",
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
