//! Decisions of one request that later ones depend on. Both values are stored with the
//! conversation, so their field names are a contract.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use haft_types::{ContentHash, MessageId};
use serde::{Deserialize, Serialize};

use crate::build::rounds::ArchiveCut;

/// The parts of a conversation that were left out so far because room was short. Store the value
/// with the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cleared {
    /// The safe zone, in tokens, for which the decisions were made. A larger safe zone, for example
    /// after a switch to a model with a larger window, discards the decisions.
    pub target: u64,
    /// The messages whose results or arguments are replaced by short notices.
    pub ids: BTreeSet<MessageId>,
    /// The first message after the rounds or steps that were left out; `None` if none were left
    /// out.
    pub first_kept: Option<MessageId>,
    /// The first user message that is always sent. All user messages after it are always sent, even
    /// those that precede `first_kept`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users_from: Option<MessageId>,
    /// The number of bytes kept of each result that was sent as an excerpt because the newest step
    /// alone exceeded the window.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub excerpts: BTreeMap<MessageId, u32>,
}

impl Cleared {
    /// Returns the decisions in `this` if they were made for a target of at least `target`.
    pub(crate) fn valid_for_target(this: Option<&Self>, target: u64) -> Option<&Self> {
        this.filter(|cleared| target <= cleared.target)
    }

    /// Returns the point before which messages are left out; `None` if no messages are left out.
    pub(crate) fn archive_cut(&self) -> Option<ArchiveCut> {
        Some(ArchiveCut {
            first_kept: self.first_kept?,
            users_from: self.users_from,
        })
    }
}

/// Decisions of a request that later requests depend on, in addition to [`Cleared`]. Store the
/// value with the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// The copies of reminders in request order, for `cache-aware` placement.
    pub copies: Vec<ReminderCopy>,
    /// The first round whose results are sent uncompressed, under
    /// [`Compress::WhenFree`](crate::Compress::WhenFree).
    pub compressed_rounds: u32,
}

/// A copy of a reminder, as sent in an earlier request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReminderCopy {
    /// The owner of the reminder, such as `reminder:todo`.
    pub owner: Cow<'static, str>,
    /// The text of the copy, including its heading.
    pub text: String,
    /// The hash of the text without the clock. If only the time has changed, the hash is equal, and
    /// no new copy is sent.
    pub says: ContentHash,
    /// The message of the conversation after which the copy is sent.
    pub after: MessageId,
}
