//! Lets the model write external tools for the project (`[tools] model_written`).
//!
//! Invariant: a tool is written only after an approval that showed its whole file, and exactly this
//! content is recorded as trusted. Nothing is written through a link, or in a folder that is not
//! trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use haft_project::{KnowledgeKind, TrustList};
use haft_tool::{Access, Group, Intent, Manual, Tool, ToolContext, ToolDefinition, ToolOutput};
use haft_tools::{FileScope, OnFiles, ToolFailure, write_whole_file};
use haft_types::{Envelope, prompt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::environment::HostEnvironment;
use crate::extension::{Contribution, Extension, ExtensionContext};

/// The name of the tool that writes tools.
const NAME: &str = "write_tool";
/// The extensions of scripts that run without being compiled and without the permission to execute
/// the file.
const EXTENSIONS: [&str; 7] = ["py", "sh", "js", "rb", "pl", "php", "go"];
/// The maximum length of a tool's name, in bytes.
const MAX_NAME_BYTES: usize = 64;

static MANUAL: Manual = Manual::for_group(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteToolParameters {
    /// The file name: letters, digits, `-` and `_`, and one of the endings `.py`, `.sh`, `.js`,
    /// `.rb`, `.pl`, `.php` and `.go`.
    name: String,
    /// The complete program; end it with a line break.
    content: String,
}

/// The extension that offers the tool `write_tool`.
pub struct WrittenToolsExtension;

impl Extension for WrittenToolsExtension {
    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        if !context.config.tools.model_written || !context.trust_state.is_trusted() {
            return Contribution::default();
        }
        let folder = ToolsFolder {
            root: context.project.root.clone(),
            trust: TrustList::at_path(context.places.trust_file()),
        };
        Contribution {
            tools: vec![Arc::new(define_tool(folder))],
            ..Contribution::default()
        }
    }

    fn tools_without_backend(&self, environment: &HostEnvironment) -> Vec<Arc<dyn Tool>> {
        let folder = ToolsFolder {
            root: PathBuf::new(),
            trust: TrustList::at_path(environment.home().unwrap_or_default()),
        };
        vec![Arc::new(define_tool(folder))]
    }
}

fn define_tool(folder: ToolsFolder) -> impl Tool {
    let folder = Arc::new(folder);
    let written = Arc::clone(&folder);
    let checked = Arc::clone(&folder);
    ToolDefinition::new(
        NAME,
        prompt!("written_tools/prompt"),
        &MANUAL,
        Access::Write,
        move |arguments| folder.derive_intent(arguments),
    )
    .on_files(move |scope, parameters: &WriteToolParameters| {
        written.write_tool(scope, &parameters.name, &parameters.content)
    })
    // The approval shows all arguments, and so the whole file. A call that would fail is not shown.
    .with_preview(move |context: &ToolContext, parameters| {
        let checked = checked.check_call(&context.workspace.root, &parameters.name);
        Box::pin(std::future::ready(match checked {
            Ok(_) => Ok(None),
            Err(failure) => Err(ToolOutput::from(failure).envelope),
        }))
    })
}

/// The folder of a project's own tools.
struct ToolsFolder {
    root: PathBuf,
    trust: TrustList,
}

impl ToolsFolder {
    /// Returns the path of a tool, relative to the project's root.
    fn relative_path(name: &str) -> String {
        format!(".haft/{}/{name}", KnowledgeKind::Tools.folder_name())
    }

    /// Returns the intent of a call. It depends on the name alone, so that no other invalid argument
    /// makes a call look harmless.
    fn derive_intent(&self, arguments: &Value) -> Intent {
        let name = arguments.get("name").and_then(Value::as_str);
        name.map_or(Intent::Nothing, |name| {
            let path = self.root.join(Self::relative_path(name));
            Intent::Program(path.display().to_string())
        })
    }

    /// Checks whether a tool with this name can be written from the folder `workspace`. Returns the
    /// path of its file.
    fn check_call(&self, workspace: &Path, name: &str) -> Result<PathBuf, ToolFailure> {
        check_name(name)?;
        if workspace != self.root {
            return Err(ToolFailure::new(
                "not_available",
                "tools are written only in the project itself, not in a copy of it".to_owned(),
            ));
        }
        let relative = Self::relative_path(name);
        let mut path = self.root.clone();
        for part in relative.split('/') {
            path.push(part);
            let Ok(metadata) = path.symlink_metadata() else {
                continue;
            };
            if metadata.is_symlink() {
                return Err(ToolFailure::new(
                    "is_link",
                    format!(
                        "`{}` is a link; tools are not written through links",
                        path.strip_prefix(&self.root).unwrap_or(&path).display()
                    ),
                ));
            }
        }
        let is_trusted = self
            .trust
            .trust_state(&self.root)
            .is_ok_and(|state| state.is_trusted());
        if !is_trusted {
            return Err(ToolFailure::new(
                "not_trusted",
                "files of this folder have changed since the user trusted it; the user must run `haft trust` before a tool can be written".to_owned(),
            ));
        }
        Ok(path)
    }

    /// Writes a tool that the user has approved, and trusts exactly this content.
    fn write_tool(
        &self,
        scope: &FileScope,
        name: &str,
        content: &str,
    ) -> Result<ToolOutput, ToolFailure> {
        let path = self.check_call(&scope.workspace.root, name)?;
        if content.trim().is_empty() {
            return Err(ToolFailure::new(
                "invalid_arguments",
                "`content` is empty; write the whole program".to_owned(),
            ));
        }
        let mut output = write_whole_file(scope, &path.display().to_string(), content)?;
        let relative = Self::relative_path(name);
        let recorded = self
            .trust
            .record_file(&self.root, &relative, content.as_bytes());
        let told = match recorded {
            Ok(()) => format!("It is an external tool from the next request on: `{relative}`."),
            Err(error) => format!(
                "It cannot be used until the user runs `haft trust`, because the approval was not recorded: {error}"
            ),
        };
        let Envelope { text, .. } = &mut output.envelope;
        *text = format!("{} {told}", text.trim_end());
        Ok(output)
    }
}

/// Returns an error that describes valid names if `name` is not one.
fn check_name(name: &str) -> Result<(), ToolFailure> {
    let is_valid = name
        .split_once('.')
        .is_some_and(|(stem, ending)| is_plain_word(stem) && EXTENSIONS.contains(&ending));
    if is_valid && name.len() <= MAX_NAME_BYTES {
        return Ok(());
    }
    let endings: Vec<_> = EXTENSIONS
        .iter()
        .map(|ending| format!("`.{ending}`"))
        .collect();
    Err(ToolFailure::new(
        "invalid_arguments",
        format!(
            "`{name}` is not a name for a tool: use letters, digits, `-` and `_`, at most {MAX_NAME_BYTES} bytes, and one of the endings {}",
            endings.join(", ")
        ),
    ))
}

/// True if the text consists of ASCII letters, digits, `-` and `_`, and begins with a letter or a
/// digit.
fn is_plain_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ['-', '_'].contains(&c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tools_are_plain_file_names() {
        for name in ["a.py", "count_lines.sh", "x-1.go", "A9.php"] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        let long = format!("{}.py", "a".repeat(MAX_NAME_BYTES));
        for name in [
            "", ".py", "a", "a.", "a.rs", "a.PY", "a.tar.py", "../a.py", "a/b.py", "/a.py",
            "-a.py", ".a.py", "a b.py", "a\n.py", "ä.py", "a.py\0", "a;b.sh", "$(x).sh", &long,
        ] {
            assert!(check_name(name).is_err(), "{name:?}");
        }
    }
}
