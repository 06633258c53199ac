//! Extracts text from documents such as PDF files. The port
//! [`DocumentReader`](haft_tool::DocumentReader) reads the documents, and this module formulates
//! the errors for the model.
//!
//! Reading a document does not permit overwriting it, because the extracted text is not the content
//! of the file.

#[cfg(test)]
mod tests;

use std::path::Path;

use haft_tool::{DocumentError, DocumentFormat, DocumentSource, DocumentText};

use crate::failure::Coded;
use crate::files::disk::MAX_LOADED;
use crate::scope::FileScope;

/// An error while extracting a document's text. `name` is the path as the model may write it, and
/// `kind` is the format with its article, such as `a PDF document`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExtractError {
    #[error("`{name}` is {kind} with a password; ask the user for a copy without one")]
    Encrypted { name: String, kind: &'static str },
    #[error(
        "`{name}` is in the old Office format, which is not read here; convert it first, for example with `soffice --headless --convert-to docx`"
    )]
    Legacy { name: String },
    #[error("`{name}` is {kind} but cannot be read: {reason}")]
    Damaged {
        name: String,
        kind: &'static str,
        reason: String,
    },
    #[error("`{name}` is {kind} that unpacks to too much: {reason}; it was not read")]
    TooLarge {
        name: String,
        kind: &'static str,
        reason: String,
    },
    #[error("`{name}` has {size} bytes; documents of at most {MAX_LOADED} bytes are read")]
    TooLargeFile { name: String, size: u64 },
    #[error("reading `{name}` was cancelled")]
    Cancelled { name: String },
    #[error(
        "`{name}` is {kind}, and this build of haft reads no documents; use a program that reads it"
    )]
    NoReader { name: String, kind: &'static str },
}

impl Coded for ExtractError {
    fn code(&self) -> &'static str {
        match self {
            Self::Encrypted { .. } => "encrypted",
            Self::Legacy { .. } | Self::NoReader { .. } => "unknown_format",
            Self::Damaged { .. } => "damaged_document",
            Self::TooLarge { .. } | Self::TooLargeFile { .. } => "too_large",
            Self::Cancelled { .. } => "cancelled",
        }
    }
}

/// The content of a document, with its path and format.
pub(crate) struct DocumentFile<'a> {
    pub(crate) path: &'a Path,
    /// The path as the model may write it.
    pub(crate) name: &'a str,
    /// The whole content of the file.
    pub(crate) bytes: &'a [u8],
    pub(crate) format: DocumentFormat,
}

/// Returns the format of a document, or `None` if the file is not a document or no reader is
/// registered.
pub(crate) fn detect_format(
    scope: &FileScope,
    path: &Path,
    bytes: &[u8],
) -> Option<DocumentFormat> {
    scope.documents.as_ref()?.detect_format(path, bytes)
}

/// Rejects a file that is too large to load if its name suggests a document.
pub(crate) fn reject_large_document(
    scope: &FileScope,
    path: &Path,
    name: &str,
    size: u64,
) -> Result<(), ExtractError> {
    match &scope.documents {
        Some(reader) if reader.is_likely_document(path) => Err(too_large_error(name, size)),
        Some(_) | None => Ok(()),
    }
}

/// Returns the error for a document that is too large to load.
pub(crate) fn too_large_error(name: &str, size: u64) -> ExtractError {
    ExtractError::TooLargeFile {
        name: name.to_owned(),
        size,
    }
}

/// Rejects a PDF or Office document if no document reader is registered. Notebooks are accepted
/// because they are also plain text.
pub(crate) fn reject_unreadable_document(
    scope: &FileScope,
    path: &Path,
    name: &str,
    bytes: &[u8],
) -> Result<(), ExtractError> {
    if scope.documents.is_some() {
        return Ok(());
    }
    let office = [
        "doc", "xls", "ppt", "docx", "xlsx", "pptx", "docm", "xlsm", "pptm", "odt", "ods", "odp",
    ];
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .map(str::to_ascii_lowercase);
    let is_office = extension.is_some_and(|extension| office.contains(&extension.as_str()));
    let packed =
        bytes.starts_with(b"PK\x03\x04") || bytes.starts_with(b"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1");
    let kind = match bytes {
        [b'%', b'P', b'D', b'F', b'-', ..] => "a PDF document",
        _ if packed && is_office => "an Office document",
        _ => return Ok(()),
    };
    Err(ExtractError::NoReader {
        name: name.to_owned(),
        kind,
    })
}

/// Returns the text of a document. Blocks: call this function on a thread that may block, within an
/// async runtime.
pub(crate) fn extract_text(
    scope: &FileScope,
    document: &DocumentFile<'_>,
) -> Result<DocumentText, ExtractError> {
    let DocumentFile {
        path,
        name,
        bytes,
        format,
    } = *document;
    let name = name.to_owned();
    let kind = format.name;
    let Some(reader) = &scope.documents else {
        return Err(ExtractError::NoReader { name, kind });
    };
    let source = DocumentSource {
        path,
        bytes,
        spill: &scope.workspace.spill,
        cancel: &scope.cancel,
    };
    reader.read_text(&source).map_err(|error| match error {
        DocumentError::Encrypted => ExtractError::Encrypted { name, kind },
        DocumentError::Legacy => ExtractError::Legacy { name },
        DocumentError::Damaged(reason) | DocumentError::Unavailable(reason) => {
            ExtractError::Damaged { name, kind, reason }
        }
        DocumentError::TooLarge(reason) => ExtractError::TooLarge { name, kind, reason },
        DocumentError::Canceled => ExtractError::Cancelled { name },
    })
}
