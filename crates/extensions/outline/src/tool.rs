//! `list_code_definition_names`: lists the definitions in a file or in the files of a folder.

use std::fs;
use std::path::Path;

use haft_tool::{
    Access, Group, Intent, Manual, OutputLimits, Set, Tool, ToolDefinition, ToolOutput,
};
use haft_tools::{FileScope, OnFiles, ToolFailure, visible_line};
use haft_types::{Envelope, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::{Outline, OutlineError, OutlineLimits, SourceLanguage, outline};

const NAME: &str = "list_code_definition_names";

static MANUAL: Manual = Manual {
    set: Set::Extension,
    ..Manual::of(Group::Files)
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListCodeDefinitionNamesParameters {
    /// The file or folder.
    path: String,
}

/// Defines the tool `list_code_definition_names`.
pub fn tool() -> impl Tool {
    ToolDefinition::new(
        NAME,
        prompt!("tool/prompt"),
        &MANUAL,
        Access::Read,
        |arguments| Intent::reads(arguments, "path"),
    )
    .on_files(list)
}

fn list(
    scope: &FileScope,
    parameters: &ListCodeDefinitionNamesParameters,
) -> Result<ToolOutput, ToolFailure> {
    let (path, name) = scope.resolve(&parameters.path)?;
    let mut listing = DefinitionListing::new(scope.limits);
    if path.is_dir() {
        for (file, shown) in scope
            .files_of(&path)?
            .iter()
            .filter(|(file, _)| SourceLanguage::may_be(file))
        {
            if scope.cancel.is_cancelled() {
                let message = format!("listing the definitions of `{name}` was cancelled");
                return Err(ToolFailure::new("cancelled", message));
            }
            listing.add(shown, parse(scope, file, shown));
        }
    } else {
        let parsed = match parse(scope, &path, &name) {
            Parsed::Failed(error) => return Err(no_outline(&name, &error)),
            Parsed::Unreadable(error) => return Err(error),
            Parsed::Foreign => {
                let languages = SourceLanguage::NAMES.join(", ");
                let hint = "read it, or search it";
                let message = format!(
                    "`{name}` is not written in a language that is understood here ({languages}); {hint}"
                );
                return Err(ToolFailure::new("unknown_language", message));
            }
            parsed @ Parsed::Source(_) => parsed,
        };
        listing.add(&name, parsed);
    }
    Ok(listing.show(&name).into())
}

fn no_outline(name: &str, error: &OutlineError) -> ToolFailure {
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

/// The result of parsing one file.
enum Parsed {
    Source(Outline),
    /// The file is in no supported language, or not text.
    Foreign,
    Failed(OutlineError),
    Unreadable(ToolFailure),
}

fn parse(scope: &FileScope, path: &Path, name: &str) -> Parsed {
    let limits = OutlineLimits::default();
    let size = fs::metadata(path).map_or(0, |metadata| {
        usize::try_from(metadata.len()).unwrap_or(usize::MAX)
    });
    if size > limits.bytes && SourceLanguage::may_be(path) {
        return Parsed::Failed(OutlineError::TooLarge {
            size,
            limit: limits.bytes,
        });
    }
    let text = match scope.text_of(path, name) {
        Ok(Some(text)) => text,
        Ok(None) => return Parsed::Foreign,
        Err(error) => return Parsed::Unreadable(error),
    };
    let Some(language) = SourceLanguage::of(path, &text) else {
        return Parsed::Foreign;
    };
    match outline(language, &text, limits, &|| scope.cancel.is_cancelled()) {
        Ok(outline) => Parsed::Source(outline),
        Err(error) => Parsed::Failed(error),
    }
}

/// The lines that fit, and the number of all files and definitions.
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

    fn add(&mut self, name: &str, parsed: Parsed) {
        match parsed {
            Parsed::Foreign => {}
            // A failure in one file of a folder must not hide the others.
            Parsed::Failed(error) => self.add_remark(name, &format!("Not parsed: {error}.")),
            Parsed::Unreadable(error) => self.add_remark(name, &format!("Not read: {error}.")),
            Parsed::Source(outline) => self.add_outline(name, &outline),
        }
    }

    fn add_remark(&mut self, name: &str, remark: &str) {
        self.line(&visible_line(name));
        self.line(&format!("  [{remark}]"));
    }

    fn add_outline(&mut self, name: &str, outline: &Outline) {
        self.files += 1;
        self.definitions += outline.definitions.len() + outline.left_out;
        self.line(&visible_line(name));
        for one in &outline.definitions {
            let indent = "  ".repeat(one.depth + 1);
            let name = visible_line(&one.name);
            self.line(&format!(
                "{indent}{}-{} {} {name}",
                one.start_line,
                one.end_line,
                one.kind.word()
            ));
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
        self.full |= self.lines.len() >= self.limits.lines
            || self.bytes + line.len() + 1 > self.limits.bytes;
        if !self.full {
            self.bytes += line.len() + 1;
            self.lines.push(line.to_owned());
        }
    }

    fn show(self, name: &str) -> Envelope {
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
