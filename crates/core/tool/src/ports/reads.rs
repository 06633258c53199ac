//! The state of files when they were last read.

use std::path::Path;

use haft_types::ContentHash;
use serde::{Deserialize, Serialize};

/// The state of a file when haft last read or wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Size in bytes.
    pub size: u64,
    /// Modification time in nanoseconds.
    pub mtime_ns: i64,
    /// The hash of the content, which decides whether the file has changed.
    pub hash: ContentHash,
}

/// Remembers the state of files, so that an edit never overwrites content that was not read.
pub trait ReadLedger: Send + Sync {
    /// Returns the state of the file when it was last read or written in this conversation.
    fn last_seen(&self, path: &Path) -> Option<FileState>;

    /// Records the current state of the file.
    fn saw(&self, path: &Path, state: FileState);

    /// Records that the model has seen the file's name. Returns true the first time in this
    /// conversation. A caller that shows the name adds the path to `context.named` of the result,
    /// from which this record is rebuilt.
    fn name_once(&self, path: &Path) -> bool;
}
