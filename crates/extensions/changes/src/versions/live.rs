//! Who is at work: a lock on a file for every conversation and tree in use, which a killed process
//! gives up too.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use haft_types::ContentHash;

/// Something that is in use.
#[derive(Clone, Copy, Debug)]
pub(super) enum LiveUse<'a> {
    Conversation(&'a str),
    Tree(&'a [u8]),
}

impl LiveUse<'_> {
    fn file(self, folder: &Path) -> PathBuf {
        let (kind, name) = match self {
            Self::Conversation(id) => ("conversation", id.as_bytes()),
            Self::Tree(root) => ("tree", root),
        };
        folder
            .join("live")
            .join(format!("{kind}-{}", ContentHash::of(name)))
    }
}

/// Locks what is in use until the files are dropped.
pub(super) fn hold(folder: &Path, used: &[LiveUse<'_>]) -> io::Result<Vec<File>> {
    let locked = used.iter().map(|used| {
        let file = open(&used.file(folder))?;
        file.lock_shared()?;
        Ok(file)
    });
    locked.collect()
}

/// Whether anybody uses it; what cannot be asked counts as used.
pub(super) fn is_used(folder: &Path, used: LiveUse<'_>) -> bool {
    let path = used.file(folder);
    match File::open(&path) {
        Ok(file) => match file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
        },
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Opens a private file for locking.
pub(super) fn open(path: &Path) -> io::Result<File> {
    haft_files::create_folder(haft_files::folder_of(path))?;
    haft_files::open(path)
}
