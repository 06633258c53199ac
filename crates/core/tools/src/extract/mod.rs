//! The text of documents that are not text files: one module a format.
//!
//! Office files are archives of XML and are read here, within limits that hold whatever the archive says of itself. PDF files
//! are read by a child process (see `pdf`), because the library for them can crash, hang and eat memory. What comes out is for
//! reading: nothing of it can be written back, so a document that was read counts as not read when it comes to writing.
//!
//! Invariant: at most [`MAX_TEXT`] bytes come out, without control characters but line breaks and tabs.

mod archive;
mod flow;
mod grid;
mod notebook;
mod odf;
mod ooxml;
pub(crate) mod pdf;
mod xml;

use std::path::Path;

use haft_sandbox::Supervisor;

use crate::failure::Coded;
use crate::files::disk::MAX_LOADED;
use crate::scope::Scope;

use archive::Archive;
use xml::XmlError;

/// The most text, in bytes, that is taken out of a document.
const MAX_TEXT: usize = 16 * 1024 * 1024;

/// What kind of document a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Pdf,
    Word,
    Excel,
    PowerPoint,
    OpenText,
    OpenSpreadsheet,
    OpenPresentation,
    Notebook,
    /// Word, Excel or PowerPoint before 2007, or one of today with a password: both are compound files.
    Compound,
}

impl Format {
    /// What a file is by its content, and where that does not tell, by its name; `None` if it is no document.
    pub(crate) fn of(path: &Path, bytes: &[u8]) -> Option<Self> {
        let extension = path.extension().and_then(|extension| extension.to_str()).map(str::to_ascii_lowercase);
        if bytes.starts_with(b"%PDF-") {
            Some(Self::Pdf)
        } else if bytes.starts_with(b"PK\x03\x04") {
            Archive::open(bytes)
                .ok()
                .and_then(|mut archive| ooxml::format(&mut archive).or_else(|| odf::format(&mut archive)))
        } else if bytes.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1") {
            let office = ["doc", "xls", "ppt", "docx", "xlsx", "pptx", "docm", "xlsm", "pptm"];
            extension.is_some_and(|extension| office.contains(&extension.as_str())).then_some(Self::Compound)
        } else {
            (extension.as_deref() == Some("ipynb") && notebook::looks_like_one(bytes)).then_some(Self::Notebook)
        }
    }

    /// Whether a file of this name is probably a document, for files too large to look into.
    pub(crate) fn is_likely(path: &Path) -> bool {
        let known = ["pdf", "docx", "xlsx", "pptx", "odt", "ods", "odp", "ipynb"];
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| known.contains(&extension.to_ascii_lowercase().as_str()))
    }

    /// Its name for programs.
    pub(crate) fn word(self) -> &'static str {
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
    pub(crate) fn name(self) -> &'static str {
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

/// The text of a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Extracted {
    pub(crate) text: String,
    /// Whether there was more than [`MAX_TEXT`].
    pub(crate) cut: bool,
}

/// Why a document gave no text. `name` is the path as the model may write it, `kind` says what it is.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExtractError {
    #[error("`{name}` is {kind} with a password; ask the user for a copy without one")]
    Encrypted { name: String, kind: &'static str },
    #[error(
        "`{name}` is in the old Office format, which is not read here; convert it first, for example with `soffice --headless --convert-to docx`"
    )]
    Legacy { name: String },
    #[error("`{name}` is {kind} but cannot be read: {reason}")]
    Damaged { name: String, kind: &'static str, reason: String },
    #[error("`{name}` is {kind} that unpacks to too much: {reason}; it was not read")]
    TooLarge { name: String, kind: &'static str, reason: String },
    #[error("`{name}` has {size} bytes; documents of at most {MAX_LOADED} bytes are read")]
    TooLargeFile { name: String, size: u64 },
    #[error("reading `{name}` was cancelled")]
    Cancelled { name: String },
}

impl Coded for ExtractError {
    fn code(&self) -> &'static str {
        match self {
            Self::Encrypted { .. } => "encrypted",
            Self::Legacy { .. } => "unknown_format",
            Self::Damaged { .. } => "damaged_document",
            Self::TooLarge { .. } | Self::TooLargeFile { .. } => "too_large",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

/// Why a part of a document could not be read, before it is known which document.
#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("it has a password")]
    Encrypted,
    #[error("{0}")]
    Damaged(String),
    #[error("{0}")]
    TooLarge(String),
    #[error("cancelled")]
    Cancelled,
}

impl Problem {
    fn of(self, name: &str, format: Format) -> ExtractError {
        let (name, kind) = (name.to_owned(), format.name());
        match self {
            Self::Encrypted => ExtractError::Encrypted { name, kind },
            Self::Damaged(reason) => ExtractError::Damaged { name, kind, reason },
            Self::TooLarge(reason) => ExtractError::TooLarge { name, kind, reason },
            Self::Cancelled => ExtractError::Cancelled { name },
        }
    }
}

impl From<XmlError> for Problem {
    fn from(error: XmlError) -> Self {
        match error {
            XmlError::Cancelled => Self::Cancelled,
            XmlError::TooLarge(reason) => Self::TooLarge(reason),
            XmlError::Invalid(reason) => Self::Damaged(reason),
            XmlError::Enough => Self::Damaged("it was left too early".to_owned()),
        }
    }
}

/// The document a file is, where it is.
pub(crate) struct Source<'a> {
    /// Its resolved path.
    pub(crate) path: &'a Path,
    /// The path as the model may write it.
    pub(crate) name: &'a str,
    /// All of it.
    pub(crate) bytes: &'a [u8],
}

/// The text of a document. Blocks; to be called from a thread that may, within a runtime.
pub(crate) fn extract(
    scope: &Scope,
    supervisor: &Supervisor,
    source: &Source<'_>,
    format: Format,
) -> Result<Extracted, ExtractError> {
    let stop = || scope.cancel.is_cancelled();
    let open = || Archive::open(source.bytes);
    let result = match format {
        Format::Pdf => pdf::text(scope, supervisor, source.path),
        Format::Word => open().and_then(|mut archive| ooxml::word::text(&mut archive, &stop)),
        Format::Excel => open().and_then(|mut archive| ooxml::excel::text(&mut archive, &stop)),
        Format::PowerPoint => open().and_then(|mut archive| ooxml::powerpoint::text(&mut archive, &stop)),
        Format::OpenText | Format::OpenSpreadsheet | Format::OpenPresentation => {
            open().and_then(|mut archive| odf::text(&mut archive, format, &stop))
        }
        Format::Notebook => notebook::text(source.bytes),
        // A modern document with a password is a compound file that holds a stream of this name.
        Format::Compound if holds_utf16(source.bytes, "EncryptedPackage") => Err(Problem::Encrypted),
        Format::Compound => return Err(ExtractError::Legacy { name: source.name.to_owned() }),
    };
    result.map_err(|problem| problem.of(source.name, format))
}

/// A file that is too large to be looked into, by its size.
pub(crate) fn too_large(name: &str, size: u64) -> ExtractError {
    ExtractError::TooLargeFile { name: name.to_owned(), size }
}

fn holds_utf16(bytes: &[u8], text: &str) -> bool {
    let wanted: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests;
