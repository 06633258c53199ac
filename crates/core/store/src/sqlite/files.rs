//! The names of the files beside a database.

use std::fs;
use std::io;
use std::path::Path;

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
