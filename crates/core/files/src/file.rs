//! Creates and replaces files that only their owner can read and write.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::folder::{containing_folder, create_folder, sync_folder};

/// The mode of every file that haft creates for itself.
const MODE: u32 = 0o600;

/// The failure that a file's new content must survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The content survives a power cut: it is on disk, and the file has its final name, before the
    /// call returns. This costs some milliseconds.
    PowerCut,
    /// The content survives the death of this process, but not a power cut. This is sufficient for
    /// files that can be created again.
    Process,
}

/// Creates a file for reading and writing; fails if the file exists.
pub fn create_new(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(path)
}

/// Opens a file for reading and writing, and creates it if it is missing. Existing content is kept.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(MODE)
        .open(path)
}

/// Opens a file for appending, and creates it if it is missing.
pub fn open_append(path: &Path) -> io::Result<File> {
    File::options()
        .append(true)
        .create(true)
        .mode(MODE)
        .open(path)
}

/// Creates a file with an unpredictable name between `prefix` and `suffix` in `folder`, which is
/// created if it is missing. Dropping the result removes the file.
pub fn create_temporary_file(
    folder: &Path,
    prefix: &str,
    suffix: &str,
) -> io::Result<NamedTempFile> {
    create_folder(folder)?;
    // `tempfile` creates files with mode 0600.
    tempfile::Builder::new()
        .prefix(prefix)
        .suffix(suffix)
        .tempfile_in(folder)
}

/// Replaces a file in one step, and creates its folder if it is missing. A concurrent reader gets
/// either the old or the new content, never a part of it. If several processes write concurrently,
/// the content of one of them remains.
pub fn replace_file(path: &Path, content: &[u8], durability: Durability) -> io::Result<()> {
    let folder = containing_folder(path);
    let mut file = create_temporary_file(folder, ".tmp", "")?;
    file.write_all(content)?;
    persist_file(file, path, folder, durability)
}

/// Replaces a file that belongs to the user, such as `config.toml`. A symbolic link remains a link,
/// and an existing file keeps its mode.
pub fn replace_user_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let folder = containing_folder(&target);
    let mut file = create_temporary_file(folder, ".tmp", "")?;
    file.write_all(content)?;
    if let Ok(existing) = target.metadata() {
        file.as_file().set_permissions(existing.permissions())?;
    }
    persist_file(file, &target, folder, Durability::PowerCut)
}

/// Copies a file to a path that must not exist. To make the copy survive a power cut, call
/// [`sync_folder`] on its folder afterwards.
pub fn copy_new(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = create_new(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

/// Renames a file or a folder. A file that already has the new name is replaced. With
/// [`Durability::PowerCut`], the new name is on disk before the call returns, provided that the
/// file system can synchronize a folder; the content is not synchronized.
pub fn rename(from: &Path, to: &Path, durability: Durability) -> io::Result<()> {
    fs::rename(from, to)?;
    match durability {
        Durability::PowerCut => drop(sync_folder(containing_folder(to))),
        Durability::Process => {}
    }
    Ok(())
}

fn persist_file(
    file: NamedTempFile,
    path: &Path,
    folder: &Path,
    durability: Durability,
) -> io::Result<()> {
    match durability {
        Durability::PowerCut => {
            file.as_file().sync_all()?;
            file.persist(path).map_err(|error| error.error)?;
            // The content is complete either way; some file systems cannot synchronize a folder.
            drop(sync_folder(folder));
        }
        Durability::Process => drop(file.persist(path).map_err(|error| error.error)?),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn new_files_are_private() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        create_new(&at("created")).unwrap();
        open_or_create(&at("opened")).unwrap();
        open_append(&at("appended")).unwrap();
        replace_file(&at("below/durable"), b"x", Durability::PowerCut).unwrap();
        replace_file(&at("fast"), b"x", Durability::Process).unwrap();
        replace_user_file(&at("user"), b"x").unwrap();
        copy_new(&at("fast"), &at("copied")).unwrap();
        let kept = create_temporary_file(root.path(), "a-", ".txt")
            .unwrap()
            .keep()
            .unwrap()
            .1;
        assert_eq!(mode(&kept), 0o600);
        for name in [
            "created",
            "opened",
            "appended",
            "below/durable",
            "fast",
            "user",
            "copied",
        ] {
            assert_eq!(mode(&at(name)), 0o600, "{name}");
        }
        assert_eq!(mode(&at("below")), 0o700);
    }

    #[test]
    fn replace_leaves_no_temporary_file_and_makes_a_loose_file_private() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        replace_file(&path, b"new", Durability::PowerCut).unwrap();
        assert_eq!(
            (fs::read(&path).unwrap().as_slice(), mode(&path)),
            (b"new".as_slice(), 0o600)
        );
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn replace_user_file_follows_a_link_and_keeps_the_mode() {
        let root = tempfile::tempdir().unwrap();
        let real = root.path().join("dotfiles.toml");
        let link = root.path().join("config.toml");
        fs::write(&real, "old").unwrap();
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&real, &link).unwrap();
        replace_user_file(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(
            (fs::read(&real).unwrap().as_slice(), mode(&real)),
            (b"new".as_slice(), 0o640)
        );
    }

    #[test]
    fn rename_replaces_a_file() {
        let root = tempfile::tempdir().unwrap();
        let from = root.path().join("from");
        let to = root.path().join("to");
        for durability in [Durability::PowerCut, Durability::Process] {
            fs::write(&from, "new").unwrap();
            fs::write(&to, "old").unwrap();
            rename(&from, &to, durability).unwrap();
            assert!(!from.exists());
            assert_eq!(fs::read(&to).unwrap(), b"new");
        }
    }

    #[test]
    fn open_keeps_the_content() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "kept").unwrap();
        drop(open_or_create(&path).unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"kept");
    }
}
