//! Removal of old files, such as full outputs that conversations no longer refer to.

use std::path::Path;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use haft_files::LockFile;

/// The name of the lock file in a folder that its process holds as long as it uses the folder.
const IN_USE_LOCK: &str = "in-use.lock";

/// Marks a folder as used by this process until the returned lock is dropped.
/// [`remove_old_entries`] keeps such a folder, however old it is.
pub(crate) fn mark_in_use(folder: &Path) -> io::Result<LockFile> {
    LockFile::acquire(&folder.join(IN_USE_LOCK))
}

/// True unless it is certain that no process uses the folder.
fn is_in_use(folder: &Path) -> bool {
    match LockFile::is_held(&folder.join(IN_USE_LOCK)) {
        Ok(held) => held,
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
    }
}

/// Removes entries last modified more than `days` days ago, except folders that a process uses.
/// Does nothing if `days` is 0.
pub(crate) fn remove_old_entries(folder: &Path, now: SystemTime, days: u32) {
    let age = Duration::from_hours(24) * days;
    let Some(oldest) = now.checked_sub(age).filter(|_| days > 0) else {
        return;
    };
    // Entries that cannot be read or removed are left to the next start: this only saves disk
    // space.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if find_newest_modification(&entry.path()).is_some_and(|written| written < oldest)
            && !is_in_use(&entry.path())
        {
            let path = entry.path();
            let _ = if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
        }
    }
}

/// Removes old outputs of all conversations. Each conversation has a folder of its own in `folder`.
pub(crate) fn remove_old_outputs(folder: &Path, now: SystemTime, days: u32) {
    for conversation in fs::read_dir(folder).into_iter().flatten().flatten() {
        remove_old_entries(&conversation.path(), now, days);
        // Fails, as intended, for a folder that is not empty.
        let _ = fs::remove_dir(conversation.path());
    }
    // Outputs that an older version kept outside of such folders.
    remove_old_entries(folder, now, days);
}

/// Returns the newest modification time of a file or of anything in a folder; `None` if a time is
/// unknown.
fn find_newest_modification(path: &Path) -> Option<SystemTime> {
    let metadata = path.symlink_metadata().ok()?;
    let own = metadata.modified().ok()?;
    if !metadata.is_dir() {
        return Some(own);
    }
    let inside = fs::read_dir(path)
        .ok()?
        .map(|entry| find_newest_modification(&entry.ok()?.path()));
    inside
        .chain([Some(own)])
        .try_fold(own, |newest, written| Some(newest.max(written?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweep_of_outputs_looks_into_the_folders_of_conversations() {
        let folder = tempfile::tempdir().unwrap();
        let now = SystemTime::now();
        let old = now - Duration::from_hours(24) * 31;
        for name in ["mixed/old", "mixed/new", "gone/old"] {
            let file = folder.path().join(name).join("output.stdout");
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, "x").unwrap();
            let written = if name.ends_with("new") { now } else { old };
            for path in [file.clone(), folder.path().join(name)] {
                fs::File::open(path).unwrap().set_modified(written).unwrap();
            }
        }
        remove_old_outputs(folder.path(), now, 30);
        assert!(folder.path().join("mixed/new/output.stdout").exists());
        assert!(!folder.path().join("mixed/old").exists());
        assert!(!folder.path().join("gone").exists());
    }

    #[test]
    fn sweep_removes_only_old_unused_folders() {
        let folder = tempfile::tempdir().unwrap();
        let day = Duration::from_hours(24);
        let now = SystemTime::now();
        for (name, age) in [("old", 31), ("new", 29), ("long", 31)] {
            let file = folder.path().join(name).join("output.log");
            fs::create_dir(file.parent().unwrap()).unwrap();
            fs::write(&file, "x").unwrap();
            let written = if name == "long" { now } else { now - day * age };
            fs::File::open(&file)
                .unwrap()
                .set_modified(written)
                .unwrap();
            fs::File::open(file.parent().unwrap())
                .unwrap()
                .set_modified(now - day * age)
                .unwrap();
        }
        let left = |folder: &Path| {
            let mut names: Vec<_> = fs::read_dir(folder)
                .unwrap()
                .map(|entry| entry.unwrap().file_name())
                .collect();
            names.sort();
            names
        };
        remove_old_entries(folder.path(), now, 0);
        assert_eq!(left(folder.path()).len(), 3, "for ever");
        remove_old_entries(folder.path(), now, 30);
        assert_eq!(left(folder.path()), ["long", "new"]);
        remove_old_entries(&folder.path().join("missing"), now, 30);
    }

    /// A process that runs for longer than the limit, such as a worker, keeps its folder; also if
    /// the clock is set forward.
    #[test]
    fn sweep_keeps_folders_of_running_processes() {
        let folder = tempfile::tempdir().unwrap();
        let later = SystemTime::now() + Duration::from_hours(24 * 400);
        for name in ["used", "left"] {
            fs::create_dir(folder.path().join(name)).unwrap();
        }
        let used = mark_in_use(&folder.path().join("used")).unwrap();
        drop(mark_in_use(&folder.path().join("left")).unwrap());
        remove_old_entries(folder.path(), later, 2);
        assert!(folder.path().join("used").exists());
        assert!(!folder.path().join("left").exists());
        drop(used);
        remove_old_entries(folder.path(), later, 2);
        assert!(!folder.path().join("used").exists());
    }
}
