//! The services of an editor: the text of unsaved files, and terminals.

use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use haft_types::Envelope;

use crate::ToolContext;

/// The unsaved files and the terminals of an editor.
#[async_trait]
pub trait EditorBuffers: Send + Sync {
    /// Returns the unsaved text of a file in the editor. Returns `None` if the editor reports no
    /// difference from the file on disk. May block.
    fn unsaved_text(&self, path: &Path) -> Option<String>;

    /// Runs a command line in a terminal of the editor and returns the result for the model.
    /// Returns `None` if the editor has no terminals. The terminal is not sandboxed, so pass only
    /// commands that may run unconfined.
    async fn run_in_terminal(
        &self,
        context: &ToolContext,
        line: &str,
        cwd: &Path,
        timeout: Duration,
    ) -> Option<Envelope>;
}
