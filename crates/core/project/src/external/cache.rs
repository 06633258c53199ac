//! A cache of the tools' help output, so that haft does not run all tools at every start.
//!
//! The cache is a folder of the user with one small file per tool, so concurrent processes rarely
//! write to the same file. Every file in the cache can be regenerated: an unreadable file is
//! treated as missing.

use std::io;
use std::path::PathBuf;

use haft_files::Durability;
use haft_types::ContentHash;
use serde::{Deserialize, Serialize};

use super::{ExternalTool, ToolFileVersion};

/// The maximum size of a cached file, in bytes. Larger files are not read.
const MAX_STORED_BYTES: u64 = 1 << 20;

/// The result of running a tool for its help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HelpAnswer {
    /// The tool was started and has not finished, because it is slow, or because haft ended before
    /// the tool.
    Begun,
    /// The tool has finished without printing anything.
    Silent,
    /// The tool has finished and printed this text.
    Told(String),
}

#[derive(Serialize, Deserialize)]
struct StoredHelp {
    path: PathBuf,
    version: ToolFileVersion,
    asked: HelpAnswer,
}

/// A folder that contains the cached help output of tools.
#[derive(Clone, Debug)]
pub struct HelpCache {
    folder: PathBuf,
}

impl HelpCache {
    /// Creates a handle for the cache in `folder`, which need not exist.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the cached help answer, if it was stored for the current version of the tool's file.
    pub fn get(&self, tool: &ExternalTool) -> Option<HelpAnswer> {
        let stored: StoredHelp =
            toml::from_str(&haft_files::read_text(&self.entry_path(tool), MAX_STORED_BYTES).ok()?)
                .ok()?;
        (stored.path == tool.path && stored.version == tool.version).then_some(stored.asked)
    }

    /// Stores a help answer for the current version of the tool's file.
    pub fn put(&self, tool: &ExternalTool, asked: HelpAnswer) -> io::Result<()> {
        let stored = StoredHelp {
            path: tool.path.clone(),
            version: tool.version,
            asked,
        };
        let text = toml::to_string(&stored).map_err(io::Error::other)?;
        haft_files::replace_file(&self.entry_path(tool), text.as_bytes(), Durability::Process)
    }

    fn entry_path(&self, tool: &ExternalTool) -> PathBuf {
        let name = ContentHash::from_content(tool.path.as_os_str().as_encoded_bytes());
        self.folder.join(format!("{name}.toml"))
    }
}
