//! Removes the covers that earlier versions of haft put in place of missing protected files, if all
//! processes that used them were killed. This version creates none.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use haft_files::LockFile;

/// The extension of the file that lists the covers of a project. The name of the lock file is the
/// part before this extension.
const LIST_EXTENSION: &str = "covers";

/// Removes covers that were left behind. `notes` is [`SandboxPolicy::notes`](crate::SandboxPolicy).
pub fn remove_stale_covers(notes: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(notes) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        if path.extension() != Some(OsStr::new(LIST_EXTENSION)) {
            continue;
        }
        let _held = LockFile::acquire(&path.with_extension(""))?;
        let mut list = haft_files::open_or_create(&path)?;
        // An earlier version that still runs holds a lock as long as it needs the covers.
        if list.try_lock().is_ok() {
            remove_covers(&mut list)?;
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Removes the listed covers. Covers that were filled with content are kept: they no longer belong
/// to haft.
fn remove_covers(list: &mut File) -> io::Result<()> {
    // Reverse order, because an entry inside another cover comes later in the list.
    for path in read_paths(list)?.iter().rev() {
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        let kind = metadata.file_type();
        let _ = if kind.is_dir() {
            fs::remove_dir(path)
        } else if kind.is_socket() || (kind.is_file() && metadata.len() == 0) {
            fs::remove_file(path)
        } else {
            Ok(())
        };
    }
    Ok(())
}

fn read_paths(list: &mut File) -> io::Result<Vec<PathBuf>> {
    let mut bytes = Vec::new();
    list.rewind()?;
    list.read_to_end(&mut bytes)?;
    // If the writer was killed while writing, the last path is incomplete and its cover does not
    // exist.
    let whole = bytes
        .iter()
        .rposition(|byte| *byte == 0)
        .map_or(&[][..], |end| &bytes[..end]);
    let paths = whole
        .split(|byte| *byte == 0)
        .filter(|path| !path.is_empty());
    Ok(paths
        .map(|path| PathBuf::from(OsStr::from_bytes(path)))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn stale_covers_are_removed_unless_they_are_filled_or_in_use() {
        let notes = tempfile::tempdir().unwrap();
        let project = tempfile::tempdir().unwrap();
        let path = |name: &str| project.path().join(name);
        let leave = || {
            for name in [".vscode", ".husky"] {
                fs::create_dir_all(path(name)).unwrap();
            }
            fs::write(path(".husky/pre-commit"), "mine").unwrap();
            let _ = fs::remove_file(path(".mcp.json"));
            UnixListener::bind(path(".mcp.json")).unwrap();
            let covers = [".vscode", ".husky", ".mcp.json", ".missing"];
            let paths = covers.map(|name| path(name).display().to_string());
            let list = paths.join("\0") + "\0";
            fs::write(notes.path().join("0123.covers"), list).unwrap();
        };
        leave();
        let held = File::open(notes.path().join("0123.covers")).unwrap();
        held.lock_shared().unwrap();
        remove_stale_covers(notes.path()).unwrap();
        assert!(path(".vscode").exists(), "another process needs it");
        drop(held);
        remove_stale_covers(notes.path()).unwrap();
        let left: Vec<_> = fs::read_dir(project.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert_eq!(left, [".husky"]);
        assert!(!notes.path().join("0123.covers").exists());
    }
}
