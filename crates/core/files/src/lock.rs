//! Locks between processes.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::file::open;
use crate::folder::{create_folder, folder_of};

/// An exclusive lock on a file. The kernel releases it when this value is dropped or the process
/// dies. The file stays: to remove it would let two processes hold locks on two files of one name.
#[derive(Debug)]
pub struct LockFile(File);

impl LockFile {
    /// Waits until no other process holds the lock. Creates the file and its folder if they are
    /// missing.
    pub fn wait(path: &Path) -> io::Result<Self> {
        let file = prepare(path)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// Like [`Self::wait`], but returns `None` at once if another process holds the lock.
    pub fn try_new(path: &Path) -> io::Result<Option<Self>> {
        let file = prepare(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Self(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// The locked file, for a note on who holds the lock.
    pub fn file(&self) -> &File {
        &self.0
    }
}

fn prepare(path: &Path) -> io::Result<File> {
    match open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_folder(folder_of(path))?;
            open(path)
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn lock_file_is_exclusive_until_dropped() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("below/lock");
        let held = LockFile::wait(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(LockFile::try_new(&path).unwrap().is_none());
        drop(held);
        assert!(LockFile::try_new(&path).unwrap().is_some());
    }
}
