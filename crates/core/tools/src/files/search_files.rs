//! `search_files`: returns lines that match a regular expression, with one line of context.

mod collect;
mod folder;
mod reader;
mod report;
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

use collect::{Collected, Trouble};
use reader::{MAX_LINE, SearchedFile};
use report::SearchRequest;
use sink::{FileContentKind, FileMatches, Sink};

const NAME: &str = "search_files";

static MANUAL: Manual = Manual {
    aliases: &[Alias {
        name: "Grep",
        translate: classic,
    }],
    ..Manual::of(Group::Files)
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

pub(crate) fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("search_files/prompt"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::reads(arguments, "path"),
    )
    .on_files(search)
}

fn search(scope: &FileScope, parameters: &SearchFilesParameters) -> CallResult {
    let root = paths::resolve(&scope.workspace, &parameters.path)?;
    let name = paths::shown(&scope.workspace, &root);
    let matcher = matcher(&parameters.regex)?;
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
        folder::search(scope, &root, &matcher, pattern.as_ref())
    } else {
        search_one(scope, &root, &name, &matcher)?
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
    Ok(report::show(
        &collected.finish(),
        &scope.workspace,
        scope.limits,
        &question,
    )
    .into())
}

/// Searches a single file that the call names.
fn search_one(
    scope: &FileScope,
    path: &Path,
    name: &str,
    matcher: &RegexMatcher,
) -> Result<Collected, ToolFailure> {
    let (file, _) = disk::open(path, name)?;
    let searched = search_file(scope, &mut searcher(), matcher, file);
    let searched = searched
        .map_err(|error| ToolFailure::new("io", format!("cannot search `{name}`: {error}")))?;
    match searched.kind {
        FileContentKind::Binary => {
            let hint = "use a program that reads it";
            let message = format!("`{name}` is a binary file and was not searched; {hint}");
            Err(ToolFailure::new("binary_file", message))
        }
        FileContentKind::Text => {
            let mut collected = Collected::new(scope.limits);
            collected.take(path, searched);
            Ok(collected)
        }
    }
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .before_context(1)
        .after_context(1)
        .binary_detection(BinaryDetection::quit(0))
        // Room for the longest line and the one before it.
        .heap_limit(Some(4 * MAX_LINE))
        .build()
}

fn matcher(regex: &str) -> Result<RegexMatcher, ToolFailure> {
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
struct Searched {
    found: FileMatches,
    kind: FileContentKind,
    trouble: Option<Trouble>,
}

fn search_file(
    scope: &FileScope,
    searcher: &mut Searcher,
    matcher: &RegexMatcher,
    file: File,
) -> io::Result<Searched> {
    let mut source = SearchedFile::new(file, &scope.cancel);
    let mut sink = Sink::new(matcher, scope.limits);
    searcher.search_reader(matcher, &mut source, &mut sink)?;
    let trouble = source.cut.then_some(Trouble::LongLines);
    Ok(Searched {
        found: sink.found,
        kind: sink.kind,
        trouble,
    })
}

/// Translates `pattern`, `glob` and `-i`, and drops other options: context lines and line numbers
/// are always included, and matches are always shown as lines.
fn classic(mut arguments: Arguments) -> Arguments {
    rename(&mut arguments, "pattern", "regex");
    rename(&mut arguments, "glob", "file_pattern");
    arguments.entry("path").or_insert_with(|| ".".into());
    let insensitive = arguments.shift_remove("-i") == Some(Value::Bool(true));
    if let (true, Some(Value::String(regex))) = (insensitive, arguments.get_mut("regex")) {
        regex.insert_str(0, "(?i)");
    }
    forget(
        &mut arguments,
        &["output_mode", "-n", "-A", "-B", "-C", "head_limit"],
    );
    arguments
}

#[cfg(test)]
mod tests;
