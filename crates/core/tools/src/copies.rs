//! The port through which sub-agents get copies of the project to work in. An extension creates and
//! merges the copies.

use std::path::Path;
use std::time::SystemTime;

use haft_tool::{FileChange, FileHistory, Workspace};
use haft_types::{ConversationId, Outcome};

use crate::Running;

/// The parameters for opening a copy of the project.
pub struct CopyRequest<'a> {
    /// The conversation that works in the copy. Each conversation has at most one copy, which is
    /// kept until it can be removed without losing changes.
    pub conversation: &'a ConversationId,
    /// The folders of the session that starts the sub-agent.
    pub workspace: &'a Workspace,
    /// True if the project is trusted, so that its configuration may take effect.
    pub trusted: bool,
    /// The folder that contains the copies of all conversations.
    pub folder: &'a Path,
    /// The environment variables of child processes.
    pub environment: &'a [(String, String)],
    /// The running processes and the sandbox of the session that starts the sub-agent.
    pub running: &'a Running,
    /// The current time. Copies that have not been used for a long time are removed.
    pub now: SystemTime,
}

/// Creates copies of projects. All methods block on the disk.
pub trait ProjectCopies: Send + Sync {
    /// Opens the existing copy of a conversation, or creates one. The error is the reason why the
    /// copy could not be opened.
    fn open_copy(&self, request: &CopyRequest<'_>) -> Result<Box<dyn ProjectCopy>, String>;
}

/// A copy of the project in which a sub-agent works.
pub trait ProjectCopy: Send + Sync {
    /// Returns the workspace of an agent that works in the copy: like the workspace `of`, but with
    /// the copy in place of the project.
    fn workspace(&self, of: &Workspace) -> Workspace;

    /// Returns a sentence for each unused copy that was removed while it had unmerged changes,
    /// which are saved as a patch.
    fn cleanup_notes(&self) -> &[String] {
        &[]
    }

    /// Merges the changes into the project if `outcome` allows it, records them under `call` in the
    /// file history, and removes the copy unless changes would be lost.
    fn merge_and_remove(
        &self,
        outcome: Outcome,
        history: &dyn FileHistory,
        call: &str,
    ) -> MergeReport;
}

/// The result of merging a copy into the project.
#[derive(Default)]
pub struct MergeReport {
    /// A report for the model; empty if no copy existed.
    pub text: String,
    /// The changes to the project's files.
    pub changes: Vec<FileChange>,
    /// True if nothing was merged because the changes conflict with the project.
    pub conflict: bool,
}
