//! Access to the messages of the conversation that a tool is called in.

use async_trait::async_trait;
use haft_types::{MarkAction, MarkReport, Role, ShortId, ToolStatus, TranscriptLine};

use super::PortError;

/// The full content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recalled {
    pub id: ShortId,
    pub role: Role,
    /// The tools the message calls, or the tool whose result it is.
    pub tools: Vec<String>,
    /// The status of the tool call, if the message is a result.
    pub status: Option<ToolStatus>,
    /// The full text, as it was stored.
    pub text: String,
}

/// The messages of a conversation.
#[async_trait]
pub trait ConversationMessages: Send + Sync {
    /// Returns every message, in order.
    async fn list(&self) -> Result<Vec<TranscriptLine>, PortError>;

    /// Edits the list of messages marked for deletion and returns once it is stored. `ids` are
    /// short or full ids, separated by commas. The edit takes effect with the next request.
    async fn mark(&self, action: MarkAction, ids: &str) -> Result<MarkReport, PortError>;

    /// Returns the stored message with this short or full id, even if it is no longer sent in full.
    async fn recall(&self, id: &str) -> Result<Recalled, PortError>;
}
