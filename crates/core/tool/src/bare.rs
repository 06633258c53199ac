//! A [`ToolContext`] for tools that need nothing from an agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use haft_types::{MarkAction, MarkReport, TranscriptLine};
use tokio_util::sync::CancellationToken;

use crate::ports::{
    Added, CallProgress, ChangeUndo, ConversationMessages, FileHistory, FileState, NewUseful, Note,
    PortError, ProjectNotes, ReadLedger, Recalled, TodoItem, TodoList, TokenCount, UndoReport,
    UndoTarget, UsefulInfo, UsefulItem,
};
use crate::{OutputLimits, ToolContext, ToolNames, Workspace};

impl ToolContext {
    /// Creates a context without an agent: nothing is stored, child processes get an empty
    /// environment, and a tool that needs more gets an error.
    pub fn bare(
        folder: impl Into<PathBuf>,
        call_id: impl Into<String>,
        cancel: CancellationToken,
    ) -> Self {
        let folder = folder.into();
        Self {
            workspace: Workspace {
                spill: folder.clone(),
                journal: folder.clone(),
                cwd: folder.clone(),
                root: folder,
                extra: Vec::new(),
            },
            readable: None,
            call_id: call_id.into(),
            cancel,
            limits: OutputLimits::default(),
            environment: Arc::default(),
            commits: false,
            tools: ToolNames::default(),
            progress: Arc::new(Nothing),
            todo: Arc::new(Nothing),
            reads: Arc::new(Nothing),
            history: Arc::new(Nothing),
            take_back: Arc::new(Nothing),
            useful: Arc::new(Nothing),
            notes: Arc::new(Nothing),
            transcript: Arc::new(Nothing),
            tokens: Arc::new(Nothing),
            documents: None,
            buffers: None,
        }
    }
}

/// Implements every port without storing anything: reads return empty results, writes fail.
struct Nothing;

fn none<T>() -> Result<T, PortError> {
    Err(PortError::Store(
        "there is nothing here that could keep it".to_owned(),
    ))
}

impl CallProgress for Nothing {
    fn show(&self, _text: String) {}
}

#[async_trait]
impl TodoList for Nothing {
    async fn read(&self) -> Result<Vec<TodoItem>, String> {
        Ok(Vec::new())
    }

    async fn write(&self, _items: Vec<TodoItem>) -> Result<(), String> {
        none().map_err(|error| error.to_string())
    }
}

impl ReadLedger for Nothing {
    fn last_seen(&self, _path: &Path) -> Option<FileState> {
        None
    }

    fn saw(&self, _path: &Path, _state: FileState) {}

    fn name_once(&self, _path: &Path) -> bool {
        false
    }
}

impl FileHistory for Nothing {
    fn save(&self, _call: &str, _paths: &[&Path]) -> Result<(), PortError> {
        none()
    }

    fn changed(&self, _call: &str, _paths: &[&Path]) -> Result<(), PortError> {
        none()
    }
}

impl ChangeUndo for Nothing {
    fn undo(&self, _call: &str, _target: &UndoTarget) -> Result<UndoReport, PortError> {
        none()
    }
}

#[async_trait]
impl UsefulInfo for Nothing {
    async fn list(&self) -> Result<Vec<UsefulItem>, PortError> {
        Ok(Vec::new())
    }

    async fn add(&self, _new: NewUseful) -> Result<Added, PortError> {
        none()
    }

    async fn delete(&self, _number: u32) -> Result<UsefulItem, PortError> {
        none()
    }
}

#[async_trait]
impl ProjectNotes for Nothing {
    async fn list(&self) -> Result<Vec<Note>, PortError> {
        Ok(Vec::new())
    }

    async fn add(&self, _path: &str, _note: &str) -> Result<Note, PortError> {
        none()
    }

    async fn update(&self, _id: &str, _note: &str) -> Result<Note, PortError> {
        none()
    }

    async fn delete(&self, _id: &str) -> Result<Note, PortError> {
        none()
    }
}

#[async_trait]
impl ConversationMessages for Nothing {
    async fn list(&self) -> Result<Vec<TranscriptLine>, PortError> {
        Ok(Vec::new())
    }

    async fn mark(&self, _action: MarkAction, _ids: &str) -> Result<MarkReport, PortError> {
        none()
    }

    async fn recall(&self, _id: &str) -> Result<Recalled, PortError> {
        none()
    }
}

impl TokenCount for Nothing {
    fn count(&self, text: &str) -> u64 {
        // A rough estimate for any tokenizer.
        (text.len() as u64).div_ceil(4)
    }

    fn window(&self) -> u64 {
        200_000
    }
}
