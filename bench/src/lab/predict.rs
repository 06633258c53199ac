//! Compares the simulated cache with the providers' counts: |predicted − read| as a share of the
//! prompt, for every request but the first of a session, because the earlier content of the cache
//! is not recorded.
//!
//! There are two methods. *By totals*: the tokens added by a request are the difference of the
//! provider's totals, which tests only the cache rule; a smaller total means a rewritten prefix.
//! *By content*: messages have the tokens that haft counts, which also tests the count; the
//! conversation restarts where the recorded agent summarized it.
//!
//! One constant per session is fitted if the recording has no system prompt (recordings of Claude
//! Code and pi): the tokens before the conversation. By totals it is the shortest prefix ever read
//! in the session; by content it is the number of tokens that the first request had beyond those
//! counted. The tokenizer's factor is the catalog's value for the family, not fitted.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_context::{CachePiece, CacheSimulator};
use haft_types::{CacheKind, CacheRule, ContentHash};

use crate::figures;
use crate::recorded::{Billed, Conversation};

/// Tokens in a step of Gemini's implicit cache. The provider publishes no number; this one follows
/// from the recorded counters.
const GEMINI_STEP: u32 = 2_010;
/// The tokens of a Claude model for each token counted by haft.
const CLAUDE_FACTOR: f64 = 1.25;
/// The tokens of a Gemini model for each token counted by haft.
const GEMINI_FACTOR: f64 = 1.2;

/// The errors of one session, by method.
pub(super) struct SessionErrors {
    source: String,
    totals: Vec<f64>,
    content: Vec<f64>,
}

/// The errors of all sessions, by source.
#[derive(Default)]
pub(super) struct CorpusErrors {
    sources: BTreeMap<String, (usize, Vec<f64>, Vec<f64>)>,
}

impl CorpusErrors {
    pub(super) fn add(&mut self, session: SessionErrors) {
        if session.totals.is_empty() {
            return;
        }
        let (sessions, totals, content) = self.sources.entry(session.source).or_default();
        *sessions += 1;
        totals.extend(session.totals);
        content.extend(session.content);
    }

    pub(super) fn print_table(&mut self) {
        figures::print_line(
            "| source | sessions | requests | by totals: median | p90 | mean | by content: median | p90 | mean |",
        );
        figures::print_line("| --- | --: | --: | --: | --: | --: | --: | --: | --: |");
        for (source, (sessions, totals, content)) in &mut self.sources {
            let totals_told = format_errors(totals);
            let content_told = format_errors(content);
            figures::print_line(&format!(
                "| {source} | {sessions} | {} | {totals_told} | {content_told} |",
                totals.len()
            ));
        }
    }
}

/// Formats median, 90th percentile and mean in percent.
fn format_errors(errors: &mut [f64]) -> String {
    errors.sort_by(f64::total_cmp);
    let last = errors.len().saturating_sub(1) as f64;
    let at = |share: f64| {
        100.0
            * errors
                .get((last * share).round() as usize)
                .copied()
                .unwrap_or_default()
    };
    let mean = 100.0 * errors.iter().sum::<f64>() / errors.len().max(1) as f64;
    format!("{:.2} % | {:.2} % | {mean:.2} %", at(0.5), at(0.9))
}

/// Predicts how many tokens each request of a session read from the cache, and returns the errors
/// relative to the prompts.
pub(super) fn predict_session(conversation: &Conversation) -> SessionErrors {
    let gemini = conversation.agent.contains("mini-swe");
    let hour = conversation.billed.iter().any(|billed| billed.w1h > 0);
    let rule = CacheRule {
        rule: if gemini {
            CacheKind::Gemini
        } else {
            CacheKind::Anthropic
        },
        ttl: if hour { "1h" } else { "5m" }.into(),
        look_back: Some(20),
        interval: gemini.then_some(GEMINI_STEP),
        ..CacheRule::default()
    };
    let times = find_request_times(conversation);
    let compare = |requests: Vec<Vec<CachePiece>>| -> Vec<f64> {
        let mut cache = CacheSimulator::new(&rule);
        let mut errors = Vec::new();
        for ((pieces, billed), at) in requests.iter().zip(&conversation.billed).zip(&times) {
            let read = cache.send_request(*at, pieces).cached_input;
            errors.push(read.abs_diff(billed.read) as f64 / billed.prompt_tokens().max(1) as f64);
        }
        errors.drain(..errors.len().min(1));
        errors
    };
    let factor = if gemini { GEMINI_FACTOR } else { CLAUDE_FACTOR };
    SessionErrors {
        source: conversation.source.clone(),
        totals: compare(build_requests_from_totals(conversation)),
        content: compare(build_requests_from_messages(conversation, factor)),
    }
}

/// Returns the time of each request, which is the time of the message before the answer.
fn find_request_times(conversation: &Conversation) -> Vec<Duration> {
    let mut clock = Duration::ZERO;
    let time = |billed: &Billed| {
        let sent = conversation.message_time(billed.at.saturating_sub(1));
        clock = sent.unwrap_or(clock + Duration::from_secs(1)).max(clock);
        clock
    };
    conversation.billed.iter().map(time).collect()
}

/// Builds requests from the provider's counts.
fn build_requests_from_totals(conversation: &Conversation) -> Vec<Vec<CachePiece>> {
    let absent = conversation.prompt.is_empty();
    let front = conversation
        .billed
        .iter()
        .map(|billed| billed.read)
        .filter(|read| *read > 0 && absent)
        .min();
    let front = front.map(|tokens| make_cache_piece(b"front", tokens, true));
    let begun = || front.into_iter().collect::<Vec<_>>();
    let mut pieces = begun();
    let mut requests = Vec::new();
    for (number, billed) in conversation.billed.iter().enumerate() {
        let total = |pieces: &[CachePiece]| pieces.iter().map(|piece| piece.tokens).sum::<u64>();
        if billed.prompt_tokens() < total(&pieces) {
            pieces = begun();
        }
        // Only the newest message and the prefix before the conversation are marked.
        pieces
            .iter_mut()
            .skip(usize::from(front.is_some()))
            .for_each(|piece| piece.boundary = false);
        let added = billed.prompt_tokens().saturating_sub(total(&pieces));
        pieces.push(make_cache_piece(&number.to_le_bytes(), added, true));
        requests.push(pieces.clone());
    }
    requests
}

/// Builds requests from the recorded messages.
fn build_requests_from_messages(conversation: &Conversation, factor: f64) -> Vec<Vec<CachePiece>> {
    let scaled = |tokens: u32| (f64::from(tokens) * factor).round() as u64;
    let pieces = |billed: &Billed| -> Vec<CachePiece> {
        let end = conversation.history_index(billed.at);
        let begin = conversation
            .compactions
            .iter()
            .map(|at| conversation.history_index(*at))
            .filter(|at| *at < end)
            .max();
        let said = conversation
            .history
            .get(begin.unwrap_or(0)..end)
            .unwrap_or_default();
        said.iter()
            .map(|entry| CachePiece {
                hash: entry.hash,
                ..make_cache_piece(b"", scaled(entry.tokens), false)
            })
            .collect()
    };
    let counted = |pieces: &[CachePiece]| pieces.iter().map(|piece| piece.tokens).sum::<u64>();
    let first = conversation.billed.first();
    let front = first.map_or(0, |billed| {
        billed
            .prompt_tokens()
            .saturating_sub(counted(&pieces(billed)))
    });
    let request = |billed: &Billed| {
        let mut all = vec![make_cache_piece(b"front", front, true)];
        all.extend(pieces(billed));
        all.iter_mut()
            .rev()
            .take(1)
            .for_each(|piece| piece.boundary = true);
        all
    };
    conversation.billed.iter().map(request).collect()
}

fn make_cache_piece(name: &[u8], tokens: u64, boundary: bool) -> CachePiece {
    // The number of blocks a request adds is not tested here; most requests add two.
    CachePiece {
        hash: ContentHash::from_content(name),
        tokens,
        blocks: 2,
        boundary,
    }
}
