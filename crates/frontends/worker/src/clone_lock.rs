//! Gives each run a folder of its own among those of all workers that use a parent folder.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use haft_files::LockFile;

use crate::workspace::{WorkspaceError, create_folder, remove_path};

/// A folder that only this process uses. The lock file lies beside the folder and ends with the
/// process, so the folders of killed workers can be told from those in use.
#[derive(Debug)]
pub(crate) struct CloneLock {
    folder: PathBuf,
    lock_path: PathBuf,
    _lock: LockFile,
}

impl CloneLock {
    /// Takes the first of the folders `names` in `parent` that no other run uses, and empties it.
    /// If all are used, waits for the last one.
    pub(crate) fn acquire(parent: &Path, names: &[String]) -> Result<Self, WorkspaceError> {
        create_folder(parent)?;
        let failed = |source| WorkspaceError::File {
            at: parent.to_owned(),
            source,
        };
        let parent = parent.canonicalize().map_err(failed)?;
        loop {
            for name in names {
                if let Some(taken) = Self::try_take(&parent, name).map_err(failed)? {
                    remove_path(&taken.folder)?;
                    create_folder(&taken.folder)?;
                    return Ok(taken);
                }
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }

    /// Takes the folders in `parent` that no process uses.
    pub(crate) fn take_abandoned(parent: &Path) -> Vec<Self> {
        let entries = fs::read_dir(parent).into_iter().flatten().flatten();
        let mut names: Vec<_> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                Some(name.strip_suffix(".lock").unwrap_or(&name).to_owned())
            })
            .collect();
        names.sort();
        names.dedup();
        names
            .iter()
            .filter_map(|name| Self::try_take(parent, name).ok()?)
            .collect()
    }

    fn try_take(parent: &Path, name: &str) -> io::Result<Option<Self>> {
        let lock_path = parent.join(format!("{name}.lock"));
        loop {
            let Some(lock) = LockFile::try_acquire(&lock_path)? else {
                return Ok(None);
            };
            // The holder of the lock removes the file at last, perhaps after this call opened it.
            let is_current = match fs::metadata(&lock_path) {
                Ok(found) => found.ino() == lock.file().metadata()?.ino(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => return Err(error),
            };
            if is_current {
                return Ok(Some(Self {
                    folder: parent.join(name),
                    lock_path,
                    _lock: lock,
                }));
            }
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Removes the folder, then the lock.
    pub(crate) fn remove_folder(self) -> Result<(), WorkspaceError> {
        remove_path(&self.folder)?;
        remove_path(&self.lock_path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acquire_gives_a_second_run_another_folder() {
        let parent = tempfile::tempdir().unwrap();
        let names = ["7".to_owned(), "7-2".to_owned()];
        let first = CloneLock::acquire(parent.path(), &names).unwrap();
        fs::write(first.folder().join("file"), "x").unwrap();
        let second = CloneLock::acquire(parent.path(), &names).unwrap();
        assert!(first.folder().ends_with("7") && second.folder().ends_with("7-2"));
        // The late run removes only its own folder.
        first.remove_folder().unwrap();
        assert!(second.folder().exists());
        let third = CloneLock::acquire(parent.path(), &names).unwrap();
        assert!(third.folder().ends_with("7"));
        assert_eq!(fs::read_dir(third.folder()).unwrap().count(), 0);
    }

    #[test]
    fn take_abandoned_leaves_folders_in_use() {
        let parent = tempfile::tempdir().unwrap();
        let used = CloneLock::acquire(parent.path(), &["1".to_owned()]).unwrap();
        drop(CloneLock::acquire(parent.path(), &["2".to_owned()]).unwrap());
        fs::create_dir(parent.path().join("3")).unwrap();
        let left = CloneLock::take_abandoned(parent.path());
        let names: Vec<_> = left
            .iter()
            .map(|lock| lock.folder().file_name().unwrap())
            .collect();
        assert_eq!(names, ["2", "3"]);
        for lock in left {
            lock.remove_folder().unwrap();
        }
        drop(used);
        assert_eq!(
            fs::read_dir(parent.path()).unwrap().count(),
            2,
            "the folder and its lock"
        );
    }
}
