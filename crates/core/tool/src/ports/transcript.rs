//! The messages of the conversation a tool is called in: listed, marked, brought back.

use async_trait::async_trait;
use haft_types::{MarkAction, MarkReport, Role, ShortId, ToolStatus, TranscriptLine};

use super::PortError;

/// A message brought back whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    /// Its id.
    pub id: ShortId,
    /// Who speaks.
    pub role: Role,
    /// The tools it calls, or whose result it is.
    pub tools: Vec<String>,
    /// How its tool call ended, if it is a result.
    pub status: Option<ToolStatus>,
    /// All its text, as it was stored.
    pub text: String,
}

/// The messages of a conversation.
#[async_trait]
pub trait ConversationMessages: Send + Sync {
    /// Every message, in order.
    async fn list(&self) -> Result<Vec<TranscriptLine>, PortError>;

    /// Edits the list of messages marked for deletion. `ids` are short or full ids, separated by
    /// commas. It acts from the next request; when this returns, it is stored.
    async fn mark(&self, action: MarkAction, ids: &str) -> Result<MarkReport, PortError>;

    /// The message with this short or full id as it was stored, whatever is sent of it now.
    async fn recall(&self, id: &str) -> Result<Recalled, PortError>;
}
