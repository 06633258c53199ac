//! Messages as they are read in pages, and what may change about a stored one.

use haft_types::{LlmMetadata, Message, Metadata, Part};

/// Where a page of messages ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageEnd {
    /// At the newest message.
    Newest,
    /// Before the message at this place, counted from 1.
    Before(u64),
}

impl PageEnd {
    /// The place of the last message of a page, in a conversation of so many.
    pub(crate) fn last(self, messages: u64) -> u64 {
        match self {
            Self::Newest => messages,
            Self::Before(place) => messages.min(place.saturating_sub(1)),
        }
    }
}

/// Which messages of a conversation to read, by their positions from 1 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageSpan {
    /// From this position on.
    pub first: i64,
    /// Up to this one.
    pub last: i64,
}

impl MessageSpan {
    /// Later than every position and every key.
    pub const NO_END: i64 = i64::MAX;

    /// All of them.
    pub const ALL: Self = Self {
        first: 1,
        last: Self::NO_END,
    };

    /// One alone.
    pub fn at(position: i64) -> Self {
        Self {
            first: position,
            last: position,
        }
    }

    /// A page of at most so many messages up to `end`, in a conversation of `messages`; with it
    /// [`MessagePage::first`].
    pub fn of_page(end: PageEnd, most: usize, messages: u64) -> (u64, Self) {
        let last = end.last(messages);
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

/// Some messages of a conversation that follow each other.
#[derive(Clone, Debug, PartialEq)]
pub struct MessagePage {
    /// The place of the first one, counted from 1: so many less one lie before it.
    pub first: u64,
    /// The messages, in order.
    pub messages: Vec<Message>,
}

impl Default for MessagePage {
    /// No messages, and none before.
    fn default() -> Self {
        Self {
            first: 1,
            messages: Vec::new(),
        }
    }
}

impl MessagePage {
    /// How many messages the conversation has before this page.
    pub fn earlier(&self) -> u64 {
        self.first.saturating_sub(1)
    }
}

/// What is to be different about a stored message. The one that was stored stays: a revision is a
/// row of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Revision {
    /// New content; as before when absent.
    pub content: Option<Vec<Part>>,
    /// New metadata of the model; as before when absent.
    pub llm_metadata: Option<LlmMetadata>,
    /// Metadata to add; a key that is there already gets the new value.
    pub metadata: Metadata,
}

impl Revision {
    /// The message with these changes.
    pub fn of(self, mut message: Message) -> Message {
        message.content = self.content.unwrap_or(message.content);
        message.llm_metadata = self.llm_metadata.map(Box::new).or(message.llm_metadata);
        message.metadata.extend(self.metadata);
        message
    }
}
