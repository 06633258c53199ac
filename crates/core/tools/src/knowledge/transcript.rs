//! Gives tools access to the messages of a conversation. Messages are read from the store, so that
//! nothing that was pruned, compressed or archived is missing.

use std::fmt::Write as _;
use std::pin::Pin;
use std::sync::Arc;

use haft_store::Store;
use haft_tool::PortError;
use haft_types::{
    ConversationId, MarkAction, MarkReport, Message, MessageId, Part, Role, ShortId, ToolStatus,
    TranscriptLine,
};

use super::kept_document::to_port_error;

/// A message with its complete text, returned by [`StoredTranscript::recall`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecalledMessage {
    /// The id of the message.
    pub id: ShortId,
    /// The role of the message.
    pub role: Role,
    /// The tools that the message calls, or whose results the message contains.
    pub tools: Vec<String>,
    /// The status of the tool call, if the message is a tool result.
    pub status: Option<ToolStatus>,
    /// The complete text of the message, as it was stored.
    pub text: String,
}

/// A function that returns the conversations of sub-agents, oldest first.
pub type ListChildren = Box<dyn Fn() -> Vec<ConversationId> + Send + Sync>;

/// A function that describes the messages of a conversation and their marks, one line per message.
pub type DescribeMessages = Box<dyn Fn(Vec<Message>) -> Vec<TranscriptLine> + Send + Sync>;

/// A function that edits the list of messages marked for deletion in a conversation. Its second
/// argument contains short or full ids, separated by commas.
pub type MarkMessages = Box<
    dyn Fn(
            MarkAction,
            String,
            Vec<Message>,
        ) -> Pin<Box<dyn Future<Output = Result<MarkReport, PortError>> + Send>>
        + Send
        + Sync,
>;

/// The messages of a stored conversation. The engine provides the functions that handle marks,
/// because the code that builds requests determines which messages are sent.
pub struct StoredTranscript {
    /// The store of the conversation.
    pub store: Arc<dyn Store>,
    /// The id of the conversation.
    pub conversation: ConversationId,
    /// Returns the conversations of sub-agents, oldest first. Their messages can be recalled too,
    /// because a sub-agent's report refers to messages as evidence.
    pub children: ListChildren,
    /// Describes every message and its marks in one line each.
    pub describe: DescribeMessages,
    /// Edits the list of messages marked for deletion.
    pub edit_marks: MarkMessages,
}

impl StoredTranscript {
    /// Describes every message of the conversation, in order.
    pub async fn list(&self) -> Result<Vec<TranscriptLine>, PortError> {
        Ok((self.describe)(self.messages().await?))
    }

    /// Changes which messages are marked for deletion, according to `action`. `ids` contains short
    /// or full message ids, separated by commas. The edit is stored when this method returns, and
    /// takes effect with the next request.
    pub async fn mark(&self, action: MarkAction, ids: &str) -> Result<MarkReport, PortError> {
        let messages = self.messages().await?;
        (self.edit_marks)(action, ids.to_owned(), messages).await
    }

    /// Returns the message with this short or full id as it was stored, even if requests now omit
    /// or shorten it.
    pub async fn recall(&self, id: &str) -> Result<RecalledMessage, PortError> {
        let unknown = || PortError::Unknown {
            what: "message",
            id: id.to_owned(),
        };
        let wanted = MessageRef::parse(id).ok_or_else(unknown)?;
        let message = self.find_message(&wanted).await?.ok_or_else(unknown)?;
        let calls = message
            .tool_calls()
            .map(|call| call.resolve_indirect().into_owned().name);
        let results = message.tool_results().map(|result| result.name.clone());
        Ok(RecalledMessage {
            id: message.message_id.short_id(),
            role: message.role,
            tools: calls.chain(results).collect(),
            status: message
                .tool_results()
                .next()
                .map(|result| result.envelope.status),
            text: collect_text(&message),
        })
    }

    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        self.store
            .uncached_messages(&self.conversation)
            .await
            .map_err(|error| to_port_error(&error))
    }

    /// Finds a message in this conversation or else in the conversations of its sub-agents, newest
    /// sub-agent first.
    async fn find_message(&self, wanted: &MessageRef) -> Result<Option<Message>, PortError> {
        let in_one = |messages: Vec<Message>| {
            messages
                .into_iter()
                .find(|message| wanted.matches(message.message_id))
        };
        if let Some(found) = in_one(self.messages().await?) {
            return Ok(Some(found));
        }
        for child in (self.children)().iter().rev() {
            let messages = self
                .store
                .messages(child)
                .await
                .map_err(|error| to_port_error(&error))?;
            if let Some(found) = in_one(messages) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }
}

/// A short or full message id, as the model wrote it.
enum MessageRef {
    Full(MessageId),
    Short(ShortId),
}

impl MessageRef {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        text.parse()
            .map(Self::Short)
            .or_else(|_| text.parse().map(Self::Full))
            .ok()
    }

    fn matches(&self, id: MessageId) -> bool {
        match self {
            Self::Full(full) => *full == id,
            Self::Short(short) => *short == id.short_id(),
        }
    }
}

/// Returns all content of a message that can be represented as text, without the model's reasoning.
fn collect_text(message: &Message) -> String {
    let mut text = String::new();
    for part in &message.content {
        let gap = if text.is_empty() { "" } else { "\n\n" };
        // Writing to a String cannot fail.
        let _ = match part {
            Part::Text { text: said, .. } => write!(text, "{gap}{said}"),
            Part::ToolCall(call) => write!(text, "{gap}calls {} {}", call.name, call.arguments),
            Part::ToolResult(result) => write!(text, "{gap}{}", result.envelope.text),
            Part::Image(image) => write!(text, "{gap}(a picture, {})", image.media_type),
            // Reasoning goes back only to the provider that made it, in its own form.
            Part::Thinking(_) => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests;
