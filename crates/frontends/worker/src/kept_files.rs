//! Stores the changed files of a task in the queue, so that another worker can rebuild the
//! workspace.
//!
//! Invariant: files changed by a call are stored in the queue before the call's result is stored. A
//! worker that resumes after a result finds the files.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use haft_agent::OpenFolder;
use haft_postgres::{KeptFile, KeptKind};
use haft_store::StoreError;

use crate::slot::TaskRun;

/// The maximum size of a file that is stored in the queue, in bytes. The limit equals that for
/// undoing changes of files.
const MAX_FILE_SIZE: u64 = 64 << 20;

impl TaskRun {
    /// Stores the current content of `paths` in the queue. Paths outside the task's folder are
    /// ignored. Blocks until the queue has stored the files.
    pub fn keep_changed_files(&self, paths: &[&Path]) -> Result<(), StoreError> {
        let inside = paths
            .iter()
            .filter_map(|path| Some((path, path.strip_prefix(&self.folder).ok()?)));
        let files: Vec<_> = inside
            .filter_map(|(at, within)| capture_file(at, within))
            .collect();
        if files.is_empty() {
            Ok(())
        } else {
            self.keep_files(files)
        }
    }
}

/// Reads the file at a path. No link in the path is followed, not even one that is created during
/// the call. Returns `None` if the file cannot be stored.
fn capture_file(at: &Path, relative: &Path) -> Option<KeptFile> {
    match read_kept_file(at, relative) {
        Ok(file) => Some(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(KeptFile {
            path: relative.to_owned(),
            kind: KeptKind::Absent,
            mode: 0,
            content: Vec::new(),
        }),
        Err(error) => {
            tracing::warn!(path = %at.display(), %error, "another worker could not rebuild this file");
            None
        }
    }
}

fn read_kept_file(at: &Path, relative: &Path) -> io::Result<KeptFile> {
    let (Some(above), Some(name)) = (at.parent(), at.file_name()) else {
        return Err(io::ErrorKind::IsADirectory.into());
    };
    let folder = OpenFolder::open(above)?;
    let metadata = folder.symlink_metadata(name)?;
    let (kind, content) = if metadata.is_symlink() {
        (KeptKind::Link, folder.read_link(name)?)
    } else if metadata.is_dir() {
        (KeptKind::Folder, Vec::new())
    } else if metadata.is_file() {
        let mut content = Vec::new();
        folder
            .open_for_reading(name)?
            .take(MAX_FILE_SIZE + 1)
            .read_to_end(&mut content)?;
        if content.len() as u64 > MAX_FILE_SIZE {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        (KeptKind::File, content)
    } else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    Ok(KeptFile {
        path: relative.to_owned(),
        kind,
        mode: metadata.permissions().mode() & 0o777,
        content,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn capture_file_follows_no_link() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let top = folder.path().canonicalize().unwrap();
        fs::write(outside.path().join("secret"), "x").unwrap();
        fs::create_dir(top.join("sub")).unwrap();
        fs::write(top.join("sub/plain"), "y").unwrap();
        symlink(outside.path(), top.join("way")).unwrap();
        symlink(outside.path().join("secret"), top.join("link")).unwrap();
        let kept = |name: &str| capture_file(&top.join(name), Path::new(name));
        assert_eq!(kept("way/secret"), None, "a link on the way");
        assert_eq!(
            kept("link").unwrap().kind,
            KeptKind::Link,
            "itself, not what it leads to"
        );
        assert_eq!(kept("sub/plain").unwrap().content, b"y");
        assert_eq!(kept("sub").unwrap().kind, KeptKind::Folder);
        assert_eq!(kept("gone").unwrap().kind, KeptKind::Absent);
        assert_eq!(kept("gone/deep").unwrap().kind, KeptKind::Absent);
    }
}
