//! Finds the breaks of the cached prefix by comparing the requests that were sent.
//!
//! A cause that was noted when a request was sent takes precedence; otherwise it is inferred from
//! the segments. A cause that contradicts the conversation is dropped, and a break without a cause
//! is a bug.

use std::collections::HashSet;
use std::time::Duration;

use haft_agent::sent_from_outline;
use haft_context::{
    Break, BreakPrice, Cause, EarlierRequest, LoggedInput, compare_logged_requests,
};
use haft_store::RequestOutline;
use haft_types::{LlmMetadata, Message, MessageId, ModelSpec};
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
    pub fn price(&self) -> BreakPrice {
        self.found.price
    }
}

/// Finds every break of a log. `messages` are the current messages of the conversation, and
/// `replies` the metadata of each request's reply, with which the breaks are priced.
pub fn find_breaks(
    outlines: &[RequestOutline],
    models: &[ModelSpec],
    messages: &[Message],
    replies: &[Option<&LlmMetadata>],
) -> Vec<PrefixBreakReport> {
    let stored: HashSet<_> = messages.iter().map(|message| message.message_id).collect();
    let broken = |index: usize| {
        let outline = &outlines[index];
        if extends(&outlines[index - 1], outline) {
            return None;
        }
        let (last, _) = sent_from_outline(&outlines[index - 1]);
        let (sent, tool_tokens) = sent_from_outline(outline);
        // Only a switch of the model leaves an older request as the newest one to a model.
        let own = outlines[..index]
            .iter()
            .rfind(|one| one.summary.model == outline.summary.model)
            .filter(|_| outlines[index - 1].summary.model != outline.summary.model);
        let own = own.map(|own| (sent_from_outline(own).0, idle_time(own, outline)));
        let reply = replies.get(index).copied().flatten();
        let now = LoggedInput {
            sent: &sent,
            model: &models[index],
            tool_tokens,
            billed: reply.map(LlmMetadata::usage),
        };
        let before = EarlierRequest {
            sent: &last,
            idle: idle_time(&outlines[index - 1], outline),
        };
        // The log contains neither policies nor edits, so a change of them counts only if it was
        // noted.
        let prefix = compare_logged_requests(now, before, || {
            own.as_ref()
                .map(|(sent, idle)| EarlierRequest { sent, idle: *idle })
        });
        let found = prefix.broken?;
        let noted = outline.summary.cause.as_deref().and_then(parse_cause);
        let cause = noted
            .or_else(|| Some(found.cause).filter(|cause| is_plausible(*cause, &found, &stored)));
        Some(PrefixBreakReport {
            request: outline.summary.number,
            kept: prefix.kept,
            cause,
            found,
        })
    };
    (1..outlines.len().min(models.len()))
        .filter_map(broken)
        .collect()
}

/// Returns the time between two requests.
fn idle_time(earlier: &RequestOutline, later: &RequestOutline) -> Option<Duration> {
    let idle = later
        .summary
        .sent_at
        .duration_since(earlier.summary.sent_at);
    idle.try_into().ok()
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
