//! A reader that limits the length of the lines that it returns.
//!
//! Invariant: there are at most [`MAX_LINE_BYTES`] bytes between two line breaks. The rest of a
//! longer line is dropped. Line breaks are always kept, so that line numbers stay correct.

use std::fs::File;
use std::io::{self, Read};

use memchr::{memchr, memrchr};
use tokio_util::sync::CancellationToken;

/// The maximum length, in bytes, of a line that is searched.
pub(super) const MAX_LINE_BYTES: usize = 4 * 1024 * 1024;

/// A file that is being searched, with long lines cut.
pub(super) struct LineLimitedFile<'a, R = File> {
    file: R,
    cancel: &'a CancellationToken,
    max_line: usize,
    /// The number of bytes of the current line that were returned so far.
    passed: usize,
    /// True if bytes of a long line were dropped.
    pub(super) cut: bool,
}

impl<'a, R> LineLimitedFile<'a, R> {
    pub(super) fn new(file: R, cancel: &'a CancellationToken) -> Self {
        Self {
            file,
            cancel,
            max_line: MAX_LINE_BYTES,
            passed: 0,
            cut: false,
        }
    }

    /// Moves the bytes to keep to the front of the buffer, and returns the number of these bytes.
    fn compact_buffer(&mut self, buffer: &mut [u8]) -> usize {
        let mut from = 0;
        let mut to = 0;
        while from < buffer.len() {
            let rest = buffer.get(from..).unwrap_or_default();
            let end = memchr(b'\n', rest);
            let length = end.unwrap_or(rest.len());
            let keep = length.min(self.max_line.saturating_sub(self.passed));
            buffer.copy_within(from..from + keep, to);
            to += keep;
            self.passed += keep;
            self.cut |= keep < length;
            from += length;
            if end.is_some() {
                buffer.copy_within(from..=from, to);
                (from, to, self.passed) = (from + 1, to + 1, 0);
            }
        }
        to
    }
}

impl<R: Read> Read for LineLimitedFile<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.cancel.is_cancelled() {
                return Err(io::Error::other("cancelled"));
            }
            let count = self.file.read(buffer)?;
            if count == 0 {
                return Ok(0);
            }
            let filled = buffer.get_mut(..count).unwrap_or_default();
            // No line can become too long here, so the bytes are passed on unchanged.
            let kept = if self.passed + count <= self.max_line && !self.cut {
                self.passed += count;
                if let Some(last) = memrchr(b'\n', filled) {
                    self.passed = count - last - 1;
                }
                count
            } else {
                self.compact_buffer(filled)
            };
            // Zero bytes would mean the end of the file.
            if kept > 0 {
                return Ok(kept);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn read_cuts_long_lines_but_loses_none(
            lines in proptest::collection::vec(proptest::collection::vec(b'a'..=b'z', 0..20), 0..20),
            step in 1_usize..30,
        ) {
            let text = lines.join(&b'\n');
            let cancel = CancellationToken::new();
            let mut source = LineLimitedFile { max_line: 7, ..LineLimitedFile::new(text.as_slice(), &cancel) };
            let mut read = Vec::new();
            let mut buffer = vec![0; step];
            loop {
                let count = source.read(&mut buffer).unwrap();
                if count == 0 {
                    break;
                }
                read.extend_from_slice(&buffer[..count]);
            }
            let expected: Vec<Vec<u8>> = lines.iter().map(|line| line[..line.len().min(7)].to_vec()).collect();
            prop_assert_eq!(read, expected.join(&b'\n'));
            prop_assert_eq!(source.cut, lines.iter().any(|line| line.len() > 7));
        }
    }
}
