//! Full-text search: queries and hits. Each store has its own index.

pub(crate) mod index_terms;
pub(crate) mod query;
pub(crate) mod snippet;

use std::time::Duration;

use haft_types::{Message, MessageId, Part, Role, Timestamp};
use serde::{Deserialize, Serialize};

pub use self::index_terms::extract_terms;
use self::query::SearchItem;
pub use self::snippet::find_name_snippet as name_snippet;
use crate::conversation::{ConversationRow, ConversationScope};
use crate::error::StoreError;

/// The time for which no message must have been written before new messages are indexed.
pub const INDEX_DELAY: Duration = Duration::from_secs(2);

/// A full-text query.
///
/// A message matches if it contains all words, in any order. Words in double quotes must follow
/// each other; a word that ends with `*` matches the beginning of a word. Case is ignored. Chinese,
/// Japanese, Korean and Thai text is found without spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchQuery<'a> {
    /// The query as the user typed it.
    pub text: &'a str,
    /// The conversations to search.
    pub scope: ConversationScope<'a>,
    /// The maximum number of hits.
    pub limit: usize,
}

/// A search hit. Its JSON form is that of `conversations search --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// The conversation that contains the hit.
    pub conversation: ConversationRow,
    /// The message, or `None` if the name or description of the conversation matches.
    pub message: Option<HitMessage>,
    /// The matching text with some context.
    pub snippet: Snippet,
}

impl SearchHit {
    /// Creates a hit for a message that matches `items`. Returns `None` if the message was revised
    /// and no longer matches.
    pub fn for_message(
        conversation: ConversationRow,
        message: &Message,
        items: &[SearchItem],
    ) -> Option<Self> {
        let snippet = snippet::find_snippet(&extract_searchable_text(message), items)?;
        let message = HitMessage {
            message_id: message.message_id,
            role: message.role,
            created_at: message.created_at,
        };
        Some(Self {
            conversation,
            message: Some(message),
            snippet,
        })
    }
}

/// The message of a [`SearchHit`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HitMessage {
    /// The id of the message.
    pub message_id: MessageId,
    /// The role of the message.
    pub role: Role,
    /// The time of creation.
    pub created_at: Timestamp,
}

/// An excerpt from a text, on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snippet {
    /// The text of the excerpt.
    pub text: String,
    /// The positions of the matches in the text: start and end in characters, sorted.
    pub highlights: Vec<(usize, usize)>,
}

impl Snippet {
    /// Returns the text with `open` before and `close` after each highlight.
    pub fn with_highlights(&self, open: &str, close: &str) -> String {
        let mut marked = String::with_capacity(self.text.len());
        let mut highlights = self.highlights.iter().peekable();
        for (index, c) in self.text.chars().enumerate() {
            if highlights.peek().is_some_and(|(start, _)| *start == index) {
                marked.push_str(open);
            }
            marked.push(c);
            if highlights.next_if(|(_, end)| *end == index + 1).is_some() {
                marked.push_str(close);
            }
        }
        marked
    }
}

/// Returns the text of a message that searches cover: its text, tool calls and tool results.
/// Reasoning is excluded because it is not part of the dialog.
fn extract_searchable_text(message: &Message) -> String {
    let mut text = String::new();
    for part in &message.content {
        if !text.is_empty() {
            text.push('\n');
        }
        match part {
            Part::Text { text: said, .. } => text.push_str(said),
            Part::ToolCall(call) => text.extend([call.name.as_str(), " ", &call.arguments]),
            Part::ToolResult(result) => text.push_str(&result.envelope.text),
            Part::Thinking(_) | Part::Image(_) => {}
        }
    }
    text
}

/// Parses a query into words and phrases, all of which must be found. Fails if the query contains
/// no word.
pub fn parse_query(text: &str) -> Result<Vec<SearchItem>, StoreError> {
    let items = query::parse_items(text);
    if items.is_empty() {
        Err(StoreError::EmptySearch {
            text: text.to_owned(),
        })
    } else {
        Ok(items)
    }
}

/// Returns the search terms of a stored message, separated by spaces. If the message cannot be
/// parsed, the result is empty, so the message is not found; `doctor` reports the damage.
pub fn extract_body_terms(body: &str) -> String {
    let message = serde_json::from_str::<Message>(body).ok();
    message.map_or_else(String::new, |message| {
        extract_terms(&extract_searchable_text(&message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marked_surrounds_each_highlight() {
        let snippet = Snippet {
            text: "…漢字 and words".into(),
            highlights: vec![(1, 3), (8, 13)],
        };
        assert_eq!(snippet.with_highlights("[", "]"), "…[漢字] and [words]");
    }
}
