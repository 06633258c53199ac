//! Rounds: a round begins with the user's own input and ends with the finished answer.
//!
//! [`Timeline`] is the working form of a history while a request is built: every message with its
//! block and its round. A step may remove or replace messages; the other messages keep their order,
//! block and round.

use std::sync::Arc;

use haft_types::{Entry, Layer, Message, MessageId, Origin, Role};

use crate::build::blocks::Blocks;

/// The owner of messages with compressed results.
pub(crate) const COMPRESSED_OWNER: &str = "history:compressed";
/// The owner of messages whose results or arguments were cleared by pruning.
pub(crate) const CLEARED_OWNER: &str = "history:cleared";
/// The owner of messages whose results were cut to head and tail because they did not fit the
/// window.
pub(crate) const EXCERPT_OWNER: &str = "history:excerpt";
/// The owner of masked messages, whose content is replaced by their id.
pub(crate) const MASKED_OWNER: &str = "history:masked";

/// The owner of summaries, which replace archived messages.
pub(crate) const SUMMARY_OWNER: &str = "summary";
/// The owner of messages with facts from other messages that were left out without a summary.
pub(crate) const LEDGER_OWNER: &str = "ledger";

/// One message of the timeline, with its block and round.
#[derive(Clone, Debug)]
pub(crate) struct TimelineItem {
    pub(crate) entry: Arc<Entry>,
    /// The number of the message's block; all messages of a block have an equal number.
    pub(crate) block: u32,
    /// The number of the message's round, from 1; 0 for messages before the first input.
    pub(crate) round: u32,
    /// [`Layer::Current`] for the input that is being answered, otherwise [`Layer::History`].
    pub(crate) layer: Layer,
    pub(crate) owner: &'static str,
    /// True if the user wants the message to be sent in full in every request. All messages of a
    /// block have an equal value.
    pub(crate) pinned: bool,
    /// True for a tool result that was stored after the newest assistant message. The model has not
    /// seen the result, so it must be sent whole.
    pub(crate) unseen: bool,
}

impl TimelineItem {
    pub(crate) fn role(&self) -> Role {
        self.entry.message.role
    }

    pub(crate) fn id(&self) -> MessageId {
        self.entry.message.message_id
    }
}

/// The messages of a conversation, divided into blocks and rounds. The steps that build a request
/// edit this value.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline {
    /// The summaries of archived rounds, oldest first; they precede all messages and belong to no
    /// round.
    pub(crate) summaries: Vec<Arc<Entry>>,
    pub(crate) items: Vec<TimelineItem>,
    /// The number of the running round, from 1; 0 if there is no input yet.
    pub(crate) round: u32,
}

impl Timeline {
    /// Numbers the rounds of the conversation, and separates the summaries from the messages.
    pub(crate) fn new(blocks: Blocks) -> Self {
        let current = blocks
            .entries
            .iter()
            .rposition(|entry| entry.message.opens_round());
        let mut line = Self {
            items: Vec::with_capacity(blocks.entries.len() + 4),
            ..Self::default()
        };
        let entries = blocks.entries.into_iter();
        let placed = entries.zip(blocks.starts).zip(blocks.unseen);
        for (index, ((entry, block), unseen)) in placed.enumerate() {
            if entry.message.role == Role::Summary {
                line.summaries.push(entry);
                continue;
            }
            line.round += u32::from(entry.message.opens_round());
            let (layer, owner) = if Some(index) == current {
                (Layer::Current, "current")
            } else {
                (Layer::History, "history")
            };
            line.items.push(TimelineItem {
                entry,
                block,
                round: line.round,
                layer,
                owner,
                pinned: false,
                unseen,
            });
        }
        line
    }

    /// Removes the messages before the cut, except pinned messages and the user's messages that the
    /// cut keeps. Returns the removed messages. Unseen results stay even if the cut comes after
    /// them, which happens if the conversation was rewound since the cut was made.
    pub(crate) fn apply_cut(&mut self, cut: ArchiveCut) -> Vec<TimelineItem> {
        let Some(end) = self
            .items
            .iter()
            .position(|item| item.id() == cut.first_kept)
        else {
            return Vec::new();
        };
        let end = end.min(self.unseen_start());
        let users = cut
            .users_from
            .and_then(|id| self.items[..end].iter().position(|item| item.id() == id));
        let mut gone = Vec::new();
        let tail = self.items.split_off(end);
        for (index, item) in std::mem::take(&mut self.items).into_iter().enumerate() {
            let said = users.is_some_and(|from| index >= from) && is_from_user(&item.entry.message);
            if item.pinned || said {
                self.items.push(item);
            } else {
                gone.push(item);
            }
        }
        self.items.extend(tail);
        gone
    }

    /// Returns the index of the block with the unseen results, or the number of items if the model
    /// has seen every result.
    pub(crate) fn unseen_start(&self) -> usize {
        let unseen = self.items.iter().position(|item| item.unseen);
        unseen.map_or(self.items.len(), |index| block_start(&self.items, index))
    }

    /// Returns the first round that must not be compressed: the running round, or an interrupted
    /// round with unseen results.
    pub(crate) fn first_uncompressible_round(&self) -> u32 {
        let unseen = self.items.iter().find(|item| item.unseen);
        unseen.map_or(self.round, |item| item.round.min(self.round))
    }

    /// Returns the estimated number of tokens in the summaries and messages.
    pub(crate) fn tokens(&self) -> u64 {
        let summaries = self
            .summaries
            .iter()
            .map(|entry| u64::from(entry.tokens))
            .sum::<u64>();
        summaries
            + self
                .items
                .iter()
                .map(|item| u64::from(item.entry.tokens))
                .sum::<u64>()
    }
}

/// The point before which messages are left out of the request, except for the user's newest
/// messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArchiveCut {
    /// The first message that is sent. All messages after it are sent.
    pub(crate) first_kept: MessageId,
    /// The first user message that is always sent. All user messages after it are always sent, even
    /// those that precede `first_kept`.
    pub(crate) users_from: Option<MessageId>,
}

/// True if the user wrote the message, either at the beginning of a round or while the round ran.
pub(crate) fn is_from_user(message: &Message) -> bool {
    message.role == Role::User && matches!(message.origin(), Origin::User | Origin::Joined)
}

/// Returns the start of the block that an insertion at `index` would split, or `index` itself if
/// the insertion would split no block.
pub(crate) fn block_start(items: &[TimelineItem], mut index: usize) -> usize {
    while index > 0 && index < items.len() && items[index].block == items[index - 1].block {
        index -= 1;
    }
    index
}
