//! Reads lines of a bounded length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// Reads lines from an untrusted source. A partial line is kept if the future of
/// [`Self::next_line`] is dropped.
pub(crate) struct LineReader<R> {
    input: R,
    max_bytes: usize,
    line: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub(crate) fn new(input: R, max_bytes: usize) -> Self {
        Self {
            input,
            max_bytes,
            line: Vec::new(),
        }
    }

    /// Returns the next line without its line break, or `None` at the end of the input. A line that
    /// is cut off at the end is not returned. Fails with [`io::ErrorKind::InvalidData`] if a line is
    /// too long or not UTF-8.
    pub(crate) async fn next_line(&mut self) -> io::Result<Option<String>> {
        loop {
            let piece = self.input.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|byte| *byte == b'\n');
            let read = end.unwrap_or(piece.len());
            if self.line.len() + read > self.max_bytes {
                let message = format!("a line is longer than {} bytes", self.max_bytes);
                return Err(io::Error::new(io::ErrorKind::InvalidData, message));
            }
            self.line.extend_from_slice(&piece[..read]);
            self.input.consume(read + usize::from(end.is_some()));
            if end.is_some() {
                return String::from_utf8(std::mem::take(&mut self.line))
                    .map(Some)
                    .map_err(|_| {
                        io::Error::new(io::ErrorKind::InvalidData, "a line is not UTF-8")
                    });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read_all(input: &[u8], max_bytes: usize) -> (Vec<String>, Option<String>) {
        // Pieces of three bytes: lines and characters span several reads.
        let mut reader = LineReader::new(tokio::io::BufReader::with_capacity(3, input), max_bytes);
        let mut lines = Vec::new();
        loop {
            match reader.next_line().await {
                Ok(Some(line)) => lines.push(line),
                Ok(None) => return (lines, None),
                Err(error) => return (lines, Some(error.to_string())),
            }
        }
    }

    #[tokio::test]
    async fn next_line_bounds_lines_and_drops_a_cut_off_one() {
        let lines = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| (*text).to_owned())
                .collect::<Vec<_>>()
        };
        assert_eq!(
            read_all("один\n\nb\ncut".as_bytes(), 8).await,
            (lines(&["один", "", "b"]), None)
        );
        assert_eq!(
            read_all(b"a\n123456789\n", 8).await,
            (lines(&["a"]), Some("a line is longer than 8 bytes".into()))
        );
        assert_eq!(
            read_all(b"\xff\n", 8).await,
            (Vec::new(), Some("a line is not UTF-8".into()))
        );
    }
}
