//! The prefix check: a request either only appends to the previous one, or the break has a named
//! cause.
//!
//! ```text
//! last   S U A T * A T
//! now    S U A T A T * A T        kept: S U A T — then the run has moved: A T is sent anew
//! ```
//!
//! Segments are compared by hash; equal segments are equal bytes on every API.

use std::borrow::Cow;
use std::fmt;

use haft_types::{ContentHash, Layer, ModelSpec, Request, Segment, SentSegment};
use serde::{Deserialize, Serialize};

use crate::build::rounds::{
    CLEARED_OWNER, COMPRESSED_OWNER, EXCERPT_OWNER, LEDGER_OWNER, SUMMARY_OWNER,
};
use crate::cache::pricing::{BreakPrice, PriceBasis};
use crate::policy::Policy;
use crate::reduce::edits::EditState;

/// The outline of a sent request: the facts that decide whether a prefix cache can serve the next
/// request. Keep the outline until the next request of the conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The model, as `provider/model`.
    pub model: String,
    /// The hash of all tools in the request.
    pub tools: ContentHash,
    /// The hash of the context policy in effect.
    pub policy: ContentHash,
    /// The hash of the user's edits of the context in effect; `None` if there were no edits.
    #[serde(default)]
    pub edits: Option<ContentHash>,
    /// The outlines of the segments, in sending order.
    pub segments: Vec<SentSegment>,
}

impl Sent {
    pub(crate) fn from_request(
        request: &Request,
        model: &ModelSpec,
        policy: &Policy,
        edits: Option<&EditState>,
    ) -> Self {
        let segment = |segment: &Segment| SentSegment {
            layer: segment.layer,
            owner: Cow::Borrowed(segment.owner),
            message: segment.entry.message.message_id,
            hash: segment.entry.hash,
            tokens: segment.entry.tokens,
            boundary: segment.boundary,
        };
        Self {
            model: model.full_name(),
            tools: request.tools.hash,
            policy: policy.hash_for(model),
            edits: edits.filter(|edits| !edits.is_empty()).map(EditState::hash),
            segments: request.segments.iter().map(segment).collect(),
        }
    }

    /// Copies the cache marks of `request` into this outline. The marks are set after the outline
    /// was created, because they depend on the comparison with the previous request.
    pub(crate) fn copy_boundaries(&mut self, request: &Request) {
        for (sent, segment) in self.segments.iter_mut().zip(&request.segments) {
            sent.boundary = segment.boundary;
        }
    }
}

/// The reason why a request does not extend the previous request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The request goes to another model, whose cache is empty.
    ModelSwitched,
    /// Tools were added, removed or changed.
    ToolsChanged,
    /// The system message changed.
    SystemChanged,
    /// A rules file or another document changed.
    DocumentsChanged,
    /// The text of a reminder changed.
    RemindersChanged,
    /// The run of reminders moved.
    RemindersMoved,
    /// Results of a finished round were compressed.
    Compression,
    /// Old results or arguments were replaced by notices.
    Pruning,
    /// Messages that had been cleared by pruning are sent whole again.
    PruningUndone,
    /// Older rounds were archived and replaced by a summary.
    Compaction,
    /// Messages were marked as deleted.
    MessagesDeleted,
    /// The user dropped, masked, summarized or restored messages of the context.
    ContextEdited,
    /// Messages that earlier requests left out are sent again.
    MessagesRestored,
    /// The request was too large even after pruning, so more of it was left out.
    TooLarge,
    /// A message was changed in the store.
    MessageEdited,
    /// The conversation was rewound to an earlier message.
    Rewound,
    /// The context settings changed.
    PolicyChanged,
    /// The execute view is rebuilt for every request.
    ViewRewritten,
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ModelSwitched => "the model was switched",
            Self::ToolsChanged => "the list of tools changed",
            Self::SystemChanged => "the system message changed",
            Self::DocumentsChanged => "a rules file or another document changed",
            Self::RemindersChanged => "a reminder changed",
            Self::RemindersMoved => "the reminders moved",
            Self::Compression => "results of a finished round were compressed",
            Self::Pruning => "old results were cleared",
            Self::PruningUndone => "cleared results are sent whole again",
            Self::Compaction => "older rounds were archived",
            Self::MessagesDeleted => "messages were deleted",
            Self::ContextEdited => "the context was edited",
            Self::MessagesRestored => "messages were restored",
            Self::TooLarge => "the request was too large",
            Self::MessageEdited => "a message was edited",
            Self::Rewound => "the conversation was taken back",
            Self::PolicyChanged => "the context settings changed",
            Self::ViewRewritten => "the execute view is written anew each time",
        })
    }
}

/// The result of comparing a request with the previous one.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefix {
    /// The number of unchanged segments at the beginning.
    pub kept: usize,
    /// The cache break; `None` if the request extends the previous one.
    pub broken: Option<Break>,
}

/// The position, cause and cost of a cache break.
#[derive(Clone, Debug, PartialEq)]
pub struct Break {
    pub cause: Cause,
    /// The first segment that differs, as it was in the previous request.
    pub first: SentSegment,
    pub price: BreakPrice,
}

/// The changes that were made on purpose but cannot be recognized from a request's segments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliberateChanges {
    pub(crate) deleted: bool,
    pub(crate) ladder: bool,
}

/// Compares a request with the previous one. [`pricing`](crate::cache::pricing) computes the cost
/// of a break later, once the marks of the request are set.
pub(crate) fn compare_requests(last: &Sent, now: &Sent, done: DeliberateChanges) -> Prefix {
    let outside = if last.model != now.model {
        Some(Cause::ModelSwitched)
    } else if last.tools != now.tools {
        Some(Cause::ToolsChanged)
    } else {
        None
    };
    let kept = count_kept_segments(last, now);
    let Some(first) = last.segments.get(kept) else {
        return Prefix { kept, broken: None };
    };
    let cause = outside.unwrap_or_else(|| find_cause(last, now, kept, done));
    Prefix {
        kept,
        broken: Some(Break {
            cause,
            first: first.clone(),
            price: BreakPrice {
                tokens: 0,
                cost: None,
                basis: PriceBasis::Forecast,
            },
        }),
    }
}

/// Returns the number of segments at the start of `now` that repeat those of `earlier`; 0 if the
/// requests differ in the model or the tools, because tools come before everything else on every
/// API.
pub(crate) fn count_kept_segments(earlier: &Sent, now: &Sent) -> usize {
    if earlier.model != now.model || earlier.tools != now.tools {
        return 0;
    }
    count_equal_segments(earlier, now)
}

/// Returns the number of segments at the start of `now` that repeat those of `earlier`, whatever
/// the requests' models and tools are.
pub(crate) fn count_equal_segments(earlier: &Sent, now: &Sent) -> usize {
    let pairs = earlier.segments.iter().zip(&now.segments);
    pairs.take_while(|(old, new)| old.hash == new.hash).count()
}

/// Returns the reason why the segments differ at `index`.
fn find_cause(last: &Sent, now: &Sent, index: usize, done: DeliberateChanges) -> Cause {
    let old = &last.segments[index];
    let Some(new) = now.segments.get(index) else {
        return if last.edits == now.edits {
            find_removal_cause(last, now, done)
        } else {
            Cause::ContextEdited
        };
    };
    if new.owner.starts_with("view:") || old.owner.starts_with("view:") {
        return Cause::ViewRewritten;
    }
    let one_of = |layer| old.layer == layer || new.layer == layer;
    if one_of(Layer::System) {
        return if done.ladder {
            Cause::TooLarge
        } else {
            Cause::SystemChanged
        };
    }
    if one_of(Layer::Documents) {
        return if done.ladder {
            Cause::TooLarge
        } else {
            Cause::DocumentsChanged
        };
    }
    if last.edits != now.edits {
        return Cause::ContextEdited;
    }
    if one_of(Layer::Reminders) {
        let in_place = old.layer == new.layer || !has_reminders(last) || !has_reminders(now);
        return if in_place {
            Cause::RemindersChanged
        } else {
            Cause::RemindersMoved
        };
    }
    // A summary may also replace another summary.
    if old.message != new.message
        && [&old.owner, &new.owner]
            .into_iter()
            .any(|owner| owner == SUMMARY_OWNER)
    {
        return Cause::Compaction;
    }
    if new.owner == LEDGER_OWNER && old.message != new.message {
        return Cause::TooLarge;
    }
    if old.message == new.message {
        return find_change_cause(old, new, last.policy != now.policy);
    }
    if now
        .segments
        .iter()
        .any(|segment| segment.message == old.message)
    {
        return Cause::MessagesRestored;
    }
    find_removal_cause(last, now, done)
}

fn has_reminders(sent: &Sent) -> bool {
    sent.segments
        .iter()
        .any(|segment| segment.layer == Layer::Reminders)
}

/// Returns the reason why a message is sent in a form that differs from the previous request.
fn find_change_cause(old: &SentSegment, new: &SentSegment, policy_changed: bool) -> Cause {
    match (old.owner.as_ref(), new.owner.as_ref()) {
        (_, CLEARED_OWNER) if old.owner != CLEARED_OWNER => Cause::Pruning,
        (CLEARED_OWNER, _) if new.owner != CLEARED_OWNER => Cause::PruningUndone,
        (_, EXCERPT_OWNER) if old.owner != EXCERPT_OWNER => Cause::TooLarge,
        (EXCERPT_OWNER, _) if new.owner != EXCERPT_OWNER => Cause::PruningUndone,
        (_, COMPRESSED_OWNER) if old.owner != COMPRESSED_OWNER => Cause::Compression,
        _ if policy_changed => Cause::PolicyChanged,
        _ => Cause::MessageEdited,
    }
}

/// Returns the reason why messages of the previous request are missing in the current one.
fn find_removal_cause(last: &Sent, now: &Sent, done: DeliberateChanges) -> Cause {
    if done.ladder {
        Cause::TooLarge
    } else if done.deleted {
        Cause::MessagesDeleted
    } else if last.policy != now.policy {
        Cause::PolicyChanged
    } else {
        // Nothing was left out on purpose, so the conversation no longer contains the messages.
        Cause::Rewound
    }
}

#[cfg(test)]
mod tests;
