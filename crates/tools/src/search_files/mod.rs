//! `search_files`: lines that match a regular expression, with a line of context.

mod report;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use haft_tool::{Access, Tool, ToolContext, ToolOutput, parse_arguments};
use haft_types::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::disk;
use crate::failure::{Coded, Failure, settle};
use crate::manual::{Alias, Arguments, Group, Manual, forget, rename};
use crate::pattern::Pattern;
use crate::scope::{Scope, blocking};
use crate::{paths, spec_of, walk};

use report::{Report, Sink};

const NAME: &str = "search_files";

static MANUAL: Manual = Manual {
    example_of: "Finding every use of a function in Rust files",
    example: r#"{"path": ".", "regex": "\\bparse_limit\\(", "file_pattern": "*.rs"}"#,
    aliases: &[Alias { name: "Grep", translate: classic }],
    ..Manual::of(Group::Files)
};

/// The longest line, in bytes, that is looked at; a file with a longer one counts as unreadable.
const MAX_LINE: usize = 64 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// The folder or file to search.
    path: String,
    /// The regular expression, in Rust syntax.
    regex: String,
    /// A glob that limits the files, such as `*.rs`.
    file_pattern: Option<String>,
}

/// The tool.
pub(crate) struct SearchFiles {
    spec: ToolSpec,
}

impl SearchFiles {
    pub(crate) fn new() -> Self {
        Self { spec: spec_of::<Parameters>(NAME, include_str!("prompt.md")) }
    }
}

#[async_trait]
impl Tool for SearchFiles {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn access(&self) -> Access {
        Access::Read
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        match parse_arguments::<Parameters>(NAME, arguments) {
            Ok(parameters) => blocking(context, move |scope| search(scope, &parameters)).await,
            Err(error) => settle(Err(error.into())),
        }
    }
}

#[derive(Debug, thiserror::Error)]
enum SearchError {
    #[error("`{name}` does not exist; look for it with `list_files`")]
    NotFound { name: String },
    #[error("`regex` is not a valid Rust regular expression: {reason}")]
    Regex { reason: String },
    #[error("`file_pattern` is not a valid glob: {source}")]
    Pattern { source: globset::Error },
    #[error("cannot search `{name}`: {source}")]
    Io { name: String, source: io::Error },
    #[error("`{name}` is a binary file and was not searched; use `execute_command` with a program that reads it")]
    Binary { name: String },
    #[error("searching `{name}` was cancelled")]
    Cancelled { name: String },
}

impl Coded for SearchError {
    fn code(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "not_found",
            Self::Regex { .. } => "invalid_regex",
            Self::Pattern { .. } => "invalid_pattern",
            Self::Io { .. } => "io",
            Self::Binary { .. } => "binary_file",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

fn search(scope: &Scope, parameters: &Parameters) -> Result<ToolOutput, Failure> {
    let root = paths::resolve(&scope.workspace, &parameters.path)?;
    let name = paths::shown(&scope.workspace, &root);
    let matcher = matcher(&parameters.regex)?;
    let pattern = parameters
        .file_pattern
        .as_deref()
        .map(Pattern::new)
        .transpose()
        .map_err(|source| SearchError::Pattern { source })?;
    if !root.exists() {
        return Err(SearchError::NotFound { name }.into());
    }
    let mut searcher = SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .before_context(1)
        .after_context(1)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(MAX_LINE))
        .build();
    let mut report = Report::new(scope.limits);
    if root.is_dir() {
        for found in files(&root, pattern.as_ref()) {
            if scope.cancel.is_cancelled() {
                return Err(SearchError::Cancelled { name }.into());
            }
            if report.is_full() {
                break;
            }
            // What can't be read must not hide the rest; it is counted.
            let searched = found.map_err(io::Error::other).and_then(|path| {
                let name = paths::shown(&scope.workspace, &path);
                let (file, _) = disk::open(&path, &name).map_err(io::Error::other)?;
                search_file(scope, &mut searcher, &matcher, &mut report, file, &name)
            });
            if searched.is_err() {
                report.unreadable += 1;
            }
        }
    } else {
        let (file, _) = disk::open(&root, &name)?;
        search_file(scope, &mut searcher, &matcher, &mut report, file, &name)
            .map_err(|source| SearchError::Io { name: name.clone(), source })?;
        if report.binary > 0 {
            return Err(SearchError::Binary { name }.into());
        }
    }
    if scope.cancel.is_cancelled() {
        return Err(SearchError::Cancelled { name }.into());
    }
    Ok(report.show(&name, &parameters.regex, parameters.file_pattern.as_deref()).into())
}

fn matcher(regex: &str) -> Result<RegexMatcher, SearchError> {
    let fail = |reason| SearchError::Regex { reason };
    // Compiled alone first: the matcher wraps the expression, and its error would point into the wrapping.
    regex::Regex::new(regex).map_err(|error| fail(error.to_string()))?;
    RegexMatcherBuilder::new().multi_line(true).crlf(true).build(regex).map_err(|error| fail(error.to_string()))
}

fn search_file(
    scope: &Scope,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    report: &mut Report,
    file: File,
    name: &str,
) -> io::Result<()> {
    let reader = Cancellable { file, cancel: &scope.cancel };
    searcher.search_reader(matcher, reader, Sink::new(report, matcher, name))
}

/// Regular files below a folder, in order of their paths.
fn files<'a>(
    root: &'a Path,
    pattern: Option<&'a Pattern>,
) -> impl Iterator<Item = Result<PathBuf, ignore::Error>> + 'a {
    let mut builder = walk::builder(root);
    builder.sort_by_file_path(Ord::cmp);
    builder.build().filter_map(move |found| match found {
        Ok(entry) => {
            let is_file = entry.file_type().is_some_and(|kind| kind.is_file());
            let wanted = pattern.is_none_or(|pattern| pattern.matches(root, entry.path()));
            (is_file && wanted).then(|| Ok(entry.into_path()))
        }
        Err(error) => Some(Err(error)),
    })
}

/// Ends a search in the middle of a large file when the user cancels.
struct Cancellable<'a> {
    file: File,
    cancel: &'a CancellationToken,
}

impl Read for Cancellable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

/// `pattern`, `glob` and `-i`. Context lines and line numbers always come, and matches are always shown as lines.
fn classic(mut arguments: Arguments) -> Arguments {
    rename(&mut arguments, "pattern", "regex");
    rename(&mut arguments, "glob", "file_pattern");
    arguments.entry("path").or_insert_with(|| ".".into());
    let insensitive = arguments.shift_remove("-i") == Some(Value::Bool(true));
    if let (true, Some(Value::String(regex))) = (insensitive, arguments.get_mut("regex")) {
        regex.insert_str(0, "(?i)");
    }
    forget(&mut arguments, &["output_mode", "-n", "-A", "-B", "-C", "head_limit"]);
    arguments
}

#[cfg(test)]
mod tests;
