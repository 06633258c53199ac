//! `replace_in_file`: SEARCH/REPLACE blocks on an existing file.
//!
//! `parse` and `apply` are pure; this file reads, checks and writes around them. The file needs not have been read before:
//! a SEARCH text that fits proves that its content is known (SPEC 10.4).

mod apply;
mod nearest;
mod parse;

use std::fmt::Write as _;

use async_trait::async_trait;
use haft_tool::{Access, FileChange, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::{ChangeKind, Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use crate::atomic::{self, Replaces};
use crate::disk;
use crate::encoding::{decode, describe_binary, encode};
use crate::failure::{Coded, Failure, settle};
use crate::guard::{self, Knowledge};
use crate::manual::{Group, Manual};
use crate::scope::{Scope, blocking};
use crate::{paths, spec_of, visible};

use apply::{Applied, Match};

const NAME: &str = "replace_in_file";

static MANUAL: Manual = Manual {
    example_of: "Changing two places of a file",
    example: r#"{"path": "src/limits.rs", "diff": "<<<<<<< SEARCH\nconst LONGEST: usize = 32;\n=======\nconst LONGEST: usize = 64;\n>>>>>>> REPLACE\n<<<<<<< SEARCH\n    // TODO: check the length\n=======\n>>>>>>> REPLACE"}"#,
    ..Manual::of(Group::Files)
};

/// Lines of the diff that are shown.
const MAX_DIFF: usize = 50;
/// Bytes of one of them that are shown.
const MAX_DIFF_LINE: usize = 500;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The file to change.
    path: String,
    /// One or more SEARCH/REPLACE blocks.
    diff: String,
    /// What to do when SEARCH fits more than one place; default `unique`.
    r#match: Option<Match>,
}

/// The tool.
pub(crate) struct ReplaceInFile {
    spec: ToolSpec,
}

impl ReplaceInFile {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("prompt.md")) }
    }
}

#[async_trait]
impl Tool for ReplaceInFile {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Write
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        match parse_arguments::<Parameters>(NAME, arguments) {
            Ok(parameters) => blocking(context, move |scope| replace(scope, &parameters)).await,
            Err(error) => settle(Err(error.into())),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum ReplaceError {
    #[error("`{name}` is {kind}, not text, and cannot be edited")]
    Binary { name: String, kind: &'static str },
    #[error("the blocks change nothing in `{name}`: SEARCH and REPLACE say the same")]
    NoChange { name: String },
    #[error(
        "`{name}` is written in {encoding}, which has no `{character}`; use other characters, or convert the file first"
    )]
    Unencodable { name: String, encoding: &'static str, character: char },
}

impl Coded for ReplaceError {
    fn code(&self) -> &'static str {
        match self {
            Self::Binary { .. } => "binary_file",
            Self::NoChange { .. } => "no_change",
            Self::Unencodable { .. } => "unencodable",
        }
    }
}

fn replace(scope: &Scope, parameters: &Parameters) -> Result<ToolOutput, Failure> {
    let blocks = parse::parse(&parameters.diff)?;
    let path = paths::resolve(&scope.workspace, &parameters.path)?;
    let name = paths::shown(&scope.workspace, &path);
    let old = disk::load(&path, &name)?;
    guard::check(scope, &path, &name, &old, Knowledge::Proven)?;
    let Some(decoded) = decode(&old.bytes) else {
        return Err(ReplaceError::Binary { name, kind: describe_binary(&old.bytes) }.into());
    };
    let applied = apply::apply(&decoded.text, &blocks, parameters.r#match.unwrap_or_default())?;
    if applied.text == decoded.text {
        return Err(ReplaceError::NoChange { name }.into());
    }
    let bytes = encode(&applied.text, decoded.encoding, decoded.mark).map_err(|character| {
        ReplaceError::Unencodable { name: name.clone(), encoding: decoded.encoding.name(), character }
    })?;
    scope.history.save(&scope.call_id, &[&path])?;
    let state = atomic::write(&path, &bytes, &Replaces::File(&old))?;
    scope.history.changed(&scope.call_id, &[&path])?;

    let mut envelope = show(&name, &decoded.text, &applied, blocks.len());
    envelope.context = scope.saw(&path, state);
    let kind = ChangeKind::Modified;
    Ok(ToolOutput { changes: vec![FileChange { path, kind }], ..envelope.into() })
}

fn show(name: &str, old: &str, applied: &Applied, blocks: usize) -> Envelope {
    let diff = TextDiff::from_lines(old, applied.text.as_str());
    let count = |tag| diff.iter_all_changes().filter(|change| change.tag() == tag).count();
    let (added, removed) = (count(ChangeTag::Insert), count(ChangeTag::Delete));
    let unified = diff.unified_diff().context_radius(3).to_string();
    let lines: Vec<String> = unified.lines().map(diff_line).collect();
    let shown = lines.get(..MAX_DIFF).unwrap_or(&lines).join("\n");

    let plural = if blocks == 1 { "block" } else { "blocks" };
    let mut text = format!("Changed `{name}`: {blocks} {plural} applied, {added} lines added, {removed} removed.");
    if !applied.tolerant.is_empty() {
        let which = applied.tolerant.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let _ = write!(text, "\nBlock {which} fitted only with white space ignored: check the indentation below.");
    }
    let _ = write!(text, "\n{shown}");
    if lines.len() > MAX_DIFF {
        let _ = write!(text, "\n[{} more lines of the diff are not shown.]", lines.len() - MAX_DIFF);
    }

    let ranges: Vec<Value> =
        applied.ranges.iter().map(|(start, end)| json!({ "start_line": start, "end_line": end })).collect();
    let mut data = json!({
        "path": name, "change": "edited", "applied": blocks, "changed_ranges": ranges, "added": added, "removed": removed,
    });
    if lines.len() <= MAX_DIFF {
        data["diff"] = shown.into();
    } else {
        data["truncated"] = true.into();
    }
    if !applied.tolerant.is_empty() {
        data["fallback"] = "whitespace".into();
    }
    Envelope::success(text).with_data(data)
}

/// A line of the diff; a very long one is cut.
fn diff_line(line: &str) -> String {
    let shown = visible::line(line);
    let cut = visible::prefix(&shown, MAX_DIFF_LINE);
    if cut.len() < shown.len() { format!("{cut} …") } else { shown.into_owned() }
}

#[cfg(test)]
mod tests;
