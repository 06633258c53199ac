//! What calls change in files, recorded by whoever can take it back.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use haft_types::{ConversationId, MessageId};

use super::{ChangeUndo, FileHistory, PortError, UndoReport, UndoTarget};
use crate::{Access, ToolOutput, Workspace};

/// A tool call as a record of changes names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallName {
    /// The assistant message that holds it.
    pub message_id: MessageId,
    /// Its id; unique within the message only.
    pub call_id: String,
    /// The tool.
    pub tool: String,
}

/// Keeps what the calls of conversations change in files.
pub trait ChangeRecords: Send + Sync {
    /// The record of a conversation that works in these folders. Nothing is read or made before it
    /// is needed; `private` are folders of haft's own, in which no change counts.
    fn open(
        &self,
        conversation: &ConversationId,
        workspace: &Workspace,
        private: &[PathBuf],
    ) -> Arc<dyn ChangeWatch>;
}

/// The changes of one conversation.
#[async_trait]
pub trait ChangeWatch: Send + Sync {
    /// Looks at what there is before a call runs.
    async fn begin(&self, call: CallName, access: Access) -> Box<dyn RecordedCall>;
}

/// A call whose changes are recorded.
#[async_trait]
pub trait RecordedCall: Send + Sync {
    /// Where the call saves files before it changes them.
    fn history(&self) -> Arc<dyn FileHistory>;

    /// Takes back what earlier calls changed.
    fn take_back(&self) -> Arc<dyn ChangeUndo>;

    /// Records what the call changed, and adds what is to be said about it to its output.
    async fn end(self: Box<Self>, output: ToolOutput) -> ToolOutput;
}

/// Records nothing: files are changed without a copy of what they held, and nothing can be taken
/// back.
#[derive(Clone, Copy, Debug)]
pub struct Unrecorded;

impl ChangeRecords for Unrecorded {
    fn open(
        &self,
        _conversation: &ConversationId,
        _workspace: &Workspace,
        _private: &[PathBuf],
    ) -> Arc<dyn ChangeWatch> {
        Arc::new(Self)
    }
}

#[async_trait]
impl ChangeWatch for Unrecorded {
    async fn begin(&self, _call: CallName, _access: Access) -> Box<dyn RecordedCall> {
        Box::new(Self)
    }
}

#[async_trait]
impl RecordedCall for Unrecorded {
    fn history(&self) -> Arc<dyn FileHistory> {
        Arc::new(Self)
    }

    fn take_back(&self) -> Arc<dyn ChangeUndo> {
        Arc::new(Self)
    }

    async fn end(self: Box<Self>, output: ToolOutput) -> ToolOutput {
        output
    }
}

impl FileHistory for Unrecorded {
    fn save(&self, _call: &str, _paths: &[&Path]) -> Result<(), PortError> {
        Ok(())
    }

    fn changed(&self, _call: &str, _paths: &[&Path]) -> Result<(), PortError> {
        Ok(())
    }
}

impl ChangeUndo for Unrecorded {
    fn undo(&self, _call: &str, _target: &UndoTarget) -> Result<UndoReport, PortError> {
        Err(PortError::Store(
            "changes of files are not recorded here".to_owned(),
        ))
    }
}
