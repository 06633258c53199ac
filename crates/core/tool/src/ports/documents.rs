//! Text extraction from documents that are not text files, such as PDF.

use std::path::Path;

use tokio_util::sync::CancellationToken;

/// Extracts the text of documents. The text is only for reading and cannot be written back.
///
/// The input may be malicious, so an implementation must bound its work regardless of the sizes
/// that a file declares.
pub trait DocumentReader: Send + Sync {
    /// Detects the format of a document by its content, or by its name if the content is
    /// inconclusive. Returns `None` if the file is not a document.
    fn detect_format(&self, path: &Path, bytes: &[u8]) -> Option<DocumentFormat>;

    /// True if the name of a file suggests a document. Used for files that are too large to
    /// inspect.
    fn is_likely_document(&self, path: &Path) -> bool;

    /// Returns the text of a document, without control characters except line breaks and tabs.
    /// Blocks: call it from a blocking thread within a runtime.
    fn read_text(&self, source: &DocumentSource<'_>) -> Result<DocumentText, DocumentError>;
}

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentFormat {
    /// The name for programs, such as `pdf`.
    pub id: &'static str,
    /// The name for people, with its article, such as `a PDF document`.
    pub name: &'static str,
}

/// A document to read.
pub struct DocumentSource<'a> {
    /// The resolved path.
    pub path: &'a Path,
    /// The whole content of the file.
    pub bytes: &'a [u8],
    /// A private folder for temporary files.
    pub spill: &'a Path,
    /// Fires when the text is no longer needed.
    pub cancel: &'a CancellationToken,
}

/// The text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentText {
    pub text: String,
    /// True if the document contains more text than was extracted.
    pub truncated: bool,
}

/// The reason why a document could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// The document requires a password.
    #[error("it has a password")]
    Encrypted,
    /// The document is in the Office format from before 2007.
    #[error("it is in the old Office format")]
    Legacy,
    /// The content is invalid for the format.
    #[error("{0}")]
    Damaged(String),
    /// The document unpacks to more than the limit, or takes too long.
    #[error("{0}")]
    TooLarge(String),
    /// The document cannot be read at the moment, regardless of its content.
    #[error("{0}")]
    Unavailable(String),
    /// The text is no longer needed.
    #[error("cancelled")]
    Canceled,
}
