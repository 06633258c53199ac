//! Creates folders that only their owner can enter.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use tempfile::TempDir;

/// The mode of every folder that haft creates for itself.
const MODE: u32 = 0o700;

/// Creates a folder and any missing parent folders. An existing folder keeps its mode.
pub fn create_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(MODE).create(folder)
}

/// Creates a folder whose parent exists; fails if the folder itself exists.
pub fn create_new_folder(folder: &Path) -> io::Result<()> {
    DirBuilder::new().mode(MODE).create(folder)
}

/// Creates a folder with an unpredictable name in `parent`, which is created if it is missing.
/// Dropping the result removes the new folder.
pub fn create_temporary_folder(parent: &Path, prefix: &str) -> io::Result<TempDir> {
    create_folder(parent)?;
    tempfile::Builder::new()
        .prefix(prefix)
        .permissions(Permissions::from_mode(MODE))
        .tempdir_in(parent)
}

/// Writes the entries of a folder to disk, so that files that were created or renamed in it keep
/// their names after a power cut.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Returns the folder that contains `path`. For a bare file name, this is `.`.
pub fn containing_folder(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn create_folder_closes_every_folder_it_creates() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("a/b/c");
        create_folder(&deep).unwrap();
        create_folder(&deep).unwrap();
        for folder in deep.ancestors().take(3) {
            assert_eq!(mode(folder), 0o700, "{}", folder.display());
        }
    }

    #[test]
    fn create_folder_keeps_the_mode_of_an_existing_one() {
        let root = tempfile::tempdir().unwrap();
        std::fs::set_permissions(root.path(), Permissions::from_mode(0o755)).unwrap();
        create_folder(root.path()).unwrap();
        assert_eq!(mode(root.path()), 0o755);
    }

    #[test]
    fn create_new_folder_fails_if_it_exists() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(
            create_new_folder(root.path()).unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
    }

    #[test]
    fn temporary_folder_is_private() {
        let root = tempfile::tempdir().unwrap();
        let folder = create_temporary_folder(&root.path().join("parent"), "run-").unwrap();
        assert_eq!(
            (mode(folder.path()), mode(&root.path().join("parent"))),
            (0o700, 0o700)
        );
    }

    #[test]
    fn folder_of_a_bare_name_is_the_current_folder() {
        assert_eq!(containing_folder(Path::new("file")), Path::new("."));
        assert_eq!(containing_folder(Path::new("/a/file")), Path::new("/a"));
    }
}
