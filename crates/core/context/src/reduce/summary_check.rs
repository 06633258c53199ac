//! The compaction gate: what must survive an archive, and whether a summary may stand for it.
//!
//! ```text
//! archived messages ──► ledger: literals that must occur in the accepted text, each with the message it comes from
//! a model's summary ──► refused (not in the form, empty, too large, hostile, cut, in another language), or accepted:
//!                       its lines, each with the ids it comes from + what it leaves out, verbatim + the ids of all messages
//! ```
//!
//! Invariants: whatever is accepted holds every literal of the ledger and is smaller than what it
//! stands for. The fallback is made without a model and keeps both, or there is none.

mod check;
mod form;
mod ledger;
mod receipts;

use std::sync::Arc;

use haft_types::{Entry, TokenCounter};

use crate::reduce::compaction::{CompactionPlan, SummaryRefusal};
use check::{check, unwrapped};
use form::shaped;
use receipts::{ArchiveIndex, ReceiptDetail};

pub use ledger::{LedgerItem, LedgerKind, OpenWork, ledger, missing};

/// Archives below this many tokens may be summarised in as many: headings alone take a hundred.
const FLOOR: u64 = 1_000;
/// The share of the archive that may be spent on saying what each message is about.
const SUBJECTS: u64 = 25;

/// The text that stands for the archive: the summary, what it leaves out, and receipts. `session`
/// is the whole conversation: what the user said in it tells the language, archived or not.
pub fn accept(
    summary: &str,
    plan: &CompactionPlan,
    session: &[Arc<Entry>],
    ledger: &[LedgerItem],
    counter: &dyn TokenCounter,
) -> Result<String, SummaryRefusal> {
    let summary = unwrapped(summary);
    check(summary, plan.messages.iter().chain(session))?;
    let archive = ArchiveIndex::new(plan);
    let mut text = format!("{}\n\n{}", title(plan), archive.sign(&shaped(summary)?));
    let missing = missing(ledger, &text);
    if !missing.is_empty() {
        text.push_str("\n\n## Kept Verbatim\n");
        for item in missing {
            text.push_str(&item.line());
        }
    }
    let text = text.trim_end();
    with_list(text, plan, &archive, counter).ok_or_else(|| SummaryRefusal::TooLarge {
        tokens: counter.text(text).into(),
        limit: limit(plan),
    })
}

/// What stands for the archive when no summary could be accepted: the ledger, and receipts as far
/// as there is room. None when the ledger alone takes as much room as what it would stand for.
pub fn fallback(
    plan: &CompactionPlan,
    ledger: &[LedgerItem],
    counter: &dyn TokenCounter,
) -> Option<String> {
    let mut text = format!(
        "{}\n\nMade without a model: what had to be kept, word for word.\n",
        title(plan)
    );
    for item in ledger {
        text.push_str(&item.line());
    }
    with_list(text.trim_end(), plan, &ArchiveIndex::new(plan), counter)
}

/// The title of an archive and its time span.
fn title(plan: &CompactionPlan) -> String {
    format!("# Archived Session Summary\n\n{} to {}", plan.from, plan.to)
}

/// The text with as full a list of the messages as there is room for, or without one; none when the
/// text alone is too large.
fn with_list(
    text: &str,
    plan: &CompactionPlan,
    archive: &ArchiveIndex<'_>,
    counter: &dyn TokenCounter,
) -> Option<String> {
    let limit = limit(plan);
    let tokens = |text: &str| u64::from(counter.text(text));
    let subjects = archive.list(ReceiptDetail::Subjects);
    // Subjects are a convenience: what a message is about can be seen when it is brought back.
    let subjects =
        Some(subjects).filter(|list| tokens(list) * SUBJECTS <= limit.max(FLOOR * SUBJECTS / 2));
    let lists = subjects.into_iter().chain([
        archive.list(ReceiptDetail::Ids),
        archive.list(ReceiptDetail::Rounds),
        String::new(),
    ]);
    lists
        .map(|list| format!("{text}{list}"))
        .find(|whole| tokens(whole) < limit)
}

/// What the accepted text must stay below.
fn limit(plan: &CompactionPlan) -> u64 {
    plan.messages
        .iter()
        .map(|entry| u64::from(entry.tokens))
        .sum::<u64>()
        .max(FLOOR)
}

#[cfg(test)]
mod tests;
