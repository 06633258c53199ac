//! Full-text search: what is asked, and what was found. The index itself belongs to each store.

pub(crate) mod query;
pub(crate) mod snippet;
pub(crate) mod words;

use std::time::Duration;

use haft_types::{Message, MessageId, Part, Role, Timestamp};
use serde::{Deserialize, Serialize};

use self::query::SearchItem;
pub use self::snippet::in_name as name_snippet;
pub use self::words::terms;
use crate::conversation::{ConversationRow, ConversationScope};
use crate::error::StoreError;

/// How long nothing must be written before what was written is indexed.
pub const INDEX_DELAY: Duration = Duration::from_secs(2);

/// What to look for.
///
/// All words must occur in one message, in any order; words in double quotes must follow each
/// other; a word that ends with `*` is the beginning of one. Case does not matter. Chinese,
/// Japanese, Korean and Thai are found without spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchQuery<'a> {
    /// The words.
    pub text: &'a str,
    /// Where.
    pub scope: ConversationScope<'a>,
    /// The most hits wanted.
    pub limit: usize,
}

/// Something that was found; its JSON form is that of `conversations search --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    /// The conversation.
    pub conversation: ConversationRow,
    /// The message; absent when name or description of the conversation hold the words.
    pub message: Option<HitMessage>,
    /// The place, with some text around it.
    pub snippet: Snippet,
}

impl SearchHit {
    /// A message that was found by these items; none where it has been revised since and does not
    /// hold them any more.
    pub fn in_message(
        conversation: ConversationRow,
        message: &Message,
        items: &[SearchItem],
    ) -> Option<Self> {
        let snippet = snippet::snippet(&searchable(message), items)?;
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
    /// Its id.
    pub message_id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A piece of text on one line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snippet {
    /// The text.
    pub text: String,
    /// What was looked for in it: from and to, in characters, in order.
    pub highlights: Vec<(usize, usize)>,
}

impl Snippet {
    /// The text with each highlight between these two marks.
    pub fn marked(&self, open: &str, close: &str) -> String {
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

/// What of a message can be found: its text, its calls and their results. Not its reasoning, which
/// nobody said.
fn searchable(message: &Message) -> String {
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

/// What a person typed, as items that must all be found; an error where it holds no word.
pub fn parse_query(text: &str) -> Result<Vec<SearchItem>, StoreError> {
    let items = query::parse(text);
    if items.is_empty() {
        Err(StoreError::EmptySearch {
            text: text.to_owned(),
        })
    } else {
        Ok(items)
    }
}

/// The terms under which a stored message is found, separated by spaces. One that cannot be read
/// has none: it is not found either, and `doctor` is who tells of it.
pub fn terms_of_body(body: &str) -> String {
    let message = serde_json::from_str::<Message>(body).ok();
    message.map_or_else(String::new, |message| terms(&searchable(&message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_around_each_highlight() {
        let snippet = Snippet {
            text: "…漢字 and words".into(),
            highlights: vec![(1, 3), (8, 13)],
        };
        assert_eq!(snippet.marked("[", "]"), "…[漢字] and [words]");
    }
}
