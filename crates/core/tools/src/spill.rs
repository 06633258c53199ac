//! Files with the whole text of results that are sent in part.

use std::fs::DirBuilder;
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes `text` to the file at `path`, readable by its owner alone. Replaces a file that exists.
pub fn spill_text(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}
