//! `haft context why`: lists every break of the cached prefix with its cause and price.
//!
//! Breaks are found by comparing the requests that were sent. A cause that was noted when a request
//! was sent takes precedence; otherwise it is inferred from the segments. A cause that contradicts
//! the conversation is dropped, and a break without a cause is a bug.

use std::collections::HashSet;
use std::fmt::Write as _;

use haft_context::{Break, Cause, compare_logged_requests};
use haft_engine::sent_from_outline;
use haft_store::RequestOutline;
use haft_text::{format_dollars, format_thousands};
use haft_types::{Message, MessageId, ModelSpec};
use serde::Deserialize;
use serde::de::value::{Error as ValueError, StrDeserializer};
use serde_json::{Value, json};

use super::request_log::RequestLogReader;
use super::text::{Countable, format_count};
use crate::commands::context::WhyArgs;
use crate::haft::Haft;
use crate::output::{self, TextTable};

/// A break of the cached prefix.
pub(super) struct PrefixBreakReport {
    pub(super) request: u64,
    /// The number of unchanged segments before the break.
    kept: usize,
    /// The cause, or `None` if nothing explains the break.
    pub(super) cause: Option<Cause>,
    found: Break,
}

#[cfg(feature = "serve")]
impl PrefixBreakReport {
    /// Returns the tokens that the break makes the request send again, and their extra cost.
    pub(super) fn price(&self) -> (u64, Option<f64>) {
        (self.found.tokens, self.found.cost)
    }
}

pub(super) async fn run(haft: &Haft, args: &WhyArgs) -> anyhow::Result<()> {
    let log =
        RequestLogReader::open(haft, args.conversation.as_deref(), &args.output.common).await?;
    if let Some(number) = args.request.filter(|number| *number > log.requests) {
        return Err(log.unknown_request_error(number));
    }
    let outlines = log.outlines().await?;
    let mut breaks = find_breaks(
        &outlines,
        &log.find_models(&outlines)?,
        &log.messages().await?,
    );
    breaks.retain(|one| args.request.is_none_or(|number| number == one.request));
    if args.output.json {
        return output::print_json(&breaks_to_json(&log, &breaks));
    }
    output::print_text(&breaks_to_text(&log, &breaks))
}

/// Finds every break of a log. `messages` are the current messages of the conversation.
pub(super) fn find_breaks(
    outlines: &[RequestOutline],
    models: &[ModelSpec],
    messages: &[Message],
) -> Vec<PrefixBreakReport> {
    let stored: HashSet<_> = messages.iter().map(|message| message.message_id).collect();
    let pairs = outlines.windows(2).zip(models.iter().skip(1));
    let broken = |(pair, model): (&[RequestOutline], &ModelSpec)| {
        let [last, now] = pair else { return None };
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

fn sum_breaks(breaks: &[PrefixBreakReport]) -> (u64, Option<f64>) {
    let tokens = breaks.iter().map(|one| one.found.tokens).sum();
    // The total cost is unknown unless every break has a price.
    (tokens, breaks.iter().map(|one| one.found.cost).sum())
}

fn breaks_to_json(log: &RequestLogReader, breaks: &[PrefixBreakReport]) -> Value {
    let (tokens, cost) = sum_breaks(breaks);
    let one = |one: &PrefixBreakReport| {
        json!({
            "request": one.request,
            "cause": one.cause,
            "message": one.cause.map(|cause| cause.to_string()),
            "kept_segments": one.kept,
            "first": {
                "index": one.kept + 1,
                "layer": one.found.first.layer,
                "owner": one.found.first.owner,
                "message_id": one.found.first.message,
            },
            "tokens": one.found.tokens,
            "cost": one.found.cost,
        })
    };
    json!({
        "conversation_id": log.conversation.id,
        "requests": log.requests,
        "breaks": breaks.iter().map(one).collect::<Vec<_>>(),
        "unexplained": breaks.iter().filter(|one| one.cause.is_none()).count(),
        "tokens": tokens,
        "cost": cost,
    })
}

fn breaks_to_text(log: &RequestLogReader, breaks: &[PrefixBreakReport]) -> String {
    let requests = format_count(log.requests as usize, Countable::Request);
    if breaks.is_empty() {
        return format!(
            "{}\n",
            text!(
                "context-why-none",
                requests,
                conversation = log.conversation.id
            )
        );
    }
    let mut table = TextTable::new(&[
        text!("table-request"),
        text!("table-cause"),
        text!("table-first-difference"),
        text!("table-sent-again"),
        text!("table-cost"),
    ]);
    for one in breaks {
        let first = &one.found.first;
        table.add_row(vec![
            one.request.to_string(),
            one.cause.map_or_else(
                || text!("context-why-no-cause").to_owned(),
                output::localize_text,
            ),
            text!(
                "context-why-place",
                at = one.kept + 1,
                owner = output::localize_text(&first.owner),
                message = first.message.short_id()
            ),
            text!(
                "context-why-tokens",
                tokens = format_thousands(one.found.tokens)
            ),
            one.found
                .cost
                .map_or_else(|| "-".to_owned(), format_dollars),
        ]);
    }
    let (tokens, cost) = sum_breaks(breaks);
    let cost = cost.map_or_else(String::new, |cost| {
        text!("context-why-cost", cost = format_dollars(cost))
    });
    let breaks_counted = format_count(breaks.len(), Countable::Break);
    let sum = text!(
        "context-why-sum",
        breaks = breaks_counted,
        requests,
        tokens = format_thousands(tokens),
        cost
    );
    let mut text = format!("{table}\n{sum}\n");
    let unexplained: Vec<_> = breaks
        .iter()
        .filter(|one| one.cause.is_none())
        .map(|one| one.request.to_string())
        .collect();
    if !unexplained.is_empty() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{}",
            text!(
                "context-why-unexplained",
                number = output::join_names(&unexplained)
            )
        );
    }
    text
}
