//! Text extraction from documents that are not text files, such as PDF.

use std::path::Path;

use tokio_util::sync::CancellationToken;

/// Extracts the text of documents. The text can be read but not written back.
///
/// The input may be malicious, so an implementation must bound its work regardless of the sizes
/// that a file declares.
pub trait DocumentReader: Send + Sync {
    /// Detects the format of a document from its content, or from its name if the content is
    /// inconclusive. Returns `None` if the file is not a document.
    fn detect_format(&self, path: &Path, bytes: &[u8]) -> Option<DocumentFormat>;

    /// True if the name of a file suggests a document. Used for files that are too large to
    /// inspect.
    fn is_likely_document(&self, path: &Path) -> bool;

    /// Returns the text of a document, without control characters other than line breaks and tabs.
    /// This blocks, so call it from a blocking thread within a runtime.
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
    /// The path of the document, with symbolic links resolved.
    pub path: &'a Path,
    /// The whole content of the file.
    pub bytes: &'a [u8],
    /// A private folder in which temporary files may be created.
    pub spill: &'a Path,
    /// The token that fires when the text is no longer needed.
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
    /// The document is in an Office format from before 2007.
    #[error("it is in the old Office format")]
    Legacy,
    /// The content does not conform to the format.
    #[error("{0}")]
    Damaged(String),
    /// The document unpacks to more than the size limit, or takes too long.
    #[error("{0}")]
    TooLarge(String),
    /// The document cannot be read at the moment, regardless of its content.
    #[error("{0}")]
    Unavailable(String),
    /// The extraction was canceled because the text is no longer needed.
    #[error("cancelled")]
    Canceled,
}
