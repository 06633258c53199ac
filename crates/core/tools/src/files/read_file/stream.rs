//! Reads ranges of files that are too large to load: in one pass, with bounded memory even for very
//! long lines.

use std::fs::File;
use std::io::{BufRead, BufReader};

use super::ReadError;
use super::page::{FilePage, LineRange};
use crate::failure::ToolFailure;
use crate::files::disk::DiskError;
use crate::files::encoding::describe_binary;
use crate::scope::FileScope;

const BUFFER_BYTES: usize = 256 * 1024;

/// Returns the lines of a range, and the number of lines in the file.
pub(super) fn read_page(
    file: File,
    name: &str,
    range: LineRange,
    scope: &FileScope,
) -> Result<(FilePage, usize), ToolFailure> {
    let size = file.metadata().map_or(0, |metadata| metadata.len());
    let fail = |source| DiskError::Io {
        doing: "read",
        name: name.to_owned(),
        source,
    };
    let mut reader = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut page = FilePage::new(range, scope.limits);
    let mut line = PartialLine {
        kept: Vec::new(),
        keep: scope.limits.bytes,
        length: 0,
    };
    let mut number = 0;
    let mut first = true;
    loop {
        if scope.cancel.is_cancelled() {
            return Err(ToolFailure::new(
                "cancelled",
                format!("reading `{name}` was cancelled"),
            ));
        }
        let chunk = reader.fill_buf().map_err(fail)?;
        if chunk.is_empty() {
            break;
        }
        if first && chunk.contains(&0) {
            return Err(ReadError::Binary {
                name: name.to_owned(),
                kind: describe_binary(chunk),
                size,
            }
            .into());
        }
        first = false;
        let mut rest = chunk;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (head, tail) = rest.split_at(end);
            line.append_bytes(head);
            number += 1;
            line.finish_line(number, &mut page);
            rest = tail.get(1..).unwrap_or_default();
        }
        line.append_bytes(rest);
        let used = chunk.len();
        reader.consume(used);
    }
    if line.length > 0 {
        number += 1;
        line.finish_line(number, &mut page);
    }
    Ok((page, number))
}

/// The beginning of the current line, and the line's length so far.
struct PartialLine {
    kept: Vec<u8>,
    keep: usize,
    length: usize,
}

impl PartialLine {
    fn append_bytes(&mut self, bytes: &[u8]) {
        let room = self.keep.saturating_sub(self.kept.len()).min(bytes.len());
        self.kept
            .extend_from_slice(bytes.get(..room).unwrap_or_default());
        self.length += bytes.len();
    }

    fn finish_line(&mut self, number: usize, page: &mut FilePage) {
        if self.length == self.kept.len() {
            if self.kept.last() == Some(&b'\r') {
                self.kept.pop();
            }
            let text = String::from_utf8_lossy(&self.kept);
            page.offer_line(number, &text, text.len());
        } else {
            page.offer_line(number, &String::from_utf8_lossy(&self.kept), self.length);
        }
        self.kept.clear();
        self.length = 0;
    }
}
