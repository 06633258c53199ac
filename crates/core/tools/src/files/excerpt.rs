//! Reads the current lines of a file, without a tool call.

use std::ops::RangeInclusive;
use std::path::Path;

use haft_tool::OutputLimits;

use crate::failure::Coded;
use crate::files::disk::{self, DiskError};
use crate::files::edit::lines;
use crate::files::encoding::{decode_text, describe_binary};
use crate::visible;

/// An error while reading an excerpt. The message omits the path, because the caller knows it.
#[derive(Debug, thiserror::Error)]
pub enum ExcerptError {
    #[error("the file does not exist")]
    Missing,
    /// The path now contains a symbolic link, so it may lead to another file.
    #[error("its path goes through a symbolic link now")]
    Link,
    /// The file is not text. The value describes its content.
    #[error("it is {0}, not text")]
    Binary(&'static str),
    /// The requested range begins after the end of the file.
    #[error("the file has {total} lines")]
    Beyond {
        /// The number of lines in the file.
        total: usize,
    },
    /// The requested lines exceed the limits.
    #[error("too long to be shown here; read it by range")]
    TooLong,
    #[error("{0}")]
    Unreadable(String),
}

impl Coded for ExcerptError {
    fn code(&self) -> &'static str {
        match self {
            Self::Missing => "not_found",
            Self::Link => "outside_workspace",
            Self::Binary(_) => "binary_file",
            Self::Beyond { .. } => "out_of_range",
            Self::TooLong => "too_large",
            Self::Unreadable(_) => "io",
        }
    }
}

/// Returns the current lines of a range, with control characters made visible. `path` must be
/// absolute and free of symbolic links. Fails if the lines exceed the limits, because a cut range
/// would be misleading.
pub fn read_excerpt(
    path: &Path,
    lines: RangeInclusive<usize>,
    limits: OutputLimits,
) -> Result<String, ExcerptError> {
    // The path was free of links when it was recorded; a link put there since could lead out of the
    // project.
    match path.canonicalize() {
        Ok(resolved) if resolved == path => {}
        Ok(_) => return Err(ExcerptError::Link),
        // `load_file` below tells a missing file from an unreadable one.
        Err(_) => {}
    }
    let loaded =
        disk::load_file(path, &path.display().to_string()).map_err(|error| match error {
            DiskError::NotFound { .. } => ExcerptError::Missing,
            DiskError::Link { .. } => ExcerptError::Link,
            DiskError::Folder { .. }
            | DiskError::Special { .. }
            | DiskError::TooLarge { .. }
            | DiskError::Io { .. } => ExcerptError::Unreadable(error.to_string()),
        })?;
    let decoded = decode_text(&loaded.bytes)
        .ok_or_else(|| ExcerptError::Binary(describe_binary(&loaded.bytes)))?;
    let mut text = String::new();
    let mut total = 0;
    let mut shown = 0;
    for line in lines::split_lines(&decoded.text) {
        total += 1;
        if !lines.contains(&total) {
            continue;
        }
        shown += 1;
        let line = visible::reveal_line(line.text);
        if shown > limits.lines || text.len() + line.len() > limits.bytes {
            return Err(ExcerptError::TooLong);
        }
        text.push_str(&line);
        text.push('\n');
    }
    if shown == 0 {
        Err(ExcerptError::Beyond { total })
    } else {
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::Bench;

    #[test]
    fn excerpt_reads_the_current_content() {
        let bench = Bench::new();
        let path = bench.write("a", "one\ntwo\nthree\n");
        let read = |lines| read_excerpt(&path, lines, OutputLimits::default());
        assert_eq!(read(2..=3).unwrap(), "two\nthree\n");
        assert_eq!(read(3..=9).unwrap(), "three\n", "what is there of it");
        bench.write("a", "\x1b[1mone\n");
        assert_eq!(read(1..=1).unwrap(), "␛[1mone\n");
        assert_eq!(read(2..=3).unwrap_err().to_string(), "the file has 1 lines");
        fs::remove_file(&path).unwrap();
        assert!(matches!(read(1..=1), Err(ExcerptError::Missing)));
    }

    #[test]
    fn excerpt_rejects_binary_files_and_ranges_above_the_limits() {
        let bench = Bench::new();
        let path = bench.write("a", "one\ntwo\nthree\n");
        for limits in [
            OutputLimits {
                lines: 2,
                bytes: 100,
            },
            OutputLimits {
                lines: 9,
                bytes: 10,
            },
        ] {
            assert!(matches!(
                read_excerpt(&path, 1..=3, limits),
                Err(ExcerptError::TooLong)
            ));
        }
        let program = bench.write("program", b"\x7FELF\0\0\0");
        assert!(matches!(
            read_excerpt(&program, 1..=1, OutputLimits::default()),
            Err(ExcerptError::Binary(_))
        ));
        assert!(matches!(
            read_excerpt(&bench.path(""), 1..=1, OutputLimits::default()),
            Err(ExcerptError::Unreadable(_))
        ));
    }

    #[test]
    fn excerpt_does_not_follow_a_link_in_the_path() {
        let bench = Bench::new();
        bench.write("real/a", "one\n");
        std::os::unix::fs::symlink(bench.path("real"), bench.path("way")).unwrap();
        assert!(matches!(
            read_excerpt(&bench.path("way/a"), 1..=1, OutputLimits::default()),
            Err(ExcerptError::Link)
        ));
    }
}
