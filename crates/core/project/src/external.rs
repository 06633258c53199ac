//! External tools: programs in a tools folder that the model runs as commands.
//!
//! This module finds them, reads what their files say of themselves, remembers what they said when
//! they were asked, and writes the document about them. It runs nothing: whoever asks a tool for
//! its help does so in a sandbox.

mod cache;
mod header;
mod page;

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::file;
use crate::knowledge::{KnowledgeKind, KnowledgePaths, Level};
use crate::named::{NamedItems, Shadowed, ShadowedBy, named};
use crate::problem::FileProblem;

pub use cache::{HelpAnswer, HelpCache};
pub use page::document;

/// Endings of scripts that count without being executable, each with the command that starts one.
const ENDINGS: [(&str, &[&str]); 8] = [
    ("py", &["python3"]),
    ("sh", &["sh"]),
    ("js", &["node"]),
    ("rb", &["ruby"]),
    ("pl", &["perl"]),
    ("php", &["php"]),
    ("go", &["go", "run"]),
    ("rs", &[]),
];

/// A program in a tools folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalTool {
    /// Its file name.
    pub name: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Whose it is.
    pub level: Level,
    /// Whether it can be started as it is.
    pub executable: bool,
    /// By which what was learnt of it is known to be of this very file.
    pub version: ToolFileVersion,
}

/// Size and time of a tool's file, and whether it can be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolFileVersion {
    size: u64,
    seconds: i64,
    nanoseconds: i64,
    executable: bool,
}

/// What is known of the use of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Help {
    /// It said so itself.
    Told(String),
    /// The comment at the head of its file says so.
    Header(String),
    /// Nothing: it has only a name.
    Nothing,
}

impl Help {
    /// Its text; none when there is none.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Told(text) | Self::Header(text) => Some(text),
            Self::Nothing => None,
        }
    }
}

named!(ExternalTool);

/// Finds the tools. One that is called like a built-in tool is not used.
pub fn load(
    knowledge: &KnowledgePaths,
    is_built_in: &dyn Fn(&str) -> bool,
    problems: &mut Vec<FileProblem>,
) -> NamedItems<ExternalTool> {
    let mut found = NamedItems::default();
    for folder in knowledge.folders(KnowledgeKind::Tools) {
        for name in file::names(&folder.path)
            .into_iter()
            .filter(|name| !name.starts_with('.'))
        {
            let path = folder.path.join(&name);
            let Some(tool) = look(&name, path, folder.level) else {
                continue;
            };
            if leads_out(knowledge, &tool) {
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
    found.sorted()
}

fn look(name: &str, path: PathBuf, level: Level) -> Option<ExternalTool> {
    let metadata = path.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let executable = metadata.permissions().mode() & 0o111 != 0;
    let counts = match ending(&path) {
        None => executable,
        Some(ending) => {
            ENDINGS.iter().any(|(known, _)| *known == ending) && File::open(&path).is_ok()
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

fn leads_out(knowledge: &KnowledgePaths, tool: &ExternalTool) -> bool {
    let inside = |path: PathBuf| path.starts_with(&knowledge.root);
    tool.level == Level::Project && !tool.path.canonicalize().is_ok_and(inside)
}

fn ending(path: &Path) -> Option<&str> {
    path.extension().and_then(|ending| ending.to_str())
}

impl ExternalTool {
    /// The folder it lies in, in which it is asked for its help.
    pub fn folder(&self) -> &Path {
        self.path.parent().unwrap_or(&self.path)
    }

    /// The command that starts it, without arguments; none when it has to be compiled first.
    pub fn command(&self) -> Option<Vec<OsString>> {
        let by = match ending(&self.path) {
            // Without an ending it can be started, or it would not be here.
            None => &[][..],
            Some(_) if self.executable && self.starts_itself() => &[],
            Some(ending) => {
                ENDINGS
                    .iter()
                    .find(|(known, by)| *known == ending && !by.is_empty())?
                    .1
            }
        };
        Some(
            by.iter()
                .map(OsString::from)
                .chain([self.path.clone().into_os_string()])
                .collect(),
        )
    }

    /// Whether the kernel knows what to do with it: many scripts are executable and do not say of
    /// what.
    fn starts_itself(&self) -> bool {
        let mut start = [0; 4];
        let read = File::open(&self.path)
            .and_then(|mut file| file.read(&mut start))
            .unwrap_or(0);
        start[..read].starts_with(b"#!") || start[..read].starts_with(b"\x7fELF")
    }

    /// What the comment at the head of its file says of how to use it.
    pub fn header(&self) -> Option<String> {
        let marker = match ending(&self.path) {
            Some("js" | "go" | "rs") => "//",
            Some(_) | None => "#",
        };
        header::of(&self.path, marker)
    }
}

#[cfg(test)]
mod tests;
