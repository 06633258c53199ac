//! Reads a conversation from a file: an export of haft, or any other format that can be imported.
//!
//! Ids are derived from position and content: reading the file again gives an identical request,
//! and a longer file only appends to it.

use std::io::Read;
use std::path::Path;

use haft_imports::{SourceText, read_conversations, read_stored_text};
use haft_types::{ConversationId, Message, Role, Timestamp};
use serde_json::Value;

use crate::exit::usage_error;

/// A conversation that was read from a file.
#[derive(Debug)]
pub(super) struct ConversationFile {
    pub(super) id: ConversationId,
    /// The text of the leading system messages.
    pub(super) system: Option<String>,
    pub(super) messages: Vec<Message>,
}

/// Reads the file, or standard input for `-`.
pub(super) fn read_conversation_file(path: &Path) -> anyhow::Result<ConversationFile> {
    let shown = path.display();
    let stored = read_stored_text(path, None)
        .map_err(|problem| usage_error(text!("context-file-not-conversation", shown, problem)))?;
    let text = if let Some(text) = stored {
        Ok(text)
    } else if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .lock()
            .read_to_string(&mut text)
            .map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|error| usage_error(text!("context-file-unreadable", shown, error)))?;
    parse_conversation(&text)
        .map_err(|problem| usage_error(text!("context-file-not-conversation", shown, problem)))
}

fn parse_conversation(text: &str) -> Result<ConversationFile, String> {
    let text = text.trim_start_matches('\u{feff}').trim();
    let first = text.lines().next().map(serde_json::from_str::<Value>);
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    let several = || text!("context-file-many-lines", lines);
    let read = read_conversations(
        SourceText {
            text,
            now: Timestamp::UNIX_EPOCH,
        },
        None,
    );
    let mut read = read.map_err(|error| match first {
        Some(Ok(Value::Object(_))) if lines > 1 => several(),
        _ => error.to_string(),
    })?;
    let document = match (read.pop(), read.is_empty()) {
        (Some(one), true) => one.document,
        (Some(_), false) => return Err(several()),
        (None, _) => return Err(text!("context-file-empty").to_owned()),
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
