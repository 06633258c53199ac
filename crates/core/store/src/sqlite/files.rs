//! Files and folders that only their owner may read, and names that survive a power cut.

use std::fs::{self, File};
use std::io;
use std::path::Path;

/// The folder a file lies in.
pub(super) fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The same path with something added to its last name, as SQLite does for its log.
pub fn beside(path: &Path, addition: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(addition);
    name.into()
}

/// Removes a file; one that is not there is as good as removed.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Creates a folder with those above it.
#[cfg(unix)]
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Creates a folder with those above it.
#[cfg(not(unix))]
pub(super) fn create_private_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Creates a file that must not exist.
#[cfg(unix)]
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).write(true).create_new(true).mode(0o600).open(path)
}

/// Creates a file that must not exist.
#[cfg(not(unix))]
pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create_new(true).open(path)
}

/// Copies a file to one that must not exist, durably.
pub(super) fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut target = create_private_file(to)?;
    io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()
}

/// Opens a file for reading and writing; a missing one is created.
#[cfg(unix)]
pub(super) fn open_private_file(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    File::options().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Opens a file for reading and writing; a missing one is created.
#[cfg(not(unix))]
pub(super) fn open_private_file(path: &Path) -> io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(path)
}

/// Makes the names in a folder durable.
#[cfg(unix)]
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Makes the names in a folder durable.
#[cfg(not(unix))]
pub(super) fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}
