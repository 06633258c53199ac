//! What an editor offers to calls: what its user has open and has not saved, and terminals of its
//! own.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use haft_types::Envelope;

use crate::ToolContext;

/// The open files of an editor, and its terminals.
#[async_trait]
pub trait EditorBuffers: Send + Sync {
    /// The text of a file as the editor has it; none where that is no other than on disk, as far as
    /// the editor says. It may block.
    fn unsaved(&self, path: &Path) -> Option<String>;

    /// Runs a command line at a terminal of the editor and gives what the model reads of it; none
    /// where it has no terminals. Nothing confines it there: only what would run unconfined
    /// here may be given.
    async fn run(
        &self,
        context: &ToolContext,
        line: &str,
        cwd: &Path,
        timeout: Duration,
    ) -> Option<Envelope>;
}
