//! External tools: programs in a tools folder that the model runs as commands.
//!
//! This module finds the tools, reads the header comments of their files, caches their help output,
//! and writes the document about the tools. It runs nothing: callers that run a tool to get its
//! help do so in a sandbox.

mod cache;
mod header;
mod page;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file_reading;
use crate::knowledge::{KnowledgeKind, KnowledgePaths, Level};
use crate::named::{NamedItems, Shadowed, ShadowedBy, named};
use crate::problem::FileProblem;

pub use cache::{HelpAnswer, HelpCache};
pub use page::{quote_for_shell, render_document};

/// The extensions of scripts, each with the command that starts such a script. A file with one of
/// these extensions is a tool even if it is not executable.
const SCRIPT_EXTENSIONS: [(&str, &[&str]); 8] = [
    ("py", &["python3"]),
    ("sh", &["sh"]),
    ("js", &["node"]),
    ("rb", &["ruby"]),
    ("pl", &["perl"]),
    ("php", &["php"]),
    ("go", &["go", "run"]),
    ("rs", &[]),
];

/// An external tool: a program in a tools folder, which the model can run with a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalTool {
    /// The file name of the tool.
    pub name: String,
    pub path: PathBuf,
    pub level: Level,
    /// True if the file's mode allows execution.
    pub executable: bool,
    /// The version of the tool's file. Cached help is current if it was stored for this version.
    pub version: ToolFileVersion,
}

/// The size, modification time and mode of a tool's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFileVersion {
    size: u64,
    seconds: i64,
    nanoseconds: i64,
    executable: bool,
}

/// The usage text of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Help {
    /// The text that the tool printed when it was run for its help.
    Output(String),
    /// The comment at the beginning of the tool's file.
    Header(String),
    /// No usage text is available.
    Missing,
}

impl Help {
    /// Returns the usage text, or `None` if no usage text is available.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Output(text) | Self::Header(text) => Some(text),
            Self::Missing => None,
        }
    }
}

named!(ExternalTool);

/// Finds all external tools. A tool with the name of a built-in tool is recorded as shadowed.
pub fn load_tools(
    knowledge: &KnowledgePaths,
    is_built_in: &dyn Fn(&str) -> bool,
    problems: &mut Vec<FileProblem>,
) -> NamedItems<ExternalTool> {
    let mut found = NamedItems::default();
    for folder in knowledge.folders_of_kind(KnowledgeKind::Tools) {
        for name in file_reading::list_names(&folder.path)
            .into_iter()
            .filter(|name| !name.starts_with('.'))
        {
            let path = folder.path.join(&name);
            let Some(tool) = inspect_tool_file(&name, path, folder.level) else {
                continue;
            };
            if leads_out_of_project(knowledge, &tool) {
                problems.push(FileProblem::new(
                    tool.path,
                    "it leads out of the project and is left out",
                ));
            } else if is_built_in(&name) {
                found.shadowed.push(Shadowed {
                    name,
                    path: tool.path,
                    by: ShadowedBy::BuiltIn,
                });
            } else {
                found.add(tool);
            }
        }
    }
    found.sort_by_name()
}

fn inspect_tool_file(name: &str, path: PathBuf, level: Level) -> Option<ExternalTool> {
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    let counts = match extension_of(&path) {
        None => executable,
        Some(ending) => {
            SCRIPT_EXTENSIONS.iter().any(|(known, _)| *known == ending) && File::open(&path).is_ok()
        }
    };
    let seconds = metadata.mtime();
    let nanoseconds = metadata.mtime_nsec();
    let version = ToolFileVersion {
        size: metadata.size(),
        seconds,
        nanoseconds,
        executable,
    };
    counts.then(|| ExternalTool {
        name: name.to_owned(),
        path,
        level,
        executable,
        version,
    })
}

fn leads_out_of_project(knowledge: &KnowledgePaths, tool: &ExternalTool) -> bool {
    let inside = |path: PathBuf| path.starts_with(&knowledge.root);
    tool.level == Level::Project && !tool.path.canonicalize().is_ok_and(inside)
}

fn extension_of(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str())
}

impl ExternalTool {
    /// Returns the folder that contains the tool, in which the tool is run for its help.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// Returns the command that starts the tool, without arguments. Returns `None` if the tool must
    /// be compiled first.
    pub fn command_to_start(&self) -> Option<Vec<OsString>> {
        let interpreter = match extension_of(&self.path) {
            // Files without an extension are tools only if they are executable.
            None => &[][..],
            Some(_) if self.executable && self.can_kernel_start() => &[],
            Some(ending) => {
                SCRIPT_EXTENSIONS
                    .iter()
                    .find(|(known, by)| *known == ending && !by.is_empty())?
                    .1
            }
        };
        Some(
            interpreter
                .iter()
                .map(OsString::from)
                .chain([self.path.clone().into_os_string()])
                .collect(),
        )
    }

    /// True if the kernel can start the file. Many scripts are executable but have no `#!` line, so
    /// the kernel cannot start them.
    fn can_kernel_start(&self) -> bool {
        let mut start = [0; 4];
        let read = File::open(&self.path)
            .and_then(|mut file| file.read(&mut start))
            .unwrap_or(0);
        start[..read].starts_with(b"#!") || start[..read].starts_with(b"\x7fELF")
    }

    /// Returns the usage text from the comment at the beginning of the file.
    pub fn read_header(&self) -> Option<String> {
        let marker = match extension_of(&self.path) {
            Some("js" | "go" | "rs") => "//",
            Some(_) | None => "#",
        };
        header::read_usage_comment(&self.path, marker)
    }
}

#[cfg(test)]
mod tests;
