//! Decisions of one request that later ones depend on. Both values are stored with the
//! conversation, so their field names are a contract.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use haft_types::{ContentHash, MessageId};
use serde::{Deserialize, Serialize};

use crate::build::rounds::ArchiveCut;

/// The parts left out so far because room was short. Store the value with the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cleared {
    /// The token target that the decisions were made for. A larger target, for example after a
    /// switch to a larger window, discards them.
    pub target: u64,
    /// The messages whose content was cleared.
    pub ids: BTreeSet<MessageId>,
    /// The first message that is still sent, if older rounds or steps were left out.
    pub first_kept: Option<MessageId>,
    /// The first user message that is always sent. The user's later messages are sent, too, even if
    /// they lie before `first_kept`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users_from: Option<MessageId>,
    /// The bytes kept of each result that was sent as an excerpt because the newest step alone
    /// exceeded the window.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub excerpts: BTreeMap<MessageId, u32>,
}

impl Cleared {
    /// Returns the decisions if they still hold for `target`.
    pub(crate) fn valid_for_target(this: Option<&Self>, target: u64) -> Option<&Self> {
        this.filter(|cleared| target <= cleared.target)
    }

    /// Returns the end of the messages that are left out.
    pub(crate) fn archive_cut(&self) -> Option<ArchiveCut> {
        Some(ArchiveCut {
            first_kept: self.first_kept?,
            users_from: self.users_from,
        })
    }
}

/// Decisions for later requests besides [`Cleared`]. Store the value with the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// Copies of reminders in request order, for `cache-aware` placement.
    pub copies: Vec<ReminderCopy>,
    /// The first round whose results are not compressed, if compression waits until it is free.
    pub compressed_rounds: u32,
}

/// A copy of a reminder as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReminderCopy {
    /// The owner of the copy, such as `reminder:todo`.
    pub owner: Cow<'static, str>,
    /// The text, including its heading.
    pub text: String,
    /// The hash of the text without the clock: a new minute alone needs no new copy.
    pub says: ContentHash,
    /// The conversation's message that the copy follows.
    pub after: MessageId,
}
