//! Reads a text with one conversation: an export of haft, or any other format that can be imported.
//!
//! Ids are derived from position and content: reading the text again gives identical messages, and
//! a longer text only appends to them.

use haft_types::{ConversationId, Message, Role, Timestamp};
use serde_json::Value;

use crate::{ImportError, SourceText, read_conversations};

/// The conversation in a file.
#[derive(Debug)]
pub struct ConversationFile {
    pub id: ConversationId,
    /// The text of the leading system messages.
    pub system: Option<String>,
    pub messages: Vec<Message>,
}

/// The reason why a text is not one conversation.
#[derive(Debug, thiserror::Error)]
pub enum SingleConversationError {
    #[error("it holds {lines} lines of JSON; give one of them")]
    Several { lines: usize },
    #[error("it holds no messages")]
    Empty,
    #[error(transparent)]
    Format(ImportError),
}

/// Reads the one conversation in a text.
pub fn read_single_conversation(text: &str) -> Result<ConversationFile, SingleConversationError> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let first = text.lines().next().map(serde_json::from_str::<Value>);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let several = || SingleConversationError::Several { lines };
    let read = read_conversations(
        SourceText {
            text,
            now: Timestamp::UNIX_EPOCH,
        },
        None,
    );
    let mut read = read.map_err(|error| match first {
        Some(Ok(Value::Object(_))) if lines > 1 => several(),
        _ => SingleConversationError::Format(error),
    })?;
    let document = match (read.pop(), read.is_empty()) {
        (Some(one), true) => one.document,
        (Some(_), false) => return Err(several()),
        (None, _) => return Err(SingleConversationError::Empty),
    };
    // An id derived from all messages would change when the file grows.
    let without_id = serde_json::from_str::<Value>(text)
        .is_ok_and(|value| value.get("messages").is_some() && value.get("id").is_none());
    let unnamed = text.starts_with('[') || without_id;
    let (system, messages): (Vec<_>, Vec<_>) = split_system_texts(document.messages);
    Ok(ConversationFile {
        id: if unnamed {
            ConversationId::new("from-file")
        } else {
            document.id
        },
        system: Some(system.join("\n\n")).filter(|system| !system.is_empty()),
        messages,
    })
}

/// Splits off the texts of the leading system messages.
fn split_system_texts(messages: Vec<Message>) -> (Vec<String>, Vec<Message>) {
    let count = messages
        .iter()
        .take_while(|message| message.role == Role::System)
        .count();
    let mut messages = messages.into_iter();
    let system = messages
        .by_ref()
        .take(count)
        .map(|message| message.joined_text())
        .collect();
    (system, messages.collect())
}

#[cfg(test)]
mod tests;
