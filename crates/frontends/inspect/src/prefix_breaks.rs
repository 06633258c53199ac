//! Finds the breaks of the cached prefix by comparing the requests that were sent.
//!
//! A cause that was noted when a request was sent takes precedence; otherwise it is inferred from
//! the segments. A cause that contradicts the conversation is dropped, and a break without a cause
//! is a bug.

use std::collections::HashSet;

use haft_agent::sent_from_outline;
use haft_context::{Break, Cause, compare_logged_requests};
use haft_store::RequestOutline;
use haft_types::{Message, MessageId, ModelSpec};
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};

use crate::localize_text;

/// A break of the cached prefix.
pub struct PrefixBreakReport {
    pub request: u64,
    /// The number of unchanged segments before the break.
    pub kept: usize,
    /// The cause, or `None` if nothing explains the break.
    pub cause: Option<Cause>,
    pub found: Break,
}

impl PrefixBreakReport {
    /// Returns the cause in the user's language.
    pub fn cause_text(&self) -> String {
        self.cause
            .map_or_else(|| text!("inspect-why-no-cause").to_owned(), localize_text)
    }

    /// Returns the tokens that the break makes the request send again, and their extra cost.
    pub fn price(&self) -> (u64, Option<f64>) {
        (self.found.tokens, self.found.cost)
    }
}

/// Finds every break of a log. `messages` are the current messages of the conversation.
pub fn find_breaks(
    outlines: &[RequestOutline],
    models: &[ModelSpec],
    messages: &[Message],
) -> Vec<PrefixBreakReport> {
    let stored: HashSet<_> = messages.iter().map(|message| message.message_id).collect();
    let pairs = outlines.windows(2).zip(models.iter().skip(1));
    let broken = |(pair, model): (&[RequestOutline], &ModelSpec)| {
        let [last, now] = pair else { return None };
        if extends(last, now) {
            return None;
        }
        let (last, _) = sent_from_outline(last);
        let (sent, tools) = sent_from_outline(now);
        // The log contains neither policies nor edits, so a change of them counts only if it was
        // noted.
        let prefix = compare_logged_requests(&last, &sent, model, tools);
        let found = prefix.broken?;
        let noted = now.summary.cause.as_deref().and_then(parse_cause);
        let cause = noted
            .or_else(|| Some(found.cause).filter(|cause| is_plausible(*cause, &found, &stored)));
        Some(PrefixBreakReport {
            request: now.summary.number,
            kept: prefix.kept,
            cause,
            found,
        })
    };
    pairs.filter_map(broken).collect()
}

/// True if a request repeats the previous one unchanged and only appends to it. Most requests do,
/// and their lists of segments are not copied for the comparison.
fn extends(last: &RequestOutline, now: &RequestOutline) -> bool {
    last.summary.model == now.summary.model
        && last.tools == now.tools
        && last.segments.common_prefix_len(&now.segments) == last.segments.len()
}

/// True if the stored messages agree with a cause that was inferred from the segments.
fn is_plausible(cause: Cause, found: &Break, stored: &HashSet<MessageId>) -> bool {
    match cause {
        // Rewound messages are no longer part of the conversation.
        Cause::Rewound => !stored.contains(&found.first.message),
        // Stored messages are never changed in place, so the message was not edited.
        Cause::MessageEdited => false,
        Cause::ModelSwitched
        | Cause::ToolsChanged
        | Cause::SystemChanged
        | Cause::DocumentsChanged
        | Cause::RemindersChanged
        | Cause::RemindersMoved
        | Cause::Compression
        | Cause::Pruning
        | Cause::PruningUndone
        | Cause::Compaction
        | Cause::MessagesDeleted
        | Cause::ContextEdited
        | Cause::MessagesRestored
        | Cause::TooLarge
        | Cause::PolicyChanged
        | Cause::ViewRewritten => true,
    }
}

fn parse_cause(name: &str) -> Option<Cause> {
    Cause::deserialize(StrDeserializer::<ValueError>::new(name)).ok()
}
