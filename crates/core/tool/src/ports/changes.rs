//! Records of the changes that calls make in files, so that they can be undone.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use haft_types::{ConversationId, MessageId};

use super::{ChangeUndo, FileHistory, PortError, UndoReport, UndoTarget};
use crate::{Access, ToolOutput, Workspace};

/// The identity of a tool call in the change record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallName {
    /// The assistant message that contains the call.
    pub message_id: MessageId,
    /// The id of the call, which is unique only within the message.
    pub call_id: String,
    pub tool: String,
}

/// Opens the change records of conversations.
pub trait ChangeRecords: Send + Sync {
    /// Opens the change record of a conversation that works in the folders of `workspace`. Files
    /// are read and created only when they are needed. Changes in the folders of `private`, which
    /// belong to haft, are ignored.
    fn open_record(
        &self,
        conversation: &ConversationId,
        workspace: &Workspace,
        private: &[PathBuf],
    ) -> Arc<dyn ChangeWatch>;
}

/// The change record of one conversation, which observes its tool calls.
#[async_trait]
pub trait ChangeWatch: Send + Sync {
    /// Records the state of the files before a call runs.
    async fn begin_call(&self, call: CallName, access: Access) -> Box<dyn RecordedCall>;
}

/// A call whose changes are being recorded.
#[async_trait]
pub trait RecordedCall: Send + Sync {
    /// Returns the port through which the call saves files before it changes them.
    fn history(&self) -> Arc<dyn FileHistory>;

    /// Returns the port that undoes changes of earlier calls.
    fn change_undo(&self) -> Arc<dyn ChangeUndo>;

    /// Records the changes that the call made, and adds notes about them to its output.
    async fn finish_call(self: Box<Self>, output: ToolOutput) -> ToolOutput;
}

/// Change records that record nothing: files are changed without a backup, and no change can be
/// undone.
#[derive(Clone, Copy, Debug)]
pub struct NoChangeRecords;

impl ChangeRecords for NoChangeRecords {
    fn open_record(
        &self,
        _conversation: &ConversationId,
        _workspace: &Workspace,
        _private: &[PathBuf],
    ) -> Arc<dyn ChangeWatch> {
        Arc::new(Self)
    }
}

#[async_trait]
impl ChangeWatch for NoChangeRecords {
    async fn begin_call(&self, _call: CallName, _access: Access) -> Box<dyn RecordedCall> {
        Box::new(Self)
    }
}

#[async_trait]
impl RecordedCall for NoChangeRecords {
    fn history(&self) -> Arc<dyn FileHistory> {
        Arc::new(Self)
    }

    fn change_undo(&self) -> Arc<dyn ChangeUndo> {
        Arc::new(Self)
    }

    async fn finish_call(self: Box<Self>, output: ToolOutput) -> ToolOutput {
        output
    }
}

impl FileHistory for NoChangeRecords {
    fn save_files(&self, _call: &str, _paths: &[&Path]) -> Result<(), PortError> {
        Ok(())
    }

    fn record_changed(&self, _call: &str, _paths: &[&Path]) -> Result<(), PortError> {
        Ok(())
    }
}

impl ChangeUndo for NoChangeRecords {
    fn undo(&self, _call: &str, _target: &UndoTarget) -> Result<UndoReport, PortError> {
        Err(PortError::Store(
            "changes of files are not recorded here".to_owned(),
        ))
    }
}
