//! The text of documents that are no text files: PDF, office files and notebooks, one module a
//! format.
//!
//! Office files are archives of XML and are read here, within limits that hold whatever the archive
//! says of itself. PDF files are read by a child process (see `pdf`), because the library for them
//! can crash, hang and eat memory; a program that registers [`FormatReaders`] calls
//! [`read_pdf_entry`] first thing in its `main`. This crate knows no tool, writes nothing but a
//! temporary file, and says nothing to a model: what is said of a document is the business of
//! whoever asked.
//!
//! Invariant: at most 16 MiB of text come out, without control characters but line breaks and tabs.
//!
//! Read first: [`FormatReaders`] (the reader), `flow` (how text is put together), `pdf` (the child
//! process).

mod archive;
mod flow;
mod grid;
mod notebook;
mod odf;
mod ooxml;
mod pdf;
mod xml;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use haft_sandbox::Supervisor;
use haft_tool::{DocumentError, DocumentFormat, DocumentReader, DocumentSource, DocumentText};
use haft_types::ContentHash;

use archive::DocumentArchive;
use xml::XmlError;

pub use pdf::read_pdf_entry;

/// The most text, in bytes, that is taken out of a document.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// Files whose refusal is remembered.
const MAX_REFUSED: usize = 256;

/// Reads documents of every format there is a module for.
pub struct FormatReaders {
    supervisor: Arc<Supervisor>,
    /// Why files were refused, by their content: one that took a minute to be refused is not tried
    /// again.
    refused: Mutex<HashMap<ContentHash, DocumentError>>,
}

impl FormatReaders {
    /// The child processes that read PDF files run under this supervisor. They are its own program
    /// again.
    pub fn new(supervisor: Arc<Supervisor>) -> Self {
        Self {
            supervisor,
            refused: Mutex::default(),
        }
    }
}

impl DocumentReader for FormatReaders {
    fn format(&self, path: &Path, bytes: &[u8]) -> Option<DocumentFormat> {
        Format::of(path, bytes).map(|format| DocumentFormat {
            id: format.word(),
            name: format.name(),
        })
    }

    fn is_likely(&self, path: &Path) -> bool {
        let known = ["pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "ipynb"];
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| known.contains(&extension.to_ascii_lowercase().as_str()))
    }

    fn read(&self, source: &DocumentSource<'_>) -> Result<DocumentText, DocumentError> {
        let hash = ContentHash::of(source.bytes);
        let refused = || self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = refused().get(&hash) {
            return Err(error.clone());
        }
        let read = self.read_anew(source);
        if let Err(error @ (DocumentError::TooLarge(_) | DocumentError::Damaged(_))) = &read {
            let mut refused = refused();
            if refused.len() >= MAX_REFUSED {
                refused.clear();
            }
            refused.insert(hash, error.clone());
        }
        read
    }
}

impl FormatReaders {
    fn read_anew(&self, source: &DocumentSource<'_>) -> Result<DocumentText, DocumentError> {
        let stop = || source.cancel.is_cancelled();
        let open = || DocumentArchive::open(source.bytes);
        let Some(format) = Format::of(source.path, source.bytes) else {
            return Err(DocumentError::Damaged(
                "it is no document that is understood here".to_owned(),
            ));
        };
        match format {
            Format::Pdf => pdf::text(&self.supervisor, source),
            Format::Word => open().and_then(|mut archive| ooxml::word::text(&mut archive, &stop)),
            Format::Excel => open().and_then(|mut archive| ooxml::excel::text(&mut archive, &stop)),
            Format::PowerPoint => {
                open().and_then(|mut archive| ooxml::powerpoint::text(&mut archive, &stop))
            }
            Format::OpenText | Format::OpenSpreadsheet | Format::OpenPresentation => {
                open().and_then(|mut archive| odf::text(&mut archive, format, &stop))
            }
            Format::Notebook => notebook::text(source.bytes),
            // A modern document with a password is a compound file that holds a stream of this
            // name.
            Format::Compound if holds_utf16(source.bytes, "EncryptedPackage") => {
                Err(DocumentError::Encrypted)
            }
            Format::Compound => Err(DocumentError::Legacy),
        }
    }
}

/// What kind of document a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Pdf,
    Word,
    Excel,
    PowerPoint,
    OpenText,
    OpenSpreadsheet,
    OpenPresentation,
    Notebook,
    /// Word, Excel or PowerPoint before 2007, or one of today with a password: both are compound
    /// files.
    Compound,
}

impl Format {
    /// What a file is by its content, and where that does not tell, by its name; `None` if it is no
    /// document.
    fn of(path: &Path, bytes: &[u8]) -> Option<Self> {
        let extension = path
            .extension()
            .and_then(|extension| extension.to_str())
            .map(str::to_ascii_lowercase);
        if bytes.starts_with(b"%PDF-") {
            Some(Self::Pdf)
        } else if bytes.starts_with(b"PK\x03\x04") {
            DocumentArchive::open(bytes).ok().and_then(|mut archive| {
                ooxml::format(&mut archive).or_else(|| odf::format(&mut archive))
            })
        } else if bytes.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1") {
            let office = [
                "doc", "xls", "ppt", "docx", "xlsx", "pptx", "docm", "xlsm", "pptm",
            ];
            extension
                .is_some_and(|extension| office.contains(&extension.as_str()))
                .then_some(Self::Compound)
        } else {
            (extension.as_deref() == Some("ipynb") && notebook::looks_like_one(bytes))
                .then_some(Self::Notebook)
        }
    }

    /// Its name for programs.
    fn word(self) -> &'static str {
        match self {
            Self::Pdf => "pdf",
            Self::Word => "docx",
            Self::Excel => "xlsx",
            Self::PowerPoint => "pptx",
            Self::OpenText => "odt",
            Self::OpenSpreadsheet => "ods",
            Self::OpenPresentation => "odp",
            Self::Notebook => "ipynb",
            Self::Compound => "office",
        }
    }

    /// Its name for people, with its article.
    fn name(self) -> &'static str {
        match self {
            Self::Pdf => "a PDF document",
            Self::Word => "a Word document",
            Self::Excel => "an Excel workbook",
            Self::PowerPoint => "a PowerPoint presentation",
            Self::OpenText => "an OpenDocument text",
            Self::OpenSpreadsheet => "an OpenDocument spreadsheet",
            Self::OpenPresentation => "an OpenDocument presentation",
            Self::Notebook => "a Jupyter notebook",
            Self::Compound => "an Office document",
        }
    }
}

impl From<XmlError> for DocumentError {
    fn from(error: XmlError) -> Self {
        match error {
            XmlError::Cancelled => Self::Cancelled,
            XmlError::TooLarge(reason) => Self::TooLarge(reason),
            XmlError::Invalid(reason) => Self::Damaged(reason),
            XmlError::Enough => Self::Damaged("it was left too early".to_owned()),
        }
    }
}

fn holds_utf16(bytes: &[u8], text: &str) -> bool {
    let wanted: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests;
