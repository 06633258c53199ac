//! `search_files`: returns lines that match a regular expression, with one line of context.

mod collect;
mod parallel;
mod reader;
mod search_report;
mod sink;

use std::fs::File;
use std::io;
use std::path::Path;

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use crate::files::disk::{self, DiskError};
use crate::files::pattern::FilePattern;
use crate::on_files::OnFiles;
use crate::paths;
use crate::prelude::*;
use crate::scope::FileScope;

use collect::{CollectedMatches, SearchProblem};
use reader::{LineLimitedFile, MAX_LINE_BYTES};
use search_report::SearchRequest;
use sink::{FileContentKind, FileMatches, MatchSink};

const NAME: &str = "search_files";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "Grep",
        translate: translate_arguments,
    }],
    ..Manual::for_group(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SearchFilesParameters {
    /// The folder, with everything below it, or the file.
    path: String,
    /// Rust syntax, without look-around and back-references; case-sensitive unless it begins with
    /// `(?i)`.
    regex: String,
    /// A glob that limits the files, such as `*.{ts,tsx}` or `folder/**/*.py`.
    file_pattern: Option<String>,
}

pub(crate) fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("search_files/prompt"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::for_read(arguments, "path"),
    )
    .on_files(search_files)
}

fn search_files(scope: &FileScope, parameters: &SearchFilesParameters) -> CallResult {
    let root = paths::resolve_path(&scope.workspace, &parameters.path)?;
    let name = paths::display_path(&scope.workspace, &root);
    let matcher = build_matcher(&parameters.regex)?;
    let pattern = parameters
        .file_pattern
        .as_deref()
        .map(FilePattern::new)
        .transpose();
    let pattern = pattern.map_err(|error| {
        ToolFailure::new(
            "invalid_pattern",
            format!("`file_pattern` is not a valid glob: {error}"),
        )
    })?;
    if !root.exists() {
        return Err(DiskError::NotFound { name }.into());
    }
    let collected = if root.is_dir() {
        parallel::search_folder(scope, &root, &matcher, pattern.as_ref())
    } else {
        search_single_file(scope, &root, &name, &matcher)?
    };
    if scope.cancel.is_cancelled() {
        return Err(ToolFailure::new(
            "cancelled",
            format!("searching `{name}` was cancelled"),
        ));
    }
    let question = SearchRequest {
        name: &name,
        regex: &parameters.regex,
        file_pattern: parameters.file_pattern.as_deref(),
    };
    Ok(search_report::build_envelope(
        &collected.into_outcome(),
        &scope.workspace,
        scope.limits,
        &question,
    )
    .into())
}

/// Searches the single file that the call names.
fn search_single_file(
    scope: &FileScope,
    path: &Path,
    name: &str,
    matcher: &RegexMatcher,
) -> Result<CollectedMatches, ToolFailure> {
    let (file, _) = disk::open_file(path, name)?;
    let searched = search_file(scope, &mut build_searcher(), matcher, file);
    let searched = searched
        .map_err(|error| ToolFailure::new("io", format!("cannot search `{name}`: {error}")))?;
    match searched.kind {
        FileContentKind::Binary => {
            let hint = "use a program that reads it";
            let message = format!("`{name}` is a binary file and was not searched; {hint}");
            Err(ToolFailure::new("binary_file", message))
        }
        FileContentKind::Text => {
            let mut collected = CollectedMatches::new(scope.limits);
            collected.add_result(path, searched);
            Ok(collected)
        }
    }
}

fn build_searcher() -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .before_context(1)
        .after_context(1)
        .binary_detection(BinaryDetection::quit(0))
        // Room for the longest line and the one before it.
        .heap_limit(Some(4 * MAX_LINE_BYTES))
        .build()
}

fn build_matcher(regex: &str) -> Result<RegexMatcher, ToolFailure> {
    let fail = |reason: String| {
        ToolFailure::new(
            "invalid_regex",
            format!("`regex` is not a valid Rust regular expression: {reason}"),
        )
    };
    // The expression is compiled alone first: the matcher wraps it, and an error would point into
    // the wrapped expression.
    regex::Regex::new(regex).map_err(|error| fail(error.to_string()))?;
    RegexMatcherBuilder::new()
        .multi_line(true)
        .crlf(true)
        .build(regex)
        .map_err(|error| fail(error.to_string()))
}

/// The result of searching one file.
struct FileSearchResult {
    found: FileMatches,
    kind: FileContentKind,
    trouble: Option<SearchProblem>,
}

fn search_file(
    scope: &FileScope,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    file: File,
) -> io::Result<FileSearchResult> {
    let mut source = LineLimitedFile::new(file, &scope.cancel);
    let mut sink = MatchSink::new(matcher, scope.limits);
    searcher.search_reader(matcher, &mut source, &mut sink)?;
    let trouble = source.cut.then_some(SearchProblem::LongLines);
    Ok(FileSearchResult {
        found: sink.found,
        kind: sink.kind,
        trouble,
    })
}

/// Converts the arguments `pattern`, `glob` and `-i`, which other agents use, to haft's arguments,
/// and drops the options that haft does not have: context lines and line numbers are always
/// included, and matches are always shown as lines.
fn translate_arguments(mut arguments: Arguments) -> Arguments {
    rename_argument(&mut arguments, "pattern", "regex");
    rename_argument(&mut arguments, "glob", "file_pattern");
    arguments.entry("path").or_insert_with(|| ".".into());
    let insensitive = arguments.shift_remove("-i") == Some(Value::Bool(true));
    if let (true, Some(Value::String(regex))) = (insensitive, arguments.get_mut("regex")) {
        regex.insert_str(0, "(?i)");
    }
    remove_arguments(
        &mut arguments,
        &["output_mode", "-n", "-A", "-B", "-C", "head_limit"],
    );
    arguments
}

#[cfg(test)]
mod tests;
