//! Removes the access rights of the group and of other users from existing files.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// The permission bits of everyone except the owner: the group and other users.
const OTHERS: u32 = 0o077;

/// Removes all rights of the group and of other users from a file or folder. Returns its previous
/// mode, or `None` if nothing was changed. Missing files, symbolic links and files of other users
/// are left unchanged.
pub fn tighten_mode(path: &Path) -> io::Result<Option<u32>> {
    let metadata = match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    let mode = metadata.mode() & 0o7777;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_symlink() || !is_ours || mode & OTHERS == 0 {
        return Ok(None);
    }
    fs::set_permissions(path, Permissions::from_mode(mode & !OTHERS))?;
    Ok(Some(mode & 0o777))
}

/// Applies [`tighten_mode`] to a folder and everything below it. Symbolic links are not followed.
pub fn tighten_tree(path: &Path) -> io::Result<()> {
    tighten_mode(path)?;
    if path.symlink_metadata()?.is_dir() {
        for entry in fs::read_dir(path)? {
            tighten_tree(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn tighten_returns_the_former_mode_once() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o754)).unwrap();
        assert_eq!(
            (tighten_mode(&path).unwrap(), mode(&path)),
            (Some(0o754), 0o700)
        );
        assert_eq!(tighten_mode(&path).unwrap(), None);
        assert_eq!(tighten_mode(&root.path().join("missing")).unwrap(), None);
    }

    #[test]
    fn tighten_tree_does_not_follow_links() {
        let root = tempfile::tempdir().unwrap();
        let tree = root.path().join("tree");
        let outside = root.path().join("outside");
        fs::create_dir_all(tree.join("below")).unwrap();
        for path in [&outside, &tree.join("below/file")] {
            fs::write(path, "").unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o644)).unwrap();
        }
        symlink(&outside, tree.join("link")).unwrap();
        tighten_tree(&tree).unwrap();
        assert_eq!(mode(&tree.join("below/file")), 0o600);
        assert_eq!(mode(&tree.join("below")) & OTHERS, 0);
        assert_eq!(mode(&outside), 0o644);
    }
}
