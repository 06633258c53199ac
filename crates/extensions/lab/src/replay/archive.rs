//! Archives older messages in a replay when a session would do so, with the ledger in place of a
//! summary.
//!
//! The text is the one that a session sends when no model can summarize: all must-keep facts, word
//! for word. A model's summary would be slightly longer or shorter. The request for the summary is
//! priced like any other request, without a cache; its output is not priced.

use std::borrow::Cow;
use std::sync::Arc;

use haft_context::{
    ArchiveWish, CompactionPlan, Due, OpenWork, Policy, SummaryWish, build_fallback_summary,
    build_summary_request, collect_ledger, compaction_due, is_too_early, new_summary_message,
    plan_compaction, request_pieces,
};
use haft_types::{Entry, Hasher, MessageId, ModelSpec, Role, TokenCounter, Usage};

use crate::variant::Variant;

/// The summaries that a replay has created so far in place of archived messages.
pub(super) struct Archives<'a> {
    recorded: &'a [Arc<Entry>],
    /// Summaries, each with the number of recorded messages that precede it.
    summaries: Vec<(usize, Arc<Entry>)>,
    /// The usage of the newest request; `None` if no request followed the newest summary.
    last: Option<Usage>,
    enabled: bool,
}

/// The result of archiving older messages in a replay.
pub(super) struct NewArchive {
    /// The id of the first message that is not archived and is still sent.
    pub(super) first_kept: MessageId,
    /// The input tokens of the summary request, counted with the model's own tokenizer factor.
    pub(super) asked_tokens: u64,
}

impl<'a> Archives<'a> {
    /// Creates the state at the beginning of a replay. If the conversation contains recorded
    /// summaries, only those are used and nothing is archived.
    pub(super) fn new(recorded: &'a [Arc<Entry>], variant: &Variant) -> Self {
        let own = recorded
            .iter()
            .any(|entry| entry.message.role == Role::Summary);
        Self {
            recorded,
            summaries: Vec::new(),
            last: None,
            enabled: variant.archives && !own,
        }
    }

    /// Returns the messages that a request after `end` recorded messages can contain, including the
    /// summaries of archived messages.
    pub(super) fn history_until(&self, end: usize) -> Cow<'a, [Arc<Entry>]> {
        let recorded = &self.recorded[..end];
        if self.summaries.is_empty() {
            return Cow::Borrowed(recorded);
        }
        let mut all = Vec::with_capacity(end + self.summaries.len());
        let mut taken = 0;
        for (before, summary) in &self.summaries {
            all.extend_from_slice(&recorded[taken..*before]);
            all.push(Arc::clone(summary));
            taken = *before;
        }
        all.extend_from_slice(&recorded[taken..]);
        Cow::Owned(all)
    }

    /// Records the usage of the newest request.
    pub(super) fn record_usage(&mut self, usage: Usage) {
        self.last = Some(usage);
    }

    /// Archives older messages if a session would do so before the request after `end` messages.
    /// Returns `None` if no archive is due.
    pub(super) fn archive_if_due(
        &mut self,
        end: usize,
        is_cold: bool,
        policy: &Policy,
        model: &ModelSpec,
        counter: &dyn TokenCounter,
    ) -> Option<NewArchive> {
        let last = self.last.filter(|_| self.enabled)?;
        // A new input waits until the archive is made.
        let waiting = self.recorded[..end]
            .last()
            .map(|entry| &entry.message)
            .filter(|message| message.opens_round());
        let input = waiting
            .map(haft_types::Message::joined_text)
            .unwrap_or_default();
        let place = end - usize::from(waiting.is_some());
        let history = self.history_until(place);
        let since = self
            .summaries
            .last()
            .map(|(before, _)| self.recorded.get(*before..place).unwrap_or_default());
        let is_early = since.is_some_and(|since| is_too_early(since, policy));
        let wanted = match compaction_due(policy, model, last, &input, history.len()) {
            Due::No => false,
            Due::WhenFree => !is_early && is_cold,
            Due::Now => !is_early,
            Due::Overflow => true,
        };
        let plan = plan_compaction(&history, ArchiveWish::Automatic, policy, model, counter)
            .filter(|_| wanted)?;
        let text =
            build_fallback_summary(&plan, &collect_ledger(&plan, OpenWork::default()), counter)?;
        let asked =
            build_summary_request(&plan, SummaryWish::default(), model, policy, counter).ok()?;
        let asked_tokens = request_pieces(&asked, model.tokenizer_factor)
            .iter()
            .map(|piece| piece.tokens)
            .sum();
        let first_kept = plan.first_kept;
        self.summaries
            .push((place, new_summary_entry(&plan, text, counter)));
        self.last = None;
        Some(NewArchive {
            first_kept,
            asked_tokens,
        })
    }
}

/// Builds the message that contains the summary. The id of the message is derived from the position
/// of the cut, so that equal replays build equal requests.
fn new_summary_entry(
    plan: &CompactionPlan,
    text: String,
    counter: &dyn TokenCounter,
) -> Arc<Entry> {
    let mut hasher = Hasher::default();
    hasher
        .update(b"archive")
        .update(plan.first_kept.to_string().as_bytes());
    Entry::new(
        new_summary_message(MessageId::from_hash(hasher.finish()), plan.to, text, plan),
        counter,
    )
}
