//! What tools said when they were asked, so that a start does not run them all again.
//!
//! One small file a tool, in a folder of the user's own: processes that run side by side write
//! different files, or the same. Everything in it can be made again, so a file that cannot be read
//! is one that is not there.

use std::io;
use std::path::PathBuf;

use haft_files::Durability;
use haft_types::ContentHash;
use serde::{Deserialize, Serialize};

use super::{ExternalTool, ToolFileVersion};

/// The largest stored answer that is read.
const MAX_STORED_BYTES: u64 = 1 << 20;

/// What came of asking a tool for its help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelpAnswer {
    /// It was begun, and its end was not seen: the tool is slow, or haft ended first.
    Begun,
    /// It has nothing to say.
    Silent,
    /// This.
    Told(String),
}

#[derive(Serialize, Deserialize)]
struct StoredHelp {
    path: PathBuf,
    version: ToolFileVersion,
    asked: HelpAnswer,
}

/// The folder.
#[derive(Clone, Debug)]
pub struct HelpCache {
    folder: PathBuf,
}

impl HelpCache {
    /// What is remembered in this folder.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// What came of asking this tool, as its file is now.
    pub fn get(&self, tool: &ExternalTool) -> Option<HelpAnswer> {
        let stored: StoredHelp =
            toml::from_str(&haft_files::read_text(&self.file(tool), MAX_STORED_BYTES).ok()?)
                .ok()?;
        (stored.path == tool.path && stored.version == tool.version).then_some(stored.asked)
    }

    /// Remembers what came of it.
    pub fn put(&self, tool: &ExternalTool, asked: HelpAnswer) -> io::Result<()> {
        let stored = StoredHelp {
            path: tool.path.clone(),
            version: tool.version,
            asked,
        };
        let text = toml::to_string(&stored).map_err(io::Error::other)?;
        haft_files::replace(&self.file(tool), text.as_bytes(), Durability::Process)
    }

    fn file(&self, tool: &ExternalTool) -> PathBuf {
        let name = ContentHash::of(tool.path.as_os_str().as_encoded_bytes());
        self.folder.join(format!("{name}.toml"))
    }
}
