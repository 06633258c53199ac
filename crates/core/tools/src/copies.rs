//! The port to copies of the project, in which sub-agents work. An extension creates and merges the
//! copies.

use std::path::Path;
use std::time::SystemTime;

use haft_tool::{FileChange, FileHistory, Workspace};
use haft_types::{ConversationId, Outcome};

use crate::Running;

/// The parameters for opening a copy.
pub struct CopyRequest<'a> {
    /// The conversation that works in the copy. A conversation has one copy, which stays until
    /// removing it would lose nothing.
    pub conversation: &'a ConversationId,
    /// The folders of the session that starts the conversation.
    pub workspace: &'a Workspace,
    /// True if the project is trusted, so that its configuration may take effect.
    pub trusted: bool,
    /// The folder that holds all copies.
    pub folder: &'a Path,
    /// The environment of child processes.
    pub environment: &'a [(String, String)],
    /// The running processes and sandbox of the session that starts the conversation.
    pub running: &'a Running,
    /// The current time. Copies that have not been used for a long time are removed.
    pub now: SystemTime,
}

/// Creates copies of projects. All methods block on the disk.
pub trait ProjectCopies: Send + Sync {
    /// Opens the existing copy of a conversation, or creates one. An error says why there is no
    /// copy.
    fn open_copy(&self, request: &CopyRequest<'_>) -> Result<Box<dyn ProjectCopy>, String>;
}

/// A copy of the project.
pub trait ProjectCopy: Send + Sync {
    /// Returns the workspace of an agent that works in the copy: `of`, with the project replaced by
    /// the copy.
    fn workspace(&self, of: &Workspace) -> Workspace;

    /// Returns a sentence for each unused copy that was removed while it had unmerged changes,
    /// which are saved as a patch.
    fn cleanup_notes(&self) -> &[String] {
        &[]
    }

    /// Merges the changes if the agent that worked in the copy is done, records them under `call`
    /// in the file history, and removes the copy if that loses nothing.
    fn merge_and_remove(
        &self,
        outcome: Outcome,
        history: &dyn FileHistory,
        call: &str,
    ) -> MergeReport;
}

/// The result of merging a copy.
#[derive(Default)]
pub struct MergeReport {
    /// A report for the model; empty if there was no copy.
    pub text: String,
    /// The changes to the project's files.
    pub changes: Vec<FileChange>,
    /// True if nothing was merged because the changes conflict with the project.
    pub conflict: bool,
}
