//! The editor's own view of files: the model reads unsaved buffers, and changes are written through
//! to the editor.
//!
//! Before a call changes a file that has unsaved changes, haft saves them, which creates a version
//! that undo can restore. An editor opens files by path, so haft never makes it write one: a
//! command could let the path lead out of the project meanwhile. Editors load changed files again
//! by themselves. Commands that no sandbox confines run in the editor's terminals, if it has any
//! (`terminal.rs`).
//!
//! Invariant: a text of the editor counts only for a file whose path led to that file all the time
//! ([`SteadyFile`]).

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{FileSystemCapabilities, ReadTextFileRequest, SessionId};
use async_trait::async_trait;
use haft_agent::{CallObserver, EditorBuffers, ToolContext};
use haft_types::Envelope;
use serde_json::Value;
use tokio::runtime::Handle;

use crate::diffs;
use crate::steady_file::SteadyFile;
use crate::terminal::EditorTerminals;

/// The time limit for the editor's answer to a request that concerns a file.
const FILE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a file whose text is requested from the editor, in bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// Gives one session access to the editor's view of files, including changes that are not saved.
#[derive(Clone)]
pub(crate) struct EditorFiles {
    editor: ConnectionTo<Client>,
    session: SessionId,
    offered: FileSystemCapabilities,
    terminals: Option<EditorTerminals>,
    runtime: Handle,
}

impl EditorFiles {
    /// Creates a handle to the editor's files, or returns `None` if the editor offers neither files
    /// nor terminals.
    pub(crate) fn new(
        editor: ConnectionTo<Client>,
        session: SessionId,
        offered: FileSystemCapabilities,
        terminals: Option<EditorTerminals>,
    ) -> Option<Self> {
        let offers = offered.read_text_file || offered.write_text_file || terminals.is_some();
        offers.then(|| Self {
            editor,
            session,
            offered,
            terminals,
            runtime: Handle::current(),
        })
    }

    /// Returns the text that the editor has for a file, if it differs from the text on disk.
    async fn read_unsaved_text(&self, path: &Path) -> Option<UnsavedText> {
        if !self.offered.read_text_file {
            return None;
        }
        let file = SteadyFile::open(path).ok()?;
        if !file
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() <= MAX_FILE_BYTES)
        {
            return None;
        }
        let request = ReadTextFileRequest::new(self.session.clone(), file.path());
        let asked =
            tokio::time::timeout(FILE_TIMEOUT, self.editor.send_request(request).block_task())
                .await;
        // If the editor cannot answer, the text on disk counts.
        let text = asked.ok()?.ok()?.content;
        let on_disk = file.read().ok()?;
        let differs = on_disk != text.as_bytes();
        (differs && file.was_steady()).then_some(UnsavedText {
            file,
            on_disk,
            text,
        })
    }

    /// Saves the unsaved changes of a file.
    async fn save_file(&self, path: &Path, context: &ToolContext) -> Result<(), String> {
        let Some(unsaved) = self.read_unsaved_text(path).await else {
            return Ok(());
        };
        let shown = path.display();
        if !self.offered.write_text_file || !context.workspace.contains(&unsaved.file.path()) {
            return Err(format!(
                "`{shown}` has changes in the editor that are not saved; ask the user to save it"
            ));
        }
        let saved = unsaved
            .file
            .replace(&unsaved.on_disk, unsaved.text.as_bytes());
        saved.map_err(|why| {
            format!(
                "`{shown}` has changes in the editor, and they could not be saved: {why}; read it again"
            )
        })
    }
}

/// The text that the editor has for a file.
struct UnsavedText {
    file: SteadyFile,
    on_disk: Vec<u8>,
    text: String,
}

#[async_trait]
impl EditorBuffers for EditorFiles {
    fn unsaved_text(&self, path: &Path) -> Option<String> {
        let unsaved = self.runtime.block_on(self.read_unsaved_text(path))?;
        Some(unsaved.text)
    }

    async fn run_in_terminal(
        &self,
        context: &ToolContext,
        line: &str,
        cwd: &Path,
        timeout: Duration,
    ) -> Option<Envelope> {
        self.terminals
            .as_ref()?
            .run_command(context, line, cwd, timeout)
            .await
    }
}

#[async_trait]
impl CallObserver for EditorFiles {
    fn name(&self) -> &'static str {
        "editor"
    }

    async fn before(
        &self,
        tool: &str,
        context: &ToolContext,
        arguments: &Value,
    ) -> Result<(), String> {
        for file in diffs::list_files_to_write(tool, arguments) {
            let path: PathBuf = context.workspace.cwd.join(file);
            self.save_file(&path, context).await?;
        }
        Ok(())
    }
}
