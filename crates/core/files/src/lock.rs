//! Locks that exclude other processes.

use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

use crate::file::{create_new, open_or_create};
use crate::folder::{containing_folder, create_folder};

/// A lock on a file. The kernel releases the lock when this value is dropped or the process dies.
/// The file is not removed, because two processes could then hold locks on two files with one name.
#[derive(Debug)]
pub struct LockFile(File);

impl LockFile {
    /// Takes the lock exclusively. Waits while any other process holds the lock. Creates the file
    /// and its folder if they are missing.
    pub fn acquire(path: &Path) -> io::Result<Self> {
        let file = open_lock_file(path)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// Like [`Self::acquire`], but takes a shared lock, which several processes can hold at once.
    pub fn acquire_shared(path: &Path) -> io::Result<Self> {
        let file = open_lock_file(path)?;
        file.lock_shared()?;
        Ok(Self(file))
    }

    /// Creates a file in an existing folder and takes its lock exclusively; fails if the file
    /// exists. Another process may lock and remove the new file before this function locks it, so
    /// the caller must check that the file still exists.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        let file = create_new(path)?;
        file.lock()?;
        Ok(Self(file))
    }

    /// Like [`Self::acquire`], but returns `None` at once if another process holds the lock.
    pub fn try_acquire(path: &Path) -> io::Result<Option<Self>> {
        let file = open_lock_file(path)?;
        lock_outcome(file.try_lock(), file)
    }

    /// Like [`Self::acquire_shared`], but returns `None` at once if another process holds the lock
    /// exclusively.
    pub fn try_acquire_shared(path: &Path) -> io::Result<Option<Self>> {
        let file = open_lock_file(path)?;
        lock_outcome(file.try_lock_shared(), file)
    }

    /// Like [`Self::try_acquire`], but fails with [`io::ErrorKind::NotFound`] if the file is
    /// missing, and opens it only for reading.
    pub fn try_acquire_existing(path: &Path) -> io::Result<Option<Self>> {
        let file = File::open(path)?;
        lock_outcome(file.try_lock(), file)
    }

    /// True if a process holds the lock of the file exclusively. The file must exist. Concurrent
    /// calls of this function do not disturb each other.
    pub fn is_held(path: &Path) -> io::Result<bool> {
        let file = File::open(path)?;
        Ok(lock_outcome(file.try_lock_shared(), file)?.is_none())
    }

    /// Returns the locked file, to which the holder of the lock can write.
    pub fn file(&self) -> &File {
        &self.0
    }
}

fn lock_outcome(locked: Result<(), TryLockError>, file: File) -> io::Result<Option<LockFile>> {
    match locked {
        Ok(()) => Ok(Some(LockFile(file))),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn open_lock_file(path: &Path) -> io::Result<File> {
    match open_or_create(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_folder(containing_folder(path))?;
            open_or_create(path)
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
        let held = LockFile::acquire(&path).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(LockFile::try_acquire(&path).unwrap().is_none());
        drop(held);
        assert!(LockFile::try_acquire(&path).unwrap().is_some());
    }

    #[test]
    fn lock_file_is_shared_by_shared_locks_only() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("below/lock");
        let one = LockFile::acquire_shared(&path).unwrap();
        let other = LockFile::try_acquire_shared(&path).unwrap().unwrap();
        assert!(LockFile::try_acquire(&path).unwrap().is_none());
        assert!(!LockFile::is_held(&path).unwrap());
        drop((one, other));
        let _alone = LockFile::acquire(&path).unwrap();
        assert!(LockFile::try_acquire_shared(&path).unwrap().is_none());
        assert!(LockFile::is_held(&path).unwrap());
    }

    #[test]
    fn create_new_fails_if_the_file_exists() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let _held = LockFile::create_new(&path).unwrap();
        assert!(LockFile::is_held(&path).unwrap());
        assert_eq!(
            LockFile::create_new(&path).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn try_existing_and_is_held_create_nothing() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let missing = LockFile::try_acquire_existing(&path).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
        assert_eq!(
            LockFile::is_held(&path).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
        assert!(!path.exists());
        drop(LockFile::acquire(&path).unwrap());
        let _held = LockFile::try_acquire_existing(&path).unwrap().unwrap();
        assert!(LockFile::try_acquire_existing(&path).unwrap().is_none());
    }
}
