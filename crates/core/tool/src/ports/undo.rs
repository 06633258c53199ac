//! Undo of the changes that calls made in files.

use std::path::PathBuf;

use super::PortError;
use crate::FileState;

/// The changes to undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoTarget {
    /// The changes of the last call that can still be undone.
    Last,
    /// The changes of the call with this id.
    Call(String),
    /// The last change of this file, given by its resolved path.
    File(PathBuf),
}

/// The outcome of an undo.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoReport {
    /// The tools whose calls were undone.
    pub tools: Vec<String>,
    /// The files that the undone calls changed, sorted by path.
    pub files: Vec<UndoneFile>,
}

/// The outcome of an undo for one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoneFile {
    /// The absolute path.
    pub path: PathBuf,
    pub outcome: UndoOutcome,
    /// The change as a unified diff; empty if there is none or the file is not text.
    pub diff: String,
    /// The state of the file after the undo; `None` if the file does not exist.
    pub state: Option<FileState>,
}

/// The action that an undo took for a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoOutcome {
    /// The previous content was written back.
    Restored,
    /// The deleted file was created again.
    Recreated,
    /// The file, which the call had created, was deleted.
    Removed,
    /// The file already had its previous content.
    Unchanged,
    /// The file was skipped for the contained reason.
    Skipped(String),
}

/// Undoes changes that calls of this conversation made in files.
pub trait ChangeUndo: Send + Sync {
    /// Undoes changes on behalf of `call`. Only haft's own changes are undone; a file that another
    /// program has changed since is skipped. Blocks on disk access; call it from a blocking thread.
    fn undo(&self, call: &str, target: &UndoTarget) -> Result<UndoReport, PortError>;
}
