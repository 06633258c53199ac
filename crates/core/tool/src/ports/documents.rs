//! The text of documents that are no text files, such as PDF.

use std::path::Path;

use tokio_util::sync::CancellationToken;

/// Takes the text out of documents.
///
/// What comes out is for reading: nothing of it can be written back. Both methods are given whole
/// files that somebody else may have made to hurt, so an implementation bounds its work whatever a
/// file says of itself.
pub trait DocumentReader: Send + Sync {
    /// What kind of document a file is by its content, and where that does not tell, by its name;
    /// none if it is no document.
    fn format(&self, path: &Path, bytes: &[u8]) -> Option<DocumentFormat>;

    /// Whether a file of this name is probably a document, for files too large to look into.
    fn is_likely(&self, path: &Path) -> bool;

    /// The text of a document, without control characters but line breaks and tabs. Blocks; to be
    /// called from a thread that may, within a runtime.
    fn read(&self, source: &DocumentSource<'_>) -> Result<DocumentText, DocumentError>;
}

/// What kind of document a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DocumentFormat {
    /// Its name for programs, such as `pdf`.
    pub id: &'static str,
    /// Its name for people, with its article, such as `a PDF document`.
    pub name: &'static str,
}

/// A document that is to be read.
pub struct DocumentSource<'a> {
    /// Its resolved path.
    pub path: &'a Path,
    /// All of it.
    pub bytes: &'a [u8],
    /// A private folder for what has to be put down meanwhile.
    pub spill: &'a Path,
    /// Fires when nobody waits for the text any more.
    pub cancel: &'a CancellationToken,
}

/// The text of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentText {
    /// The text, as a person reads it.
    pub text: String,
    /// Whether the document holds more than was taken out of it.
    pub cut: bool,
}

/// Why a document gave no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// It is read with a password only.
    #[error("it has a password")]
    Encrypted,
    /// It is in the Office format from before 2007.
    #[error("it is in the old Office format")]
    Legacy,
    /// It does not hold what its format says.
    #[error("{0}")]
    Damaged(String),
    /// It unpacks to more than is taken out of a document, or takes too long.
    #[error("{0}")]
    TooLarge(String),
    /// It cannot be read at the moment, whatever it holds.
    #[error("{0}")]
    Unavailable(String),
    /// Nobody waits for it any more.
    #[error("cancelled")]
    Cancelled,
}
