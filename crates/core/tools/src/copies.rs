//! Copies of the project in which sub-agents work, a port: what makes and merges them is
//! registered.

use std::path::Path;
use std::time::SystemTime;

use haft_tool::{FileChange, FileHistory, Workspace};
use haft_types::{ConversationId, Outcome};

use crate::Running;

/// What a copy is made for.
pub struct CopyRequest<'a> {
    /// The conversation that works in it; it has one copy, which stays until nothing in it would
    /// be lost.
    pub conversation: &'a ConversationId,
    /// The folders of the session that starts it.
    pub workspace: &'a Workspace,
    /// Whether what the project says may be obeyed.
    pub trusted: bool,
    /// The folder of all copies.
    pub folder: &'a Path,
    /// The environment of child processes.
    pub environment: &'a [(String, String)],
    /// How the session that starts it runs programs.
    pub running: &'a Running,
    /// The time: copies nobody came back to for long are removed.
    pub now: SystemTime,
}

/// Makes copies of projects. Everything here blocks on the disk.
pub trait ProjectCopies: Send + Sync {
    /// The copy of a conversation: the one it had before, or a new one. Otherwise why there is
    /// none.
    fn open(&self, request: &CopyRequest<'_>) -> Result<Box<dyn ProjectCopy>, String>;
}

/// A copy of the project.
pub trait ProjectCopy: Send + Sync {
    /// The folders of somebody who works in it: those of the project, but for the project itself.
    fn workspace(&self, of: &Workspace) -> Workspace;

    /// What became of copies that nobody came back to, where that is more than nothing: a sentence
    /// for each.
    fn swept(&self) -> &[String] {
        &[]
    }

    /// Merges what was changed, if whoever worked in it is done, noted as the doing of `call`, and
    /// removes the copy if nothing of it would be lost.
    fn settle(&self, outcome: Outcome, history: &dyn FileHistory, call: &str) -> MergeReport;
}

/// What became of a copy.
#[derive(Default)]
pub struct MergeReport {
    /// For the model; empty where there was no copy.
    pub text: String,
    /// What was changed in the project.
    pub changes: Vec<FileChange>,
    /// Whether nothing was merged because the project cannot take it.
    pub conflict: bool,
}
