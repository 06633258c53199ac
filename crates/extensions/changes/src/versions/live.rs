//! Marks conversations and trees as in use, with one lock file for each. The operating system
//! releases the locks of a killed process.

use std::io;
use std::path::{Path, PathBuf};

use haft_files::LockFile;
use haft_types::ContentHash;

/// A conversation or tree that a process can mark as in use.
#[derive(Clone, Copy, Debug)]
pub(super) enum LiveUse<'a> {
    Conversation(&'a str),
    Tree(&'a [u8]),
}

impl LiveUse<'_> {
    fn lock_path(self, folder: &Path) -> PathBuf {
        let (kind, name) = match self {
            Self::Conversation(id) => ("conversation", id.as_bytes()),
            Self::Tree(root) => ("tree", root),
        };
        folder
            .join("live")
            .join(format!("{kind}-{}", ContentHash::from_content(name)))
    }
}

/// Marks conversations and trees as in use until the returned locks are dropped.
pub(super) fn hold_locks(folder: &Path, used: &[LiveUse<'_>]) -> io::Result<Vec<LockFile>> {
    used.iter()
        .map(|used| LockFile::acquire_shared(&used.lock_path(folder)))
        .collect()
}

/// True if a process uses the conversation or tree. Also true if an error prevents the check.
pub(super) fn is_in_use(folder: &Path, used: LiveUse<'_>) -> bool {
    match LockFile::try_acquire_existing(&used.lock_path(folder)) {
        Ok(taken) => taken.is_none(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}
