//! Undo of the changes that calls made in files.

use std::path::PathBuf;

use super::PortError;
use crate::FileState;

/// Selects the changes that an undo reverts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoTarget {
    /// The changes of the last call that can still be undone are undone.
    Last,
    /// The changes of the call with this id are undone.
    Call(String),
    /// The last change of this file is undone. The path is resolved.
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
    /// The absolute path of the file.
    pub path: PathBuf,
    pub outcome: UndoOutcome,
    /// The difference that the undo made, as a unified diff; empty if there is none or the file is
    /// not text.
    pub diff: String,
    /// The state of the file after the undo; `None` if the file does not exist.
    pub state: Option<FileState>,
}

/// The effect of an undo on a file.
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
    /// The file was skipped, for this reason.
    Skipped(String),
}

/// Undoes changes that calls of this conversation made in files.
pub trait ChangeUndo: Send + Sync {
    /// Undoes the changes of `target` on behalf of `call`. Only changes by haft are undone; a file
    /// that another program has changed since is skipped. Blocks on disk access, so call it from a
    /// blocking thread.
    fn undo(&self, call: &str, target: &UndoTarget) -> Result<UndoReport, PortError>;
}
