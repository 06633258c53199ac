//! Checks summaries: collects the facts that must survive an archive, and decides whether a summary
//! may replace the archived messages.
//!
//! ```text
//! archived messages ──► ledger: literals that must occur in the accepted text, each with its source message
//! a model's summary ──► refused (not in the form, empty, too large, hostile, cut, in another language), or accepted:
//!                       its lines, each with the ids of its sources + missing literals, verbatim + the ids of all messages
//! ```
//!
//! Invariants: an accepted text holds every literal of the ledger and is smaller than the messages
//! that it replaces. The fallback is made without a model and keeps both invariants, or there is
//! none.

mod check;
mod form;
mod ledger;
mod receipts;

use std::sync::Arc;

use haft_types::{Entry, TokenCounter};

use crate::reduce::compaction::{CompactionPlan, SummaryRefusal};
use check::{check_content, strip_wrapping};
use form::extract_sections;
use receipts::{ArchiveIndex, ReceiptDetail};

pub use ledger::{LedgerItem, LedgerKind, OpenWork, collect_ledger, find_missing};

/// The lower bound of a summary's token limit, for small archives: the headings alone take a
/// hundred tokens.
const MIN_TOKEN_LIMIT: u64 = 1_000;
/// The token limit divided by this is the maximum size of the list with the subjects of all
/// messages.
const SUBJECTS_DIVISOR: u64 = 25;

/// Checks a summary and returns the text that replaces the archive: the summary, the ledger's
/// literals that it lacks, and receipts. `session` is the whole conversation, in which all of the
/// user's messages, archived or not, determine the language.
pub fn accept_summary(
    summary: &str,
    plan: &CompactionPlan,
    session: &[Arc<Entry>],
    ledger: &[LedgerItem],
    counter: &dyn TokenCounter,
) -> Result<String, SummaryRefusal> {
    let summary = strip_wrapping(summary);
    check_content(summary, plan.messages.iter().chain(session))?;
    let archive = ArchiveIndex::new(plan);
    let mut text = format!(
        "{}\n\n{}",
        format_title(plan),
        archive.add_sources(&extract_sections(summary)?)
    );
    let missing = find_missing(ledger, &text);
    if !missing.is_empty() {
        text.push_str("\n\n## Kept Verbatim\n");
        for item in missing {
            text.push_str(&item.format_line());
        }
    }
    let text = text.trim_end();
    append_message_list(text, plan, &archive, counter).ok_or_else(|| SummaryRefusal::TooLarge {
        tokens: counter.count_text(text).into(),
        limit: token_limit(plan),
    })
}

/// Builds the text that replaces the archive if no summary was accepted: the ledger, and receipts
/// if they fit. Returns `None` if the ledger alone takes as much room as the archive.
pub fn build_fallback_summary(
    plan: &CompactionPlan,
    ledger: &[LedgerItem],
    counter: &dyn TokenCounter,
) -> Option<String> {
    let mut text = format!(
        "{}\n\nMade without a model: what had to be kept, word for word.\n",
        format_title(plan)
    );
    for item in ledger {
        text.push_str(&item.format_line());
    }
    append_message_list(text.trim_end(), plan, &ArchiveIndex::new(plan), counter)
}

/// Formats the title of an archive and its time span.
fn format_title(plan: &CompactionPlan) -> String {
    format!("# Archived Session Summary\n\n{} to {}", plan.from, plan.to)
}

/// Appends the most detailed list of messages that fits, or no list. Returns `None` if the text is
/// too large even without a list.
fn append_message_list(
    text: &str,
    plan: &CompactionPlan,
    archive: &ArchiveIndex<'_>,
    counter: &dyn TokenCounter,
) -> Option<String> {
    let limit = token_limit(plan);
    let tokens = |text: &str| u64::from(counter.count_text(text));
    let subjects = archive.format_list(ReceiptDetail::Subjects);
    // Subjects are a convenience: a recalled message shows its own subject.
    let subjects = Some(subjects).filter(|list| {
        tokens(list) * SUBJECTS_DIVISOR <= limit.max(MIN_TOKEN_LIMIT * SUBJECTS_DIVISOR / 2)
    });
    let lists = subjects.into_iter().chain([
        archive.format_list(ReceiptDetail::Ids),
        archive.format_list(ReceiptDetail::Rounds),
        String::new(),
    ]);
    lists
        .map(|list| format!("{text}{list}"))
        .find(|whole| tokens(whole) < limit)
}

/// Returns the number of tokens below which the text that replaces the archive must stay.
fn token_limit(plan: &CompactionPlan) -> u64 {
    plan.messages
        .iter()
        .map(|entry| u64::from(entry.tokens))
        .sum::<u64>()
        .max(MIN_TOKEN_LIMIT)
}

#[cfg(test)]
mod tests;
