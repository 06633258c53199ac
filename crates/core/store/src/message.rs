//! Pages of messages, and revisions of a stored message.

use haft_types::{LlmMetadata, Message, Metadata, Part};

/// The position at which a page of messages ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEnd {
    /// The page ends with the newest message.
    Newest,
    /// The page ends before the message at this position, counted from 1.
    Before(u64),
}

impl PageEnd {
    /// Returns the position of the last message of a page that ends here, in a conversation with
    /// `messages` messages.
    pub(crate) fn last_position(self, messages: u64) -> u64 {
        match self {
            Self::Newest => messages,
            Self::Before(place) => messages.min(place.saturating_sub(1)),
        }
    }
}

/// A range of messages of a conversation, by positions counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSpan {
    /// The position of the first message.
    pub first: i64,
    /// The position of the last message, which belongs to the span.
    pub last: i64,
}

impl MessageSpan {
    /// The end of a span without an end: a value greater than every position and every database
    /// key.
    pub const NO_END: i64 = i64::MAX;

    /// The span of all messages.
    pub const ALL: Self = Self {
        first: 1,
        last: Self::NO_END,
    };

    /// Returns the span that contains only the message at `position`.
    pub fn single(position: i64) -> Self {
        Self {
            first: position,
            last: position,
        }
    }

    /// Returns the position of the first message of a page, and the page as a span. The page has at
    /// most `most` messages and ends at `end`; `messages` is the number of messages in the
    /// conversation.
    pub fn for_page(end: PageEnd, most: usize, messages: u64) -> (u64, Self) {
        let last = end.last_position(messages);
        let first = last.saturating_sub(most as u64) + 1;
        let position = |place: u64| i64::try_from(place).unwrap_or(Self::NO_END);
        (
            first,
            Self {
                first: position(first),
                last: position(last),
            },
        )
    }
}

/// Consecutive messages of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePage {
    /// The position of the first message, counted from 1.
    pub first: u64,
    /// The messages, in order.
    pub messages: Vec<Message>,
}

impl Default for MessagePage {
    /// Returns an empty page at the beginning of a conversation.
    fn default() -> Self {
        Self {
            first: 1,
            messages: Vec::new(),
        }
    }
}

impl MessagePage {
    /// Returns the number of messages of the conversation before this page.
    pub fn earlier_count(&self) -> u64 {
        self.first.saturating_sub(1)
    }
}

/// The changes to a stored message. The original message stays unchanged, because a revision is a
/// separate row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revision {
    /// The new content; if absent, the content stays unchanged.
    pub content: Option<Vec<Part>>,
    /// The new metadata of the model; if absent, that metadata stays unchanged.
    pub llm_metadata: Option<LlmMetadata>,
    /// Metadata to add. Existing keys get the new values.
    pub metadata: Metadata,
}

impl Revision {
    /// Applies the changes to a message.
    pub fn apply_to(self, mut message: Message) -> Message {
        message.content = self.content.unwrap_or(message.content);
        message.llm_metadata = self.llm_metadata.map(Box::new).or(message.llm_metadata);
        message.metadata.extend(self.metadata);
        message
    }
}
