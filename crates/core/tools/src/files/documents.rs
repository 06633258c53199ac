//! Documents that are no text files, as tools meet them: whoever reads them is behind the port
//! [`DocumentReader`](haft_tool::DocumentReader), and what is said of them is said here.
//!
//! A document that was read counts as not read when it comes to writing: what was shown is not what
//! is in the file.

#[cfg(test)]
mod tests;

use std::path::Path;

use haft_tool::{DocumentError, DocumentFormat, DocumentSource, DocumentText};

use crate::failure::Coded;
use crate::files::disk::MAX_LOADED;
use crate::scope::FileScope;

/// Why a document gave no text. `name` is the path as the model may write it, `kind` says what it
/// is.
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

/// A document, where it is.
pub(crate) struct DocumentFile<'a> {
    /// Its resolved path.
    pub(crate) path: &'a Path,
    /// The path as the model may write it.
    pub(crate) name: &'a str,
    /// All of it.
    pub(crate) bytes: &'a [u8],
    /// What it is.
    pub(crate) format: DocumentFormat,
}

/// What kind of document a file is; none if it is no document, or nobody here reads documents.
pub(crate) fn format_of(scope: &FileScope, path: &Path, bytes: &[u8]) -> Option<DocumentFormat> {
    scope.documents.as_ref()?.format(path, bytes)
}

/// Checks that a file, known by its name and size alone, is no document too large to be read.
pub(crate) fn check_size(
    scope: &FileScope,
    path: &Path,
    name: &str,
    size: u64,
) -> Result<(), ExtractError> {
    match &scope.documents {
        Some(reader) if reader.is_likely(path) => Err(too_large(name, size)),
        Some(_) | None => Ok(()),
    }
}

/// A file that is too large to be looked into, by its size.
pub(crate) fn too_large(name: &str, size: u64) -> ExtractError {
    ExtractError::TooLargeFile {
        name: name.to_owned(),
        size,
    }
}

/// Checks that a file is not one that only a reader of documents could read, where there is none. A
/// notebook is text, too.
pub(crate) fn check_reader(
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

/// The text of a document. Blocks; to be called from a thread that may, within a runtime.
pub(crate) fn extract(
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
    reader.read(&source).map_err(|error| match error {
        DocumentError::Encrypted => ExtractError::Encrypted { name, kind },
        DocumentError::Legacy => ExtractError::Legacy { name },
        DocumentError::Damaged(reason) | DocumentError::Unavailable(reason) => {
            ExtractError::Damaged { name, kind, reason }
        }
        DocumentError::TooLarge(reason) => ExtractError::TooLarge { name, kind, reason },
        DocumentError::Cancelled => ExtractError::Cancelled { name },
    })
}
