//! Gives tools access to the messages of a conversation. Messages are read from the store, so that
//! none is missing because it was pruned, compressed or archived.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;
use haft_context::message_lines;
use haft_store::Store;
use haft_tool::{ConversationMessages, PortError, Recalled};
use haft_types::{
    ConversationId, Entry, MarkAction, MarkReport, Message, MessageId, Part, ShortId, TokenCounter,
    TranscriptLine,
};

use super::children::Children;
use super::document::failed;
use super::marks::StoredMarks;

/// The messages of a stored conversation.
pub(crate) struct StoredTranscript {
    pub(super) store: Arc<dyn Store>,
    pub(super) conversation: ConversationId,
    pub(super) counter: Arc<dyn TokenCounter>,
    pub(super) marks: Arc<StoredMarks>,
    /// The sub-agents whose messages can be recalled as well, because their reports cite them as
    /// evidence.
    pub(super) children: Option<Arc<Children>>,
}

impl StoredTranscript {
    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        self.store
            .stored_messages(&self.conversation)
            .await
            .map_err(|error| failed(&error))
    }

    /// Finds a message of this conversation, or else of a sub-agent's, newest sub-agent first.
    async fn find(&self, wanted: &MessageName) -> Result<Option<Message>, PortError> {
        let in_one = |messages: Vec<Message>| {
            messages
                .into_iter()
                .find(|message| wanted.fits(message.message_id))
        };
        if let Some(found) = in_one(self.messages().await?) {
            return Ok(Some(found));
        }
        for child in self
            .children
            .iter()
            .flat_map(|children| children.all())
            .rev()
        {
            let messages = self
                .store
                .messages(&child.conversation)
                .await
                .map_err(|error| failed(&error))?;
            if let Some(found) = in_one(messages) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn entries(&self, counter: &dyn TokenCounter) -> Result<Vec<Arc<Entry>>, PortError> {
        let messages = self.messages().await?;
        Ok(messages
            .into_iter()
            .map(|message| Entry::new(message, counter))
            .collect())
    }
}

/// Used where only ids and roles matter: counting the tokens of a long conversation is slow.
struct Uncounted;

impl TokenCounter for Uncounted {
    fn text(&self, _text: &str) -> u32 {
        0
    }
}

#[async_trait]
impl ConversationMessages for StoredTranscript {
    async fn list(&self) -> Result<Vec<TranscriptLine>, PortError> {
        let history = self.entries(self.counter.as_ref()).await?;
        Ok(message_lines(&history, &self.marks.current()))
    }

    async fn mark(&self, action: MarkAction, ids: &str) -> Result<MarkReport, PortError> {
        let history = self.entries(&Uncounted).await?;
        self.marks.edit_deleted(action, ids, &history).await
    }

    async fn recall(&self, id: &str) -> Result<Recalled, PortError> {
        let unknown = || PortError::Unknown {
            what: "message",
            id: id.to_owned(),
        };
        let wanted = MessageName::parse(id).ok_or_else(unknown)?;
        let message = self.find(&wanted).await?.ok_or_else(unknown)?;
        let calls = message
            .tool_calls()
            .map(|call| call.meant().into_owned().name);
        let results = message.tool_results().map(|result| result.name.clone());
        Ok(Recalled {
            id: message.message_id.short(),
            role: message.role,
            tools: calls.chain(results).collect(),
            status: message
                .tool_results()
                .next()
                .map(|result| result.envelope.status),
            text: whole_text(&message),
        })
    }
}

/// The id by which the model refers to a message.
enum MessageName {
    Full(MessageId),
    Short(ShortId),
}

impl MessageName {
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        text.parse()
            .map(Self::Short)
            .or_else(|_| text.parse().map(Self::Full))
            .ok()
    }

    fn fits(&self, id: MessageId) -> bool {
        match self {
            Self::Full(full) => *full == id,
            Self::Short(short) => *short == id.short(),
        }
    }
}

/// Returns all parts of a message that can be shown as text.
fn whole_text(message: &Message) -> String {
    let mut text = String::new();
    for part in &message.content {
        let gap = if text.is_empty() { "" } else { "\n\n" };
        // Writing to a String cannot fail.
        let _ = match part {
            Part::Text { text: said, .. } => write!(text, "{gap}{said}"),
            Part::ToolCall(call) => write!(text, "{gap}calls {} {}", call.name, call.arguments),
            Part::ToolResult(result) => write!(text, "{gap}{}", result.envelope.text),
            Part::Image(image) => write!(text, "{gap}(a picture, {})", image.media_type),
            // Reasoning is sent only to the provider that produced it, in the provider's own
            // format.
            Part::Thinking(_) => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests;
