//! `list_code_definition_names`: lists the definitions in a file or in the files of a folder.

use std::fs;
use std::path::Path;

use haft_tool::{
    Access, Availability, Group, Intent, Manual, OutputLimits, Tool, ToolDefinition, ToolOutput,
};
use haft_tools::{FileScope, OnFiles, ToolFailure, visible_line};
use haft_types::{Envelope, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{Outline, OutlineError, OutlineLimits, SourceLanguage, outline_source};

const NAME: &str = "list_code_definition_names";

static MANUAL: Manual = Manual {
    availability: Availability::Extension,
    ..Manual::for_group(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListCodeDefinitionNamesParameters {
    /// The file or folder.
    path: String,
}

/// Defines the tool `list_code_definition_names`, which lists the definitions in a file or folder.
pub fn define_tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("tool/prompt"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::for_read(arguments, "path"),
    )
    .on_files(list_definitions)
}

fn list_definitions(
    scope: &FileScope,
    parameters: &ListCodeDefinitionNamesParameters,
) -> Result<ToolOutput, ToolFailure> {
    let (path, name) = scope.resolve_path(&parameters.path)?;
    let mut listing = DefinitionListing::new(scope.limits);
    if path.is_dir() {
        for (file, shown) in scope
            .list_files(&path)?
            .iter()
            .filter(|(file, _)| SourceLanguage::may_match(file))
        {
            if scope.cancel.is_cancelled() {
                let message = format!("listing the definitions of `{name}` was cancelled");
                return Err(ToolFailure::new("cancelled", message));
            }
            listing.add_file(shown, parse_file(scope, file, shown));
        }
    } else {
        let parsed = match parse_file(scope, &path, &name) {
            ParsedFile::Failed(error) => return Err(outline_failure(&name, &error)),
            ParsedFile::Unreadable(error) => return Err(error),
            ParsedFile::Foreign => {
                let languages = SourceLanguage::NAMES.join(", ");
                let hint = "read it, or search it";
                let message = format!(
                    "`{name}` is not written in a language that is understood here ({languages}); {hint}"
                );
                return Err(ToolFailure::new("unknown_language", message));
            }
            parsed @ ParsedFile::Source(_) => parsed,
        };
        listing.add_file(&name, parsed);
    }
    Ok(listing.into_envelope(&name).into())
}

fn outline_failure(name: &str, error: &OutlineError) -> ToolFailure {
    let code = match error {
        OutlineError::TooLarge { .. } => "too_large",
        OutlineError::TimedOut { .. } => "timed_out",
        OutlineError::NotText => "binary_file",
        OutlineError::Grammar { .. } => "internal",
        OutlineError::Stopped => "cancelled",
    };
    ToolFailure::new(
        code,
        format!("cannot list the definitions of `{name}`: {error}; search it instead"),
    )
}

/// The result of parsing one file: its outline, or the reason why there is none.
enum ParsedFile {
    Source(Outline),
    /// The file does not contain text, or not in a supported language.
    Foreign,
    Failed(OutlineError),
    Unreadable(ToolFailure),
}

fn parse_file(scope: &FileScope, path: &Path, name: &str) -> ParsedFile {
    let limits = OutlineLimits::default();
    let size = fs::metadata(path).map_or(0, |metadata| {
        usize::try_from(metadata.len()).unwrap_or(usize::MAX)
    });
    if size > limits.bytes && SourceLanguage::may_match(path) {
        return ParsedFile::Failed(OutlineError::TooLarge {
            size,
            limit: limits.bytes,
        });
    }
    let text = match scope.read_text(path, name) {
        Ok(Some(text)) => text,
        Ok(None) => return ParsedFile::Foreign,
        Err(error) => return ParsedFile::Unreadable(error),
    };
    let Some(language) = SourceLanguage::detect(path, &text) else {
        return ParsedFile::Foreign;
    };
    match outline_source(language, &text, limits, &|| scope.cancel.is_cancelled()) {
        Ok(outline) => ParsedFile::Source(outline),
        Err(error) => ParsedFile::Failed(error),
    }
}

/// The lines of a tool result that fit into its limits, and the total number of files and
/// definitions.
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
        Self {
            limits,
            lines: Vec::new(),
            bytes: 0,
            files: 0,
            definitions: 0,
            full: false,
        }
    }

    fn add_file(&mut self, name: &str, parsed: ParsedFile) {
        match parsed {
            ParsedFile::Foreign => {}
            // A failure in one file of a folder must not hide the others.
            ParsedFile::Failed(error) => self.add_remark(name, &format!("Not parsed: {error}.")),
            ParsedFile::Unreadable(error) => self.add_remark(name, &format!("Not read: {error}.")),
            ParsedFile::Source(outline) => self.add_outline(name, &outline),
        }
    }

    fn add_remark(&mut self, name: &str, remark: &str) {
        self.push_line(&visible_line(name));
        self.push_line(&format!("  [{remark}]"));
    }

    fn add_outline(&mut self, name: &str, outline: &Outline) {
        self.files += 1;
        self.definitions += outline.definitions.len() + outline.left_out;
        self.push_line(&visible_line(name));
        for one in &outline.definitions {
            let indent = "  ".repeat(one.depth + 1);
            let name = visible_line(&one.name);
            self.push_line(&format!(
                "{indent}{}-{} {} {name}",
                one.start_line,
                one.end_line,
                one.kind.word()
            ));
        }
        if outline.definitions.is_empty() {
            self.push_line("  [No definitions.]");
        }
        if outline.left_out > 0 {
            self.push_line(&format!("  [{} more.]", outline.left_out));
        }
        if outline.damaged {
            self.push_line(
                "  [Parts of this file could not be parsed; definitions may be missing.]",
            );
        }
    }

    fn push_line(&mut self, line: &str) {
        self.full |= self.lines.len() >= self.limits.lines
            || self.bytes + line.len() + 1 > self.limits.bytes;
        if !self.full {
            self.bytes += line.len() + 1;
            self.lines.push(line.to_owned());
        }
    }

    fn into_envelope(self, name: &str) -> Envelope {
        let mut text = self.lines.join("\n");
        if text.is_empty() {
            text = format!(
                "`{name}` holds no source files that are understood here; its subfolders were not looked at."
            );
        }
        if self.full {
            let definitions = self.definitions;
            let files = self.files;
            text = format!(
                "{text}\n[Not everything is shown: {definitions} definitions in {files} files. List one file.]"
            );
        }
        let mut data =
            json!({ "path": name, "files": self.files, "definitions": self.definitions });
        if self.full {
            data["truncated"] = true.into();
        }
        Envelope::success(text).with_data(data)
    }
}
