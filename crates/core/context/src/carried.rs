//! What one request decides for later ones. Both values are kept with the conversation, so their
//! field names are a contract.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use haft_types::{ContentHash, MessageId};
use serde::{Deserialize, Serialize};

use crate::build::rounds::ArchiveCut;

/// What has been left out so far because room was short. Keep it with the conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cleared {
    /// The target the decisions were made for. A larger one, as after a switch to a larger window,
    /// takes them back.
    pub target: u64,
    /// The cleared messages.
    pub ids: BTreeSet<MessageId>,
    /// The first message that is still sent, where older rounds or steps were left out.
    pub first_kept: Option<MessageId>,
    /// From here on what the user said is sent nevertheless.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub users_from: Option<MessageId>,
    /// The bytes kept of each result that was sent as an excerpt, because the newest step alone
    /// exceeded the window.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub excerpts: BTreeMap<MessageId, u32>,
}

impl Cleared {
    /// The decisions, as long as they hold for this target.
    pub(crate) fn valid(this: Option<&Self>, target: u64) -> Option<&Self> {
        this.filter(|cleared| target <= cleared.target)
    }

    /// Where the messages end that are left out.
    pub(crate) fn cut(&self) -> Option<ArchiveCut> {
        Some(ArchiveCut {
            first_kept: self.first_kept?,
            users_from: self.users_from,
        })
    }
}

/// What a request decides for later ones, besides what is [cleared](Cleared). Keep it with the
/// conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Carried {
    /// Copies of reminders in the order they stand, for `cache-aware` placement.
    pub copies: Vec<ReminderCopy>,
    /// Results of rounds before this one are compressed, where that waits until it is free.
    pub compressed_rounds: u32,
}

/// A copy of a reminder as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReminderCopy {
    /// Who put it there, such as `reminder:todo`.
    pub owner: Cow<'static, str>,
    /// Its text, heading included.
    pub text: String,
    /// The hash of what it says, the clock left out: a new minute alone is no reason for a new
    /// copy.
    pub says: ContentHash,
    /// The message of the conversation it stands behind.
    pub after: MessageId,
}
