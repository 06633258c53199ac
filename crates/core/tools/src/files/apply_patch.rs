//! `apply_patch`: adds, changes, moves and deletes the files of one patch, all or none.
//!
//! The files need not have been read before: matching lines prove that their content is known.

use std::path::{Path, PathBuf};

use haft_tool::FileUse;
use serde_json::Map;

use crate::files::edit::blocks::{
    self, BlockAnchor, BlockMisfit, EditBlock, MatchPolicy, MisfitReason,
};
use crate::files::edit::drafts::{self, FileDraft, UnitCount};
use crate::files::edit::edit_report;
use crate::files::edit::nearest::EditTerms;
use crate::files::edit::source::{EditSource, FreePath};
use crate::on_files::{OnFiles, PreviewsFiles};
use crate::prelude::*;
use crate::scope::FileScope;
use crate::{paths, visible};

/// The sections of a patch, and remarks from parsing it.
#[derive(Debug, PartialEq, Eq)]
pub struct ParsedPatch {
    /// The sections of the patch, one for each file header.
    pub sections: Vec<PatchSection>,
    /// True if the parser ignored blanks before the markers of the patch.
    pub padded: bool,
}

/// The changes of a patch to one file.
#[derive(Debug, PartialEq, Eq)]
pub struct PatchSection {
    /// The path as written in the patch.
    pub path: String,
    pub action: PatchAction,
}

/// The effect of a patch on one file: the file is created, deleted or updated.
#[derive(Debug, PartialEq, Eq)]
pub enum PatchAction {
    /// Creates the file with the given text.
    Add { text: String },
    /// Deletes the file.
    Delete,
    /// Changes the file, moves it, or both.
    Update {
        /// The new path, if the file moves.
        move_to: Option<String>,
        chunks: Vec<EditBlock>,
    },
}

/// A function that parses a patch. The error message is for the model.
pub type PatchParser = fn(&str) -> Result<ParsedPatch, String>;

const NAME: &str = "apply_patch";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Files)
};

const EDIT_TERMS: EditTerms = EditTerms {
    old: "the patch",
    new: "What the chunk makes of it",
    next: "",
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ApplyPatchParameters {
    /// The whole patch, from `*** Begin Patch` to `*** End Patch`.
    patch: String,
}

/// Defines the tool `apply_patch` for the patch format of `parse`.
pub fn define_tool(parse: PatchParser) -> impl Tool {
    let read = move |parameters: &ApplyPatchParameters| {
        parse(&parameters.patch).map_err(|message| ToolFailure::new("invalid_patch", message))
    };
    ToolDefinition::new(
        NAME,
        prompt!("apply_patch/prompt"),
        &MANUAL,
        Access::Write,
        move |arguments| derive_intent(arguments, parse),
    )
    .on_files(move |scope, parameters| apply_patch(scope, read(parameters)?))
    .with_file_preview(move |scope, parameters| {
        drafts::preview_drafts(&build_drafts(scope, read(parameters)?.sections)?)
    })
}

fn derive_intent(arguments: &Value, parse: PatchParser) -> Intent {
    let patch = arguments.get("patch").and_then(Value::as_str).map(parse);
    // An invalid patch changes nothing; the call itself reports the error.
    let Some(Ok(patch)) = patch else {
        return Intent::Nothing;
    };
    let files = patch
        .sections
        .into_iter()
        .flat_map(|section| match section.action {
            PatchAction::Update {
                move_to: Some(target),
                ..
            } => vec![section.path, target],
            PatchAction::Update { move_to: None, .. }
            | PatchAction::Add { .. }
            | PatchAction::Delete => vec![section.path],
        });
    Intent::Files(files.map(FileUse::Write).collect())
}

/// An error in a section of the patch. On any error, no file is changed. Chunks are numbered from 1
/// within their section.
#[derive(Debug, thiserror::Error)]
enum ApplyError {
    #[error(
        "the patch names `{name}` twice; nothing was changed. Give each file one section with all its chunks"
    )]
    Twice { name: String },
    #[error("chunk {chunk} of `{name}` is not {place}; nothing was changed.{hint}")]
    NotFound {
        name: String,
        chunk: usize,
        place: &'static str,
        hint: String,
    },
    #[error(
        "there is no line `{heading}` in `{name}` as the `@@` of chunk {chunk} says; nothing was changed. Copy a whole line that stands above the chunk, or leave it out"
    )]
    NoHeading {
        name: String,
        chunk: usize,
        heading: String,
    },
    #[error(
        "chunk {chunk} of `{name}` fits only at line {line}, which another chunk changes too; nothing was changed. Make one chunk of both"
    )]
    Overlap {
        name: String,
        chunk: usize,
        line: usize,
    },
    #[error(
        "chunk {chunk} of `{name}` fits {} places, at lines {}; nothing was changed. Add unchanged lines until it fits only one, or an `@@` line that stands above the right one",
        .lines.len(),
        edit_report::format_line_numbers(.lines)
    )]
    Ambiguous {
        name: String,
        chunk: usize,
        lines: Vec<usize>,
    },
}

impl Coded for ApplyError {
    fn code(&self) -> &'static str {
        match self {
            Self::Twice { .. } => "invalid_patch",
            Self::NotFound { .. } | Self::NoHeading { .. } => "no_match",
            Self::Overlap { .. } => "overlapping_chunks",
            Self::Ambiguous { .. } => "ambiguous_match",
        }
    }
}

fn apply_patch(scope: &FileScope, ParsedPatch { sections, padded }: ParsedPatch) -> CallResult {
    let drafts = build_drafts(scope, sections)?;
    let files = UnitCount(drafts.len(), "file");
    let remark = if padded {
        " Blanks before its markers were passed over; begin them at the start of the line."
    } else {
        ""
    };
    Ok(drafts::write_drafts(scope, &drafts)?
        .into_output(&format!("Patch applied to {files}.{remark}"), Map::new()))
}

fn build_drafts(
    scope: &FileScope,
    sections: Vec<PatchSection>,
) -> Result<Vec<FileDraft>, ToolFailure> {
    let sections = merge_sections(scope, sections)?;
    let mut drafts: Vec<FileDraft> = Vec::with_capacity(sections.len());
    for section in sections {
        let draft = build_draft(scope, section)?;
        for path in draft_paths(&draft) {
            if drafts
                .iter()
                .flat_map(draft_paths)
                .any(|known| known == path)
            {
                return Err(ApplyError::Twice {
                    name: paths::display_path(&scope.workspace, path),
                }
                .into());
            }
        }
        drafts.push(draft);
    }
    Ok(drafts)
}

/// Joins the sections that update one file into one section.
fn merge_sections(
    scope: &FileScope,
    sections: Vec<PatchSection>,
) -> Result<Vec<PatchSection>, ToolFailure> {
    let mut joined: Vec<(PathBuf, PatchSection)> = Vec::with_capacity(sections.len());
    for section in sections {
        let path = paths::resolve_path(&scope.workspace, &section.path)?;
        let earlier = joined
            .iter_mut()
            .find(|(known, _)| *known == path)
            .map(|(_, section)| &mut section.action);
        match (earlier, section.action) {
            (
                Some(PatchAction::Update { chunks, .. }),
                PatchAction::Update {
                    move_to: None,
                    chunks: more,
                },
            ) => {
                chunks.extend(more);
            }
            (_, action) => joined.push((
                path,
                PatchSection {
                    action,
                    path: section.path,
                },
            )),
        }
    }
    Ok(joined.into_iter().map(|(_, section)| section).collect())
}

/// Returns the paths that a draft changes.
fn draft_paths(draft: &FileDraft) -> Vec<&Path> {
    match draft {
        FileDraft::Add { place, .. } => vec![&place.path],
        FileDraft::Edit { old, .. } => vec![&old.source.path],
        FileDraft::Move { old, to, .. } => vec![&old.source.path, &to.path],
        FileDraft::Rename { old, to } => vec![&old.path, &to.path],
        FileDraft::Delete { old } => vec![&old.path],
    }
}

fn build_draft(
    scope: &FileScope,
    PatchSection { path, action }: PatchSection,
) -> Result<FileDraft, ToolFailure> {
    Ok(match action {
        PatchAction::Add { text } => FileDraft::Add {
            place: FreePath::resolve(
                scope,
                &path,
                "Change it with `*** Update File:`, or read it and replace it whole.",
            )?,
            text,
        },
        PatchAction::Delete => FileDraft::Delete {
            old: Box::new(EditSource::load(scope, &path)?),
        },
        PatchAction::Update {
            move_to: Some(to),
            chunks,
        } if chunks.is_empty() => FileDraft::Rename {
            old: Box::new(EditSource::load(scope, &path)?),
            to: resolve_move_target(scope, &to)?,
        },
        PatchAction::Update { move_to, chunks } => {
            let old = Box::new(EditSource::load(scope, &path)?.into_text(scope)?);
            let fitted =
                blocks::apply_blocks(old.as_str(), &chunks, MatchPolicy::Unique, EDIT_TERMS);
            let fitted =
                fitted.map_err(|misfit| describe_misfit(misfit, &chunks, &old.source.name))?;
            let text = fitted.text;
            let applied = UnitCount(chunks.len(), "chunk");
            let remarks = edit_report::warn_tolerant_matches("Chunk", &fitted.tolerant);
            match move_to {
                None => FileDraft::Edit {
                    old,
                    text,
                    applied,
                    remarks,
                },
                Some(to) => FileDraft::Move {
                    old,
                    to: resolve_move_target(scope, &to)?,
                    text,
                    applied,
                    remarks,
                },
            }
        }
    })
}

/// Resolves the target of a move, and checks that no file exists there.
fn resolve_move_target(scope: &FileScope, to: &str) -> Result<FreePath, ToolFailure> {
    FreePath::resolve(scope, to, "Choose another name, or delete it first.")
}

fn describe_misfit(
    BlockMisfit { block: chunk, why }: BlockMisfit,
    chunks: &[EditBlock],
    name: &str,
) -> ApplyError {
    let name = name.to_owned();
    match why {
        MisfitReason::NotFound { hint } => {
            let at_end = chunks
                .get(chunk - 1)
                .is_some_and(|block| block.place == BlockAnchor::AtEnd);
            let place = if at_end {
                "at the end of the file"
            } else {
                "in the file"
            };
            ApplyError::NotFound {
                name,
                chunk,
                place,
                hint,
            }
        }
        MisfitReason::NoHeading { heading } => ApplyError::NoHeading {
            name,
            chunk,
            heading: visible::prefix_within(&visible::reveal_line(&heading), 160).to_owned(),
        },
        MisfitReason::Overlap { line } => ApplyError::Overlap { name, chunk, line },
        MisfitReason::Ambiguous { lines } => ApplyError::Ambiguous { name, chunk, lines },
    }
}

#[cfg(test)]
#[path = "../../../../extensions/changes/src/patch.rs"]
mod parse;
#[cfg(test)]
mod tests;
