//! Taking back what calls changed.

use std::path::PathBuf;

use super::PortError;
use crate::FileState;

/// Which changes are to be taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoTarget {
    /// Those of the last call that has any left.
    Last,
    /// Those of the call with this id.
    Call(String),
    /// The last one of this file, given by its resolved path.
    File(PathBuf),
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UndoReport {
    /// The tools whose calls were taken back.
    pub tools: Vec<String>,
    /// Every file of theirs, in order of the paths.
    pub files: Vec<UndoneFile>,
}

/// What became of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoneFile {
    /// Its absolute path.
    pub path: PathBuf,
    /// What was done.
    pub outcome: UndoOutcome,
    /// What that changed, as a unified diff; empty when nothing did or it is not text.
    pub diff: String,
    /// How it looks now, if it is a file.
    pub state: Option<FileState>,
}

/// What was done with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoOutcome {
    /// It holds again what it held before.
    Restored,
    /// It had been deleted and is there again.
    Recreated,
    /// It had been created and is gone again.
    Removed,
    /// It already was as it had been.
    Unchanged,
    /// It was left as it is, for this reason.
    Left(String),
}

/// Takes back what calls of this conversation changed.
pub trait ChangeUndo: Send + Sync {
    /// Takes changes back on behalf of `call`. Only what haft changed is touched; a file somebody
    /// else changed since is left as it is. Blocks on the disk; call it from a thread that may.
    fn undo(&self, call: &str, target: &UndoTarget) -> Result<UndoReport, PortError>;
}
