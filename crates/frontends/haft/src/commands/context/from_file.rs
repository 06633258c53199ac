//! Reads a conversation from a file: an export of haft, or any other format that can be imported.

use std::io::Read;
use std::path::Path;

use haft_imports::{
    ConversationFile, SingleConversationError, read_single_conversation, read_stored_text,
};

use crate::exit::usage_error;

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
    read_single_conversation(&text).map_err(|error| {
        let problem = describe_error(&error);
        usage_error(text!("context-file-not-conversation", shown, problem))
    })
}

fn describe_error(error: &SingleConversationError) -> String {
    match error {
        SingleConversationError::Several { lines } => text!("context-file-many-lines", lines),
        SingleConversationError::Empty => text!("context-file-empty").to_owned(),
        SingleConversationError::Format(error) => error.to_string(),
    }
}
