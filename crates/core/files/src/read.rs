//! Reads files up to a size limit: a file that has grown without bound must not fill the memory.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Returns the content of a file. Fails with [`io::ErrorKind::FileTooLarge`] if the file has more
/// than `max_bytes` bytes.
pub fn read_limited(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?
        .take(max_bytes.saturating_add(1))
        .read_to_end(&mut content)?;
    if content.len() as u64 > max_bytes {
        let message = format!("it has more than {max_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(content)
}

/// Like [`read_limited`], but returns text. Fails with [`io::ErrorKind::InvalidData`] if the file
/// is not valid UTF-8.
pub fn read_text(path: &Path, max_bytes: u64) -> io::Result<String> {
    String::from_utf8(read_limited(path, max_bytes)?)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn read_refuses_a_file_above_the_limit() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        std::fs::write(&path, "1234").unwrap();
        assert_eq!(read_limited(&path, 4).unwrap(), b"1234");
        assert_eq!(
            read_limited(&path, 3).unwrap_err().kind(),
            io::ErrorKind::FileTooLarge
        );
        assert_eq!(read_text(&path, 4).unwrap(), "1234");
    }

    #[test]
    fn read_text_refuses_other_bytes() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(
            read_text(&path, 4).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
