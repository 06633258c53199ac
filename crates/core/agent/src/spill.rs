//! Whole outputs of commands are kept for the conversations that name them, but not for ever.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

/// Removes what was last written more than this many days ago; nothing when it is 0.
pub(crate) fn sweep(folder: &Path, now: SystemTime, days: u32) {
    let age = Duration::from_hours(24) * days;
    let Some(oldest) = now.checked_sub(age).filter(|_| days > 0) else {
        return;
    };
    // What cannot be looked at or removed is for the next start: this is only about room on the
    // disk.
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if newest(&entry.path()).is_some_and(|written| written < oldest) {
            let path = entry.path();
            let _ = if path.is_dir() {
                fs::remove_dir_all(path)
            } else {
                fs::remove_file(path)
            };
        }
    }
}

/// When something was last written, in a folder or a file; none when that is not known.
fn newest(path: &Path) -> Option<SystemTime> {
    let metadata = path.symlink_metadata().ok()?;
    let own = metadata.modified().ok()?;
    if !metadata.is_dir() {
        return Some(own);
    }
    let inside = fs::read_dir(path)
        .ok()?
        .map(|entry| newest(&entry.ok()?.path()));
    inside
        .chain([Some(own)])
        .try_fold(own, |newest, written| Some(newest.max(written?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_nobody_writes_any_more_is_removed() {
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
        sweep(folder.path(), now, 0);
        assert_eq!(left(folder.path()).len(), 3, "for ever");
        sweep(folder.path(), now, 30);
        assert_eq!(left(folder.path()), ["long", "new"]);
        sweep(&folder.path().join("missing"), now, 30);
    }
}
