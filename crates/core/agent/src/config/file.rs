//! Changes the user's configuration file, which keeps its comments and order.

use std::io::Write;
use std::path::Path;

use crate::error::ConfigError;

/// Replaces the text of the file by what `change` makes of it; a file that does not exist is empty.
pub fn edit<E: From<ConfigError>>(file: &Path, change: impl FnOnce(&str) -> Result<String, E>) -> Result<(), E> {
    let before = match std::fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(ConfigError::Unreadable { file: file.to_owned(), error }.into()),
    };
    let after = change(&before)?;
    write(file, &after).map_err(|error| ConfigError::Unwritable { file: file.to_owned(), error }.into())
}

/// Writes the whole file or nothing. A link stays a link.
fn write(file: &Path, text: &str) -> std::io::Result<()> {
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let folder = target.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let mut whole = tempfile::NamedTempFile::new_in(folder)?;
    whole.write_all(text.as_bytes())?;
    if let Ok(existing) = std::fs::metadata(&target) {
        whole.as_file().set_permissions(existing.permissions())?;
    }
    whole.as_file().sync_all()?;
    whole.persist(&target).map_err(|error| error.error)?;
    Ok(())
}
