//! Extracts the text of documents: PDF, office files, and notebooks, with one module per format.
//!
//! Office files are ZIP archives of XML. They are read in this process, within limits that hold
//! whatever sizes the archive declares. PDF files are read by a child process (see `pdf`), because
//! the PDF library can crash, hang, and exhaust memory; a program that registers [`FormatReaders`]
//! calls [`read_pdf_entry`] at the beginning of its `main`.
//!
//! This crate writes nothing but a temporary file, and contains no tools and no text for the model
//! except the document's.
//!
//! Invariant: the extracted text has at most 16 MiB, and no control characters except line breaks
//! and tabs.
//!
//! Start with [`FormatReaders`] (the reader), `flow` (builds the text), and `pdf` (the child
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

/// The maximum size of the text that is extracted from one document, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// The maximum number of refused files whose errors are cached.
const MAX_REFUSED: usize = 256;

/// Reads the text of documents in all supported formats.
pub struct FormatReaders {
    supervisor: Arc<Supervisor>,
    /// The errors of refused files, by content hash. They are cached because refusing a file may
    /// take up to a minute.
    refused: Mutex<HashMap<ContentHash, DocumentError>>,
}

impl FormatReaders {
    /// Creates readers that read PDF files in child processes under `supervisor`. A child process
    /// runs this program again.
    pub fn new(supervisor: Arc<Supervisor>) -> Self {
        Self {
            supervisor,
            refused: Mutex::default(),
        }
    }
}

impl DocumentReader for FormatReaders {
    fn detect_format(&self, path: &Path, bytes: &[u8]) -> Option<DocumentFormat> {
        Format::detect(path, bytes).map(|format| DocumentFormat {
            id: format.id(),
            name: format.name(),
        })
    }

    fn is_likely_document(&self, path: &Path) -> bool {
        let known = ["pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "ipynb"];
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| known.contains(&extension.to_ascii_lowercase().as_str()))
    }

    fn read_text(&self, source: &DocumentSource<'_>) -> Result<DocumentText, DocumentError> {
        let hash = ContentHash::from_content(source.bytes);
        let refused = || self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = refused().get(&hash) {
            return Err(error.clone());
        }
        let read = self.read_uncached(source);
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
    fn read_uncached(&self, source: &DocumentSource<'_>) -> Result<DocumentText, DocumentError> {
        let stop = || source.cancel.is_cancelled();
        let open = || DocumentArchive::open(source.bytes);
        let Some(format) = Format::detect(source.path, source.bytes) else {
            return Err(DocumentError::Damaged(
                "it is no document that is understood here".to_owned(),
            ));
        };
        match format {
            Format::Pdf => pdf::read_pdf(&self.supervisor, source),
            Format::Word => {
                open().and_then(|mut archive| ooxml::word::read_document(&mut archive, &stop))
            }
            Format::Excel => {
                open().and_then(|mut archive| ooxml::excel::read_workbook(&mut archive, &stop))
            }
            Format::PowerPoint => open()
                .and_then(|mut archive| ooxml::powerpoint::read_presentation(&mut archive, &stop)),
            Format::OpenText | Format::OpenSpreadsheet | Format::OpenPresentation => {
                open().and_then(|mut archive| odf::read_document(&mut archive, format, &stop))
            }
            Format::Notebook => notebook::read_notebook(source.bytes),
            // A password-protected document in a modern format is a compound file that contains a
            // stream of this name.
            Format::Compound if contains_utf16(source.bytes, "EncryptedPackage") => {
                Err(DocumentError::Encrypted)
            }
            Format::Compound => Err(DocumentError::Legacy),
        }
    }
}

/// A document format that can be detected.
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
    /// A compound file: a Word, Excel, or PowerPoint file before 2007, or a newer file with a
    /// password.
    Compound,
}

impl Format {
    /// Detects the format of a file by its content and, if the content is ambiguous, by its
    /// extension. Returns `None` if the file is not a document.
    fn detect(path: &Path, bytes: &[u8]) -> Option<Self> {
        let extension = path
            .extension()
            .and_then(|extension| extension.to_str())
            .map(str::to_ascii_lowercase);
        if bytes.starts_with(b"%PDF-") {
            Some(Self::Pdf)
        } else if bytes.starts_with(b"PK\x03\x04") {
            DocumentArchive::open(bytes).ok().and_then(|mut archive| {
                ooxml::detect_format(&mut archive).or_else(|| odf::detect_format(&mut archive))
            })
        } else if bytes.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1") {
            let office = [
                "doc", "xls", "ppt", "docx", "xlsx", "pptx", "docm", "xlsm", "pptm",
            ];
            extension
                .is_some_and(|extension| office.contains(&extension.as_str()))
                .then_some(Self::Compound)
        } else {
            (extension.as_deref() == Some("ipynb") && notebook::is_notebook(bytes))
                .then_some(Self::Notebook)
        }
    }

    /// Returns the identifier of the format, which never changes.
    fn id(self) -> &'static str {
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

    /// Returns the name of the format for users, including an article.
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
            XmlError::Cancelled => Self::Canceled,
            XmlError::TooLarge(reason) => Self::TooLarge(reason),
            XmlError::Invalid(reason) => Self::Damaged(reason),
            XmlError::Enough => Self::Damaged("it was left too early".to_owned()),
        }
    }
}

fn contains_utf16(bytes: &[u8], text: &str) -> bool {
    let wanted: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests;
