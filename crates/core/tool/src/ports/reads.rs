//! What files looked like when they were last read.

use std::path::Path;

use haft_types::ContentHash;
use serde::{Deserialize, Serialize};

/// What a file looked like when it was last read or written by haft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileState {
    /// Its size in bytes.
    pub size: u64,
    /// Its modification time in nanoseconds.
    pub mtime_ns: i64,
    /// The hash of its content: this decides whether it changed.
    pub hash: ContentHash,
}

/// Remembers what files looked like, so that an edit never overwrites what it has not seen.
pub trait ReadLedger: Send + Sync {
    /// The file as it was last read or written in this conversation.
    fn last_seen(&self, path: &Path) -> Option<FileState>;

    /// Notes how the file looks now.
    fn saw(&self, path: &Path, state: FileState);

    /// Notes that the model has seen the name of a file, and says whether it was the first time in
    /// this conversation. Whoever tells puts the path into the result's `context.named`, from
    /// which this is rebuilt.
    fn name_once(&self, path: &Path) -> bool;
}
