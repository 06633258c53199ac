//! The messages of a conversation as the model asks for them: read from the store, so that nothing
//! pruned, compressed or archived is missing.

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
    /// Where the messages of sub-agents are found; their evidence is read like one's own.
    pub(super) children: Option<Arc<Children>>,
}

impl StoredTranscript {
    async fn messages(&self) -> Result<Vec<Message>, PortError> {
        self.store
            .stored_messages(&self.conversation)
            .await
            .map_err(|error| failed(&error))
    }

    /// A message of this conversation, or of a sub-agent's, the newest one's first.
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

/// For where only ids and roles matter: counting a long conversation takes a while.
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

/// What a message is named by.
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

/// Everything in a message that can be read as text.
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
            // Reasoning goes back only to the provider that made it, in its own form.
            Part::Thinking(_) => Ok(()),
        };
    }
    text
}

#[cfg(test)]
mod tests;
