//! `apply_patch`: files added, changed, moved and deleted by one patch, all or none.
//!
//! The files need not have been read before: lines that fit prove that their content is known.

mod parse;

use std::path::{Path, PathBuf};

use haft_tool::{Access, FileUse, Intent, Tool, ToolDefinition, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::failure::{Coded, Failure};
use crate::files::edit::blocks::{self, Block, Match, Misfit, Place, Why};
use crate::files::edit::drafts::{self, Count, Draft};
use crate::files::edit::nearest::Words;
use crate::files::edit::report;
use crate::files::edit::source::{Free, Source};
use crate::manual::{Group, Manual};
use crate::scope::{OnFiles, PreviewsFiles, Scope};
use crate::{paths, visible};

use parse::{Action, Section};

const NAME: &str = "apply_patch";

static MANUAL: Manual = Manual {
    example_of: "Changing one file and deleting another",
    example: r#"{"patch": "*** Begin Patch\n*** Update File: src/limits.rs\n@@ impl Limits {\n     pub fn new() -> Self {\n-        Self { longest: 32 }\n+        Self { longest: 64 }\n     }\n*** Delete File: src/old_limits.rs\n*** End Patch\n"}"#,
    ..Manual::of(Group::Files)
};

const WORDS: Words = Words { old: "the patch", new: "What the chunk makes of it" };

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The whole patch, from `*** Begin Patch` to `*** End Patch`.
    patch: String,
}

/// The tool.
pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(NAME, include_str!("apply_patch/prompt.md"), &MANUAL, Access::Write, intent)
        .on_files(|scope, parameters: &Parameters| apply(scope, &parameters.patch))
        .previews_files(|scope, parameters| drafts::foresee(&drafts(scope, &parameters.patch)?))
}

fn intent(arguments: &Value) -> Intent {
    let patch = arguments.get("patch").and_then(Value::as_str).map(parse::parse);
    // What is no patch changes nothing, and the call says what is wrong with it.
    let Some(Ok(sections)) = patch else { return Intent::Nothing };
    let files = sections.into_iter().flat_map(|section| match section.action {
        Action::Update { move_to: Some(target), .. } => vec![section.path, target],
        Action::Update { move_to: None, .. } | Action::Add { .. } | Action::Delete => vec![section.path],
    });
    Intent::Files(files.map(FileUse::Write).collect())
}

/// A section that does not fit. Nothing is changed then; chunks count from 1 within their section.
#[derive(Debug, thiserror::Error)]
enum ApplyError {
    #[error("the patch names `{name}` twice; nothing was changed. Give each file one section with all its chunks")]
    Twice { name: String },
    #[error("chunk {chunk} of `{name}` is not {place}; nothing was changed.{hint}")]
    NotFound { name: String, chunk: usize, place: &'static str, hint: String },
    #[error(
        "there is no line `{heading}` in `{name}` as the `@@` of chunk {chunk} says; nothing was changed. Copy a whole line that stands above the chunk, or leave it out"
    )]
    NoHeading { name: String, chunk: usize, heading: String },
    #[error(
        "chunk {chunk} of `{name}` fits only at line {line}, which another chunk changes too; nothing was changed. Make one chunk of both"
    )]
    Overlap { name: String, chunk: usize, line: usize },
    #[error(
        "chunk {chunk} of `{name}` fits {} places, at lines {}; nothing was changed. Add unchanged lines until it fits only one, or an `@@` line that stands above the right one",
        .lines.len(),
        report::list(.lines)
    )]
    Ambiguous { name: String, chunk: usize, lines: Vec<usize> },
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

fn apply(scope: &Scope, patch: &str) -> Result<ToolOutput, Failure> {
    let drafts = drafts(scope, patch)?;
    let files = Count(drafts.len(), "file");
    Ok(drafts::carry_out(scope, &drafts)?.into_output(&format!("Patch applied to {files}."), Map::new()))
}

fn drafts(scope: &Scope, patch: &str) -> Result<Vec<Draft>, Failure> {
    let sections = joined(scope, parse::parse(patch)?)?;
    let mut drafts: Vec<Draft> = Vec::with_capacity(sections.len());
    for section in sections {
        let draft = draft(scope, section)?;
        for path in paths_of(&draft) {
            if drafts.iter().flat_map(paths_of).any(|known| known == path) {
                return Err(ApplyError::Twice { name: paths::shown(&scope.workspace, path) }.into());
            }
        }
        drafts.push(draft);
    }
    Ok(drafts)
}

/// Sections that update the same file become one.
fn joined(scope: &Scope, sections: Vec<Section>) -> Result<Vec<Section>, Failure> {
    let mut joined: Vec<(PathBuf, Section)> = Vec::with_capacity(sections.len());
    for section in sections {
        let path = paths::resolve(&scope.workspace, &section.path)?;
        let earlier = joined.iter_mut().find(|(known, _)| *known == path).map(|(_, section)| &mut section.action);
        match (earlier, section.action) {
            (Some(Action::Update { chunks, .. }), Action::Update { move_to: None, chunks: more }) => {
                chunks.extend(more);
            }
            (_, action) => joined.push((path, Section { action, path: section.path })),
        }
    }
    Ok(joined.into_iter().map(|(_, section)| section).collect())
}

/// The files a draft changes.
fn paths_of(draft: &Draft) -> Vec<&Path> {
    match draft {
        Draft::Add { place, .. } => vec![&place.path],
        Draft::Edit { old, .. } => vec![&old.source.path],
        Draft::Move { old, to, .. } => vec![&old.source.path, &to.path],
        Draft::Rename { old, to } => vec![&old.path, &to.path],
        Draft::Delete { old } => vec![&old.path],
    }
}

fn draft(scope: &Scope, Section { path, action }: Section) -> Result<Draft, Failure> {
    Ok(match action {
        Action::Add { text } => {
            Draft::Add { place: Free::find(scope, &path, "Change it with `*** Update File:`.")?, text }
        }
        Action::Delete => Draft::Delete { old: Box::new(Source::load(scope, &path)?) },
        Action::Update { move_to: Some(to), chunks } if chunks.is_empty() => {
            Draft::Rename { old: Box::new(Source::load(scope, &path)?), to: free(scope, &to)? }
        }
        Action::Update { move_to, chunks } => {
            let old = Box::new(Source::load(scope, &path)?.text(scope)?);
            let fitted = blocks::apply(old.as_str(), &chunks, Match::Unique, WORDS);
            let fitted = fitted.map_err(|misfit| told(misfit, &chunks, &old.source.name))?;
            let (text, applied) = (fitted.text, Count(chunks.len(), "chunk"));
            let remarks = report::tolerance("Chunk", &fitted.tolerant);
            match move_to {
                None => Draft::Edit { old, text, applied, remarks },
                Some(to) => Draft::Move { old, to: free(scope, &to)?, text, applied, remarks },
            }
        }
    })
}

/// The place a file is moved to.
fn free(scope: &Scope, to: &str) -> Result<Free, Failure> {
    Free::find(scope, to, "Choose another name, or delete it first.")
}

fn told(Misfit { block: chunk, why }: Misfit, chunks: &[Block], name: &str) -> ApplyError {
    let name = name.to_owned();
    match why {
        Why::NotFound { hint } => {
            let at_end = chunks.get(chunk - 1).is_some_and(|block| block.place == Place::AtEnd);
            let place = if at_end { "at the end of the file" } else { "in the file" };
            ApplyError::NotFound { name, chunk, place, hint }
        }
        Why::NoHeading { heading } => {
            ApplyError::NoHeading { name, chunk, heading: visible::prefix(&visible::line(&heading), 160).to_owned() }
        }
        Why::Overlap { line } => ApplyError::Overlap { name, chunk, line },
        Why::Ambiguous { lines } => ApplyError::Ambiguous { name, chunk, lines },
    }
}

#[cfg(test)]
mod tests;
