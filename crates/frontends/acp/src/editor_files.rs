//! The editor's own view of files: the model reads unsaved buffers, and changes are written through
//! to the editor.
//!
//! Before a call changes a file that has unsaved changes, the editor saves them, which creates a
//! version that undo can restore. haft changes the file on disk itself and then sends the new text
//! to the editor. Commands that no sandbox confines run in the editor's terminals, if it has any
//! (`terminal.rs`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_client_protocol::Client;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    FileSystemCapabilities, ReadTextFileRequest, SessionId, WriteTextFileRequest,
};
use async_trait::async_trait;
use haft_agent::{CallObserver, EditorBuffers, ToolContext, ToolOutput};
use haft_types::{Envelope, ToolStatus};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::diffs;
use crate::terminal::EditorTerminals;

/// The time limit for the editor's answer to a request that concerns a file.
const FILE_TIMEOUT: Duration = Duration::from_secs(5);
/// The maximum size of a file whose text is requested from the editor or sent to it, in bytes.
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
    async fn read_unsaved_text(&self, path: &Path) -> Option<String> {
        if !self.offered.read_text_file
            || !std::fs::metadata(path).is_ok_and(|found| found.len() <= MAX_FILE_BYTES)
        {
            return None;
        }
        let request = ReadTextFileRequest::new(self.session.clone(), path);
        let asked =
            tokio::time::timeout(FILE_TIMEOUT, self.editor.send_request(request).block_task())
                .await;
        // If the editor cannot answer, the text on disk counts.
        let text = asked.ok()?.ok()?.content;
        (!file_has_text(path, &text)).then_some(text)
    }

    async fn write_file(&self, path: &Path, text: String) -> Result<(), String> {
        let request = WriteTextFileRequest::new(self.session.clone(), path, text);
        let asked =
            tokio::time::timeout(FILE_TIMEOUT, self.editor.send_request(request).block_task())
                .await;
        match asked {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!(
                "it did not answer within {} s",
                FILE_TIMEOUT.as_secs()
            )),
        }
    }

    /// Makes the editor save a file that has unsaved changes.
    async fn save_file(&self, path: &Path) -> Result<(), String> {
        let Some(text) = self.read_unsaved_text(path).await else {
            return Ok(());
        };
        let shown = path.display();
        if !self.offered.write_text_file {
            return Err(format!(
                "`{shown}` has changes in the editor that are not saved; ask the user to save it"
            ));
        }
        let saved = self.write_file(path, text.clone()).await;
        saved.map_err(|why| {
            format!("`{shown}` has changes in the editor, and it could not save them: {why}")
        })?;
        if file_has_text(path, &text) {
            Ok(())
        } else {
            Err(format!(
                "`{shown}` has changes in the editor, and it did not save them as they are; read it again"
            ))
        }
    }
}

fn file_has_text(path: &Path, text: &str) -> bool {
    std::fs::read(path).is_ok_and(|bytes| bytes == text.as_bytes())
}

#[async_trait]
impl EditorBuffers for EditorFiles {
    fn unsaved_text(&self, path: &Path) -> Option<String> {
        self.runtime.block_on(self.read_unsaved_text(path))
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
            self.save_file(&path).await?;
        }
        Ok(())
    }

    async fn after(
        &self,
        _tool: &str,
        _context: &ToolContext,
        output: &mut ToolOutput,
    ) -> Result<(), String> {
        let failed = output.envelope.status == ToolStatus::Error;
        if failed || !self.offered.write_text_file {
            return Ok(());
        }
        for change in &output.changes {
            let small = std::fs::metadata(&change.path)
                .is_ok_and(|found| found.is_file() && found.len() <= MAX_FILE_BYTES);
            if small && let Ok(text) = std::fs::read_to_string(&change.path) {
                // The file on disk is already correct, so an editor that rejects the write only has
                // to reload it.
                drop(self.write_file(&change.path, text).await);
            }
        }
        Ok(())
    }
}
