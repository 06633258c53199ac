//! `list_code_definition_names`: what is defined where, in a file or in the files of a folder.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_tool::{CodeOutline, CodeOutlineError, OutputLimits, SourceOutline};

use crate::files::disk::{self, DiskError};
use crate::files::encoding::decode;
use crate::files::walk;
use crate::files::walk::GitFolder;
use crate::prelude::*;
use crate::scope::{FileScope, OnFiles};
use crate::{paths, visible};

const NAME: &str = "list_code_definition_names";

static MANUAL: Manual = Manual {
    example_of: "Seeing what a source file defines before reading it",
    example: r#"{"path": "src/config.rs"}"#,
    set: Set::Extension,
    ..Manual::of(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListCodeDefinitionNamesParameters {
    /// The file or folder.
    path: String,
}

pub(crate) fn tool(outline: Arc<dyn SourceOutline>) -> impl Tool {
    ToolDefinition::new(
        NAME,
        include_str!("list_code_definition_names/prompt.md"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::reads(arguments, "path"),
    )
    .on_files(move |scope, parameters| list(scope, outline.as_ref(), parameters))
}

fn list(scope: &FileScope, outline: &dyn SourceOutline, parameters: &ListCodeDefinitionNamesParameters) -> CallResult {
    let path = paths::resolve(&scope.workspace, &parameters.path)?;
    let name = paths::shown(&scope.workspace, &path);
    let mut listing = DefinitionListing::new(scope.limits);
    if path.is_dir() {
        let files = sources(scope, outline, &path);
        for file in files.map_err(|error| ToolFailure::new("io", format!("cannot list `{name}`: {error}")))? {
            if scope.cancel.is_cancelled() {
                let message = format!("listing the definitions of `{name}` was cancelled");
                return Err(ToolFailure::new("cancelled", message));
            }
            let shown = paths::shown(&scope.workspace, &file);
            listing.add(&shown, parse(scope, outline, &file, &shown));
        }
    } else {
        let parsed = match parse(scope, outline, &path, &name) {
            Parsed::Failed(error) => return Err(no_outline(&name, &error)),
            Parsed::Unreadable(error) => return Err(error.into()),
            Parsed::Foreign => {
                let languages = outline.languages().join(", ");
                let hint = "use `read_file` or `search_files`";
                let message =
                    format!("`{name}` is not written in a language that is understood here ({languages}); {hint}");
                return Err(ToolFailure::new("unknown_language", message));
            }
            parsed @ Parsed::Source(_) => parsed,
        };
        listing.add(&name, parsed);
    }
    Ok(listing.show(&name).into())
}

fn no_outline(name: &str, error: &CodeOutlineError) -> ToolFailure {
    let code = match error {
        CodeOutlineError::TooLarge { .. } => "too_large",
        CodeOutlineError::TimedOut { .. } => "timed_out",
        CodeOutlineError::NotText => "binary_file",
        CodeOutlineError::Grammar { .. } => "internal",
        CodeOutlineError::Stopped => "cancelled",
    };
    ToolFailure::new(code, format!("cannot list the definitions of `{name}`: {error}; use `search_files`"))
}

/// The files of a folder that may be source, in order of their names.
fn sources(scope: &FileScope, outline: &dyn SourceOutline, folder: &Path) -> Result<Vec<PathBuf>, ignore::Error> {
    let mut builder = walk::builder(scope, folder, GitFolder::Entered);
    builder.max_depth(Some(1)).sort_by_file_name(Ord::cmp);
    let mut files = Vec::new();
    for found in builder.build() {
        let entry = found?;
        if entry.file_type().is_some_and(|kind| kind.is_file()) && outline.may_be_source(entry.path()) {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// What became of a file.
enum Parsed {
    Source(CodeOutline),
    /// It is in no language that is understood, or no text at all.
    Foreign,
    Failed(CodeOutlineError),
    Unreadable(DiskError),
}

fn parse(scope: &FileScope, outline: &dyn SourceOutline, path: &Path, name: &str) -> Parsed {
    let limit = outline.max_bytes();
    let (file, metadata) = match disk::open(path, name) {
        Ok(opened) => opened,
        Err(error) => return Parsed::Unreadable(error),
    };
    let size = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
    if size > limit && outline.may_be_source(path) {
        return Parsed::Failed(CodeOutlineError::TooLarge { size, limit });
    }
    let loaded = match disk::load_open(file, &metadata, name) {
        Ok(loaded) => loaded,
        Err(error) => return Parsed::Unreadable(error),
    };
    let Some(decoded) = decode(&loaded.bytes) else { return Parsed::Foreign };
    match outline.outline(path, &decoded.text, &|| scope.cancel.is_cancelled()) {
        Some(Ok(outline)) => Parsed::Source(outline),
        Some(Err(error)) => Parsed::Failed(error),
        None => Parsed::Foreign,
    }
}

/// The lines that fit, and the count of all.
struct DefinitionListing {
    limits: OutputLimits,
    lines: Vec<String>,
    bytes: usize,
    files: usize,
    definitions: usize,
    full: bool,
}

impl DefinitionListing {
    fn new(limits: OutputLimits) -> Self {
        Self { limits, lines: Vec::new(), bytes: 0, files: 0, definitions: 0, full: false }
    }

    fn add(&mut self, name: &str, parsed: Parsed) {
        match parsed {
            Parsed::Foreign => {}
            // In a folder a file that failed must not hide the others.
            Parsed::Failed(error) => self.add_remark(name, &format!("Not parsed: {error}.")),
            Parsed::Unreadable(error) => self.add_remark(name, &format!("Not read: {error}.")),
            Parsed::Source(outline) => self.add_outline(name, &outline),
        }
    }

    fn add_remark(&mut self, name: &str, remark: &str) {
        self.line(&visible::line(name));
        self.line(&format!("  [{remark}]"));
    }

    fn add_outline(&mut self, name: &str, outline: &CodeOutline) {
        self.files += 1;
        self.definitions += outline.definitions.len() + outline.left_out;
        self.line(&visible::line(name));
        for one in &outline.definitions {
            let indent = "  ".repeat(one.depth + 1);
            let name = visible::line(&one.name);
            self.line(&format!("{indent}{}-{} {} {name}", one.start_line, one.end_line, one.kind));
        }
        if outline.definitions.is_empty() {
            self.line("  [No definitions.]");
        }
        if outline.left_out > 0 {
            self.line(&format!("  [{} more.]", outline.left_out));
        }
        if outline.damaged {
            self.line("  [Parts of this file could not be parsed; definitions may be missing.]");
        }
    }

    fn line(&mut self, line: &str) {
        self.full |= self.lines.len() >= self.limits.lines || self.bytes + line.len() + 1 > self.limits.bytes;
        if !self.full {
            self.bytes += line.len() + 1;
            self.lines.push(line.to_owned());
        }
    }

    fn show(self, name: &str) -> Envelope {
        let mut text = self.lines.join("\n");
        if text.is_empty() {
            text =
                format!("`{name}` holds no source files that are understood here; its subfolders were not looked at.");
        }
        if self.full {
            let (definitions, files) = (self.definitions, self.files);
            text = format!(
                "{text}\n[Not everything is shown: {definitions} definitions in {files} files. List one file.]"
            );
        }
        let mut data = json!({ "path": name, "files": self.files, "definitions": self.definitions });
        if self.full {
            data["truncated"] = true.into();
        }
        Envelope::success(text).with_data(data)
    }
}

#[cfg(test)]
mod tests;
