//! Paths of the files that belong to a database, such as its log.

use std::fs;
use std::io;
use std::path::Path;

/// Appends a suffix to the file name of a path, as SQLite does for its log.
pub fn append_suffix(path: &Path, addition: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(addition);
    name.into()
}

/// Removes a file. Succeeds if the file does not exist.
pub(super) fn remove_if_exists(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
