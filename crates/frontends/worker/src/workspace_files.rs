//! Restores the saved changes of a task in a fresh clone.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Component, Path, PathBuf};

use haft_postgres::{KeptFile, KeptKind};

use crate::workspace::{TaskWorkspace, WorkspaceError, remove_path};

impl TaskWorkspace {
    /// Restores the changes of earlier runs in the clone. Deletions are made first, beginning with
    /// the deepest path; then the changed files are written.
    pub fn restore_files(&self, kept: &[KeptFile]) -> Result<(), WorkspaceError> {
        for file in kept
            .iter()
            .rev()
            .filter(|file| file.kind == KeptKind::Absent)
        {
            remove_path(&self.resolve_path(file)?)?;
        }
        for file in kept.iter().filter(|file| file.kind != KeptKind::Absent) {
            let at = self.resolve_path(file)?;
            write_kept_file(file, &at).map_err(|source| WorkspaceError::File {
                at: file.path.clone(),
                source,
            })?;
        }
        Ok(())
    }

    /// Returns the path of a stored file in the clone. A path that leads outside the clone, whether
    /// directly or through links, is rejected.
    fn resolve_path(&self, file: &KeptFile) -> Result<PathBuf, WorkspaceError> {
        let outside = || WorkspaceError::Outside(file.path.clone());
        let plain = file
            .path
            .components()
            .all(|part| matches!(part, Component::Normal(name) if name != ".git"));
        let at = self.folder.join(&file.path);
        let near = at
            .ancestors()
            .skip(1)
            .find_map(|above| above.canonicalize().ok())
            .ok_or_else(outside)?;
        let top = self.folder.canonicalize().map_err(|_| outside())?;
        if plain && near.starts_with(top) {
            Ok(at)
        } else {
            Err(outside())
        }
    }
}

fn write_kept_file(file: &KeptFile, at: &Path) -> io::Result<()> {
    if let Some(above) = at.parent() {
        fs::create_dir_all(above)?;
    }
    let is_folder = at
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir());
    match file.kind {
        KeptKind::Absent => return Ok(()),
        KeptKind::Folder => {
            if !is_folder {
                fs::create_dir(at)?;
            }
        }
        KeptKind::File | KeptKind::Link if is_folder => fs::remove_dir_all(at)?,
        KeptKind::File | KeptKind::Link => drop(fs::remove_file(at)),
    }
    match file.kind {
        KeptKind::Link => {
            use std::os::unix::ffi::OsStrExt;
            symlink(std::ffi::OsStr::from_bytes(&file.content), at)
        }
        KeptKind::File => {
            fs::write(at, &file.content)?;
            fs::set_permissions(at, fs::Permissions::from_mode(file.mode & 0o777))
        }
        KeptKind::Folder | KeptKind::Absent => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept_file(path: &str, kind: KeptKind, content: &str) -> KeptFile {
        KeptFile {
            path: path.into(),
            kind,
            mode: 0o755,
            content: content.as_bytes().to_vec(),
        }
    }

    #[test]
    fn restore_files_applies_changes_to_a_fresh_clone() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("gone/deep")).unwrap();
        fs::write(at("gone/deep/a"), "").unwrap();
        fs::write(at("was_file"), "").unwrap();
        fs::create_dir(at("was_folder")).unwrap();
        TaskWorkspace::for_folder(folder.path())
            .restore_files(&[
                kept_file("gone", KeptKind::Absent, ""),
                kept_file("gone/deep", KeptKind::Absent, ""),
                kept_file("gone/deep/a", KeptKind::Absent, ""),
                kept_file("link", KeptKind::Link, "was_file"),
                kept_file("new/tool", KeptKind::File, "x"),
                kept_file("was_file", KeptKind::File, "now"),
                kept_file("was_folder", KeptKind::File, "file now"),
            ])
            .unwrap();
        assert!(!at("gone").exists());
        assert_eq!(fs::read_to_string(at("link")).unwrap(), "now");
        assert_eq!(fs::read_to_string(at("was_folder")).unwrap(), "file now");
        assert_eq!(
            fs::metadata(at("new/tool")).unwrap().permissions().mode() & 0o777,
            0o755
        );
    }

    #[test]
    fn restore_files_rejects_paths_outside_the_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path(), folder.path().join("way")).unwrap();
        for path in [
            "../x",
            "/tmp/x",
            "way/x",
            "way/deep/x",
            ".git/config",
            "a/../../x",
        ] {
            for kind in [
                KeptKind::File,
                KeptKind::Link,
                KeptKind::Absent,
                KeptKind::Folder,
            ] {
                let refused = TaskWorkspace::for_folder(folder.path())
                    .restore_files(&[kept_file(path, kind, "x")]);
                assert!(
                    matches!(refused, Err(WorkspaceError::Outside(_))),
                    "{path} {kind:?}"
                );
            }
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
