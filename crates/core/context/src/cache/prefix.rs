//! The prefix proof: against the request before, a request only appends, or the break has a name.
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

use crate::build::rounds::{CLEARED, COMPRESSED, EXCERPT, LEDGER, SUMMARY};
use crate::policy::Policy;
use crate::reduce::edits::EditState;

/// What a request looked like to a prefix cache. Keep it until the next request of the
/// conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The model, as `provider/model`.
    pub model: String,
    /// The hash of the tools.
    pub tools: ContentHash,
    /// The hash of the policy it was built under.
    pub policy: ContentHash,
    /// The hash of the edits it was built under; absent without any.
    #[serde(default)]
    pub edits: Option<ContentHash>,
    /// Its messages.
    pub segments: Vec<SentSegment>,
}

impl Sent {
    pub(crate) fn of(
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
            policy: policy.for_model(model).hash(),
            edits: edits.filter(|edits| !edits.is_empty()).map(EditState::hash),
            segments: request.segments.iter().map(segment).collect(),
        }
    }

    /// Takes over where the request was marked: what to mark depends on the comparison, so it comes
    /// last.
    pub(crate) fn copy_boundaries(&mut self, request: &Request) {
        for (sent, segment) in self.segments.iter_mut().zip(&request.segments) {
            sent.boundary = segment.boundary;
        }
    }
}

/// Why a request is not an extension of the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Another model is asked; it has seen nothing.
    ModelSwitched,
    /// Tools were added, removed or changed.
    ToolsChanged,
    /// The system message changed.
    SystemChanged,
    /// A rules file or another document changed.
    DocumentsChanged,
    /// A reminder says something else.
    RemindersChanged,
    /// The run of reminders stands elsewhere.
    RemindersMoved,
    /// Results of a finished round were compressed.
    Compression,
    /// Old results or arguments were cleared.
    Pruning,
    /// What was cleared is sent whole again.
    PruningUndone,
    /// Rounds were archived behind a summary.
    Compaction,
    /// Messages were marked as deleted.
    MessagesDeleted,
    /// People dropped, masked, summarised or restored something.
    ContextEdited,
    /// Messages left out before are sent again.
    MessagesRestored,
    /// The request was too large, and more than pruning was done.
    TooLarge,
    /// A message was changed in the store.
    MessageEdited,
    /// The conversation was taken back to an earlier message.
    Rewound,
    /// The way requests are built was configured differently.
    PolicyChanged,
    /// The execute view is written anew for every request.
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

/// A request against the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct Prefix {
    /// How many segments are the same, from the front.
    pub kept: usize,
    /// Where and why it is not an extension.
    pub broken: Option<Break>,
}

/// Where and why a request is not an extension of the one before.
#[derive(Clone, Debug, PartialEq)]
pub struct Break {
    /// Why.
    pub cause: Cause,
    /// The first segment that differs, as it was sent last.
    pub first: SentSegment,
    /// Tokens that were sent before, are sent again and cannot be read from the cache.
    pub tokens: u64,
    /// What they are billed at more than if they were read from the cache, in USD; absent without
    /// prices.
    pub cost: Option<f64>,
}

/// What the engine did to this request, as far as segments do not show it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeliberateChanges {
    pub(crate) deleted: bool,
    pub(crate) ladder: bool,
}

/// Compares a request with the one before. What a break costs is settled in
/// [`pricing`](crate::cache::pricing), once it is known what the provider is asked to remember.
pub(crate) fn compare(last: &Sent, now: &Sent, done: DeliberateChanges) -> Prefix {
    let pairs = last.segments.iter().zip(&now.segments);
    let same = pairs.take_while(|(old, new)| old.hash == new.hash).count();
    let outside = if last.model != now.model {
        Some(Cause::ModelSwitched)
    } else if last.tools != now.tools {
        Some(Cause::ToolsChanged)
    } else {
        None
    };
    // Tools come before everything else on every API.
    let kept = if outside.is_some() { 0 } else { same };
    let Some(first) = last.segments.get(kept) else {
        return Prefix { kept, broken: None };
    };
    let cause = outside.unwrap_or_else(|| cause(last, now, kept, done));
    Prefix {
        kept,
        broken: Some(Break {
            cause,
            first: first.clone(),
            tokens: 0,
            cost: None,
        }),
    }
}

/// Why the segments differ at `index`.
fn cause(last: &Sent, now: &Sent, index: usize, done: DeliberateChanges) -> Cause {
    let old = &last.segments[index];
    let Some(new) = now.segments.get(index) else {
        return if last.edits == now.edits {
            removed(last, now, done)
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
        let in_place = old.layer == new.layer || !has_run(last) || !has_run(now);
        return if in_place {
            Cause::RemindersChanged
        } else {
            Cause::RemindersMoved
        };
    }
    // A summary may also take the place of another one, which stood in for it.
    if old.message != new.message
        && [&old.owner, &new.owner]
            .into_iter()
            .any(|owner| owner == SUMMARY)
    {
        return Cause::Compaction;
    }
    if new.owner == LEDGER && old.message != new.message {
        return Cause::TooLarge;
    }
    if old.message == new.message {
        return changed_in_place(old, new, last.policy != now.policy);
    }
    if now
        .segments
        .iter()
        .any(|segment| segment.message == old.message)
    {
        return Cause::MessagesRestored;
    }
    removed(last, now, done)
}

fn has_run(sent: &Sent) -> bool {
    sent.segments
        .iter()
        .any(|segment| segment.layer == Layer::Reminders)
}

/// Why the same message is sent in another form.
fn changed_in_place(old: &SentSegment, new: &SentSegment, policy_changed: bool) -> Cause {
    match (old.owner.as_ref(), new.owner.as_ref()) {
        (_, CLEARED) if old.owner != CLEARED => Cause::Pruning,
        (CLEARED, _) if new.owner != CLEARED => Cause::PruningUndone,
        (_, EXCERPT) if old.owner != EXCERPT => Cause::TooLarge,
        (EXCERPT, _) if new.owner != EXCERPT => Cause::PruningUndone,
        (_, COMPRESSED) if old.owner != COMPRESSED => Cause::Compression,
        _ if policy_changed => Cause::PolicyChanged,
        _ => Cause::MessageEdited,
    }
}

/// Why messages of the last request are not in this one.
fn removed(last: &Sent, now: &Sent, done: DeliberateChanges) -> Cause {
    if done.ladder {
        Cause::TooLarge
    } else if done.deleted {
        Cause::MessagesDeleted
    } else if last.policy != now.policy {
        Cause::PolicyChanged
    } else {
        // Nothing was left out on purpose, so the messages are not in the conversation any more.
        Cause::Rewound
    }
}

#[cfg(test)]
mod tests;
