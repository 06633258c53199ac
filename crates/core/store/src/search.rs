//! Full-text search: what is asked, and what was found. The index itself belongs to each store.

pub(crate) mod query;
pub(crate) mod snippet;
pub(crate) mod words;

use haft_types::{Message, MessageId, Part, Role, Timestamp};
use serde::{Deserialize, Serialize};

use crate::conversation::{Listed, Scope};

/// What to look for.
///
/// All words must occur in one message, in any order; words in double quotes must follow each other; a word that ends with `*`
/// is the beginning of one. Case does not matter. Chinese, Japanese, Korean and Thai are found without spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchQuery<'a> {
    /// The words.
    pub text: &'a str,
    /// Where.
    pub scope: Scope<'a>,
    /// The most hits wanted.
    pub limit: usize,
}

/// Something that was found; its JSON form is that of `conversations search --json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hit {
    /// The conversation.
    pub conversation: Listed,
    /// The message; absent when name or description of the conversation hold the words.
    pub message: Option<HitMessage>,
    /// The place, with some words around it.
    pub snippet: Snippet,
}

/// The message of a [`Hit`].
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

/// What of a message can be found: its words, its calls and their results. Not its reasoning, which nobody said.
pub(crate) fn searchable(message: &Message) -> String {
    let mut text = String::new();
    for part in &message.content {
        if !text.is_empty() {
            text.push('\n');
        }
        match part {
            Part::Text { text: words, .. } => text.push_str(words),
            Part::ToolCall(call) => text.extend([call.name.as_str(), " ", &call.arguments]),
            Part::ToolResult(result) => text.push_str(&result.envelope.text),
            Part::Thinking(_) | Part::Image(_) => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_around_each_highlight() {
        let snippet = Snippet { text: "…漢字 and words".into(), highlights: vec![(1, 3), (8, 13)] };
        assert_eq!(snippet.marked("[", "]"), "…[漢字] and [words]");
    }
}
