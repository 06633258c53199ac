//! Reads the parts of a ZIP archive within limits, whatever sizes the archive declares.
//!
//! Invariant: at most [`MAX_PART`] bytes come out of one part and [`MAX_TOTAL`] out of all parts,
//! and a part that is compressed much better than those of real documents is not unpacked.

use std::io::{BufReader, Cursor, Read};

use zip::ZipArchive;
use zip::result::ZipError;

use super::DocumentError;
use super::xml::XmlError;

/// The maximum number of parts in an archive. No real document has as many.
const MAX_PARTS: usize = 20_000;
/// The maximum unpacked size of one part, in bytes.
const MAX_PART: u64 = 64 * 1024 * 1024;
/// The maximum unpacked size of all parts together, in bytes.
const MAX_TOTAL: u64 = 160 * 1024 * 1024;
/// The unpacked size up to which [`MAX_RATIO`] does not apply to a part, in bytes.
const MAX_UNCHECKED_PART: u64 = 4 * 1024 * 1024;
/// The maximum compression ratio of a part. The XML of real spreadsheets has a ratio of about 20.
const MAX_RATIO: u64 = 250;

pub(super) struct DocumentArchive<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
    remaining: u64,
}

impl<'a> DocumentArchive<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self, DocumentError> {
        let zip = ZipArchive::new(Cursor::new(bytes))
            .map_err(|error| DocumentError::Damaged(format!("its archive is damaged ({error})")))?;
        if zip.len() > MAX_PARTS {
            return Err(DocumentError::TooLarge(format!(
                "its archive holds {} files",
                zip.len()
            )));
        }
        Ok(Self {
            zip,
            remaining: MAX_TOTAL,
        })
    }

    pub(super) fn has_part(&self, name: &str) -> bool {
        self.zip.index_for_name(name).is_some()
    }

    /// Opens a part for reading. The part is unpacked while it is read.
    pub(super) fn open_part(
        &mut self,
        name: &str,
    ) -> Result<BufReader<ArchivePart<'_>>, DocumentError> {
        let limit = self.remaining.min(MAX_PART);
        let left = &mut self.remaining;
        let entry = self.zip.by_name(name).map_err(|error| match error {
            ZipError::FileNotFound => {
                DocumentError::Damaged(format!("its part `{name}` is missing"))
            }
            other => DocumentError::Damaged(format!("its part `{name}` is damaged ({other})")),
        })?;
        if entry.encrypted() {
            return Err(DocumentError::Encrypted);
        }
        let packed = entry.compressed_size().max(1);
        let size = entry.size();
        if size > MAX_UNCHECKED_PART && size / packed > MAX_RATIO {
            return Err(DocumentError::TooLarge(format!(
                "`{name}` unpacks to {size} bytes from {packed}"
            )));
        }
        let budget = packed
            .saturating_mul(MAX_RATIO)
            .max(MAX_UNCHECKED_PART)
            .min(limit);
        Ok(BufReader::new(ArchivePart {
            entry: Box::new(entry),
            remaining: left,
            budget,
        }))
    }

    /// Returns the first 4 MiB of a part as text. Returns `None` if the part does not exist or is
    /// not UTF-8.
    pub(super) fn read_small_part(&mut self, name: &str) -> Option<String> {
        const MAX_SMALL_PART: u64 = 4 * 1024 * 1024;
        let mut text = String::new();
        self.open_part(name)
            .ok()?
            .take(MAX_SMALL_PART)
            .read_to_string(&mut text)
            .ok()?;
        Some(text)
    }
}

pub(super) struct ArchivePart<'a> {
    entry: Box<dyn Read + 'a>,
    remaining: &'a mut u64,
    /// The number of bytes that may still be unpacked. The size declared in the archive is not
    /// trusted.
    budget: u64,
}

impl Read for ArchivePart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.entry.read(buffer)?;
        let used = count as u64;
        if used > self.budget {
            return Err(std::io::Error::other(XmlError::TooLarge(
                "a part of it unpacks to too much".to_owned(),
            )));
        }
        self.budget -= used;
        *self.remaining = self.remaining.saturating_sub(used);
        Ok(count)
    }
}
