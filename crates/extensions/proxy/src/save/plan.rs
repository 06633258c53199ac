//! Decides which results of a request are cleared. A pure function: the same request, decisions,
//! policy and prices give the same plan.
//!
//! ```text
//! U  A T  A T  A T … A T  A T  A T      every old result is read from the cache again in every request;
//!      ▒    ▒    ▒     ·    ·    ·      clearing them once means that all behind the first is written anew
//! ```
//!
//! The request itself tells what the conversation has cost so far, because it contains all earlier
//! requests. Results are cleared in one pass as soon as reading them has cost about as much as the
//! pass will, and only if the conversation would be at most [`SavePolicy::max_loss`] dearer, should
//! it end now.
//!
//! Invariants: a result is never cleared before the model has answered it; the newest results and
//! those that show files being worked on stay; what is cleared stays cleared.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use haft_types::ContentHash;
use serde::{Deserialize, Serialize};

use super::policy::{SavePolicy, SavePrices};
use super::request::{ParsedRequest, ResultSite, estimate_tokens};
use super::working::find_working_results;
use crate::layout::SegmentKind;

/// The estimated tokens of a notice that replaces a result.
const NOTICE_TOKENS: u64 = 45;
/// The minimum tokens that one pass must save.
const MIN_PASS_SAVING: u64 = 1_000;

/// A decision to clear results, made for one request and applied to all requests that extend it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClearingPass {
    /// The key of the last call of the request for which the pass was decided.
    pub(crate) frontier: ContentHash,
    /// The number of that request in its conversation, counted from 1.
    pub(crate) request: usize,
    /// True if the cache no longer held the conversation, so that the pass cost nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_free: bool,
    pub(crate) cleared: Vec<ClearedResult>,
    /// The index of the conversation in the memory of this process.
    #[serde(skip)]
    pub(crate) conversation: usize,
}

/// A cleared result, and the notice that is sent instead.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ClearedResult {
    /// The key of the result's call.
    pub(crate) call: ContentHash,
    /// The hash of the result as the agent sends it.
    pub(crate) text: ContentHash,
    /// The file with the text.
    pub(crate) file: PathBuf,
    pub(crate) notice: String,
}

/// The facts on which a plan is based.
pub(crate) struct PlanInput<'a> {
    pub(crate) request: &'a ParsedRequest<'a>,
    /// The passes that apply to the request, in the order in which they were decided.
    pub(crate) passes: &'a [Arc<ClearingPass>],
    pub(crate) policy: &'a SavePolicy,
    pub(crate) prices: &'a SavePrices,
    /// True if the provider's cache no longer holds the conversation.
    pub(crate) is_cold: bool,
}

/// The estimated cost of the input of a conversation, in tokens at the full input price.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SaveCost {
    /// The cost if all requests had been sent as they were received.
    pub received: f64,
    /// The cost of the requests as they were sent.
    pub sent: f64,
}

/// The decision about one request.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// The results that earlier passes cleared, with their notices.
    pub(crate) cleared: Vec<(usize, String)>,
    /// The results that a new pass clears, oldest first.
    pub(crate) newly: Vec<usize>,
    /// The tokens that the new pass saves.
    pub(crate) saved_tokens: u64,
    /// The cost of the conversation so far, including this request and the new pass.
    pub(crate) cost: SaveCost,
    /// The smallest useful budget, if the configured one is smaller.
    pub(crate) needed_budget: Option<u64>,
}

/// Returns the passes that apply to a request: those that were decided for an earlier request of the
/// conversation, or for this one.
pub(crate) fn find_passes(
    request: &ParsedRequest<'_>,
    known: &HashMap<ContentHash, Vec<Arc<ClearingPass>>>,
) -> Vec<Arc<ClearingPass>> {
    let requests = request.request_ends().len();
    let found = request.calls.iter().filter_map(|call| known.get(&call.key));
    found
        .flatten()
        .filter(|pass| pass.request <= requests)
        .cloned()
        .collect()
}

/// The effect of a pass on the tokens of requests.
struct PassEffect {
    request: usize,
    is_free: bool,
    /// The index of the first element that the pass changes.
    first: usize,
    /// The tokens saved in each changed element, in the order of the elements.
    savings: Vec<(usize, u64)>,
    total: u64,
}

impl PassEffect {
    fn saving_before(&self, element: usize) -> u64 {
        if self.savings.last().is_some_and(|(last, _)| *last < element) {
            return self.total;
        }
        let before = self.savings.iter().filter(|(index, _)| *index < element);
        before.map(|(_, saving)| saving).sum()
    }
}

/// The tokens of a conversation's requests.
struct History {
    /// The number of elements in each request.
    ends: Vec<usize>,
    /// The tokens before each element.
    before: Vec<u64>,
}

impl History {
    fn new(request: &ParsedRequest<'_>) -> Self {
        let mut before = vec![0];
        let mut total = 0;
        for element in &request.elements {
            total += element.tokens;
            before.push(total);
        }
        Self {
            ends: request.request_ends(),
            before,
        }
    }

    /// Returns the tokens of the first `elements` elements, after the effects.
    fn tokens<'a>(&self, elements: usize, effects: impl Iterator<Item = &'a PassEffect>) -> u64 {
        let saved: u64 = effects.map(|effect| effect.saving_before(elements)).sum();
        self.before[elements].saturating_sub(saved)
    }

    fn estimate_cost(&self, effects: &[PassEffect], prices: &SavePrices) -> SaveCost {
        let mut cost = SaveCost::default();
        let mut last_received = 0;
        let mut last_sent = 0;
        for (index, end) in self.ends.iter().enumerate() {
            let active = || effects.iter().filter(|one| one.request <= index + 1);
            let new: Vec<_> = active().filter(|one| one.request == index + 1).collect();
            let received = self.before[*end];
            let sent = self.tokens(*end, active());
            let is_free = new.iter().any(|one| one.is_free);
            if is_free {
                last_received = 0;
            }
            let kept = match new.iter().map(|one| one.first).min() {
                _ if is_free => 0,
                Some(first) => {
                    let earlier = effects.iter().filter(|one| one.request <= index);
                    self.tokens(first, earlier).min(last_sent)
                }
                None => last_sent,
            };
            cost.received += price_request(last_received, received, prices);
            cost.sent += price_request(kept, sent, prices);
            last_received = received;
            last_sent = sent;
        }
        cost
    }
}

/// Returns the price of a request of which the first `kept` tokens are read from the cache.
fn price_request(kept: u64, tokens: u64, prices: &SavePrices) -> f64 {
    let kept = kept.min(tokens);
    prices.read * kept as f64 + prices.write * (tokens - kept) as f64
}

/// Decides what is cleared in a request.
pub(crate) fn plan_request(input: &PlanInput<'_>) -> Plan {
    let request = input.request;
    let mut notices: HashMap<(ContentHash, ContentHash), &ClearedResult> = HashMap::new();
    let mut effects = Vec::new();
    let mut gone = vec![false; request.results.len()];
    let mut cleared = Vec::new();
    let seen = last_request_start(request);
    for pass in input.passes {
        notices.clear();
        notices.extend(pass.cleared.iter().map(|one| ((one.call, one.text), one)));
        let mut savings = Vec::new();
        for (index, result) in request.results.iter().enumerate() {
            let key = (request.calls[result.call].key, result.hash);
            let Some(found) = notices.get(&key) else {
                continue;
            };
            if gone[index] || result.element >= seen {
                continue;
            }
            gone[index] = true;
            let notice = estimate_tokens(&found.notice);
            savings.push((result.element, result.tokens.saturating_sub(notice)));
            cleared.push((index, found.notice.clone()));
        }
        effects.extend(build_effect(pass.request, pass.is_free, savings));
    }
    let history = History::new(request);
    let mut plan = Plan {
        cost: history.estimate_cost(&effects, input.prices),
        cleared,
        ..Plan::default()
    };
    add_new_pass(input, &history, effects, &gone, &mut plan);
    plan
}

fn build_effect(request: usize, is_free: bool, savings: Vec<(usize, u64)>) -> Option<PassEffect> {
    let (first, _) = *savings.first()?;
    let total = savings.iter().map(|(_, saving)| saving).sum();
    Some(PassEffect {
        request,
        is_free,
        first,
        savings,
        total,
    })
}

/// Returns the number of elements that the previous request contained. The model has answered all
/// results in them.
fn last_request_start(request: &ParsedRequest<'_>) -> usize {
    let ends = request.request_ends();
    ends.len()
        .checked_sub(2)
        .map_or(0, |previous| ends[previous])
}

/// Returns the number of oldest results that may be cleared in a request: those the model has
/// answered, without the newest ones.
fn count_old_results(request: &ParsedRequest<'_>, ends: &[usize], at: usize, keep: usize) -> usize {
    let results_before = |element: usize| {
        request
            .results
            .partition_point(|result| result.element < element)
    };
    let Some(previous) = at.checked_sub(1) else {
        return 0;
    };
    let seen = results_before(ends[previous]);
    let has_unseen = results_before(ends[at]) > seen;
    seen.saturating_sub(keep.saturating_sub(usize::from(has_unseen)))
}

fn result_saving(result: &ResultSite, policy: &SavePolicy) -> u64 {
    let saving = result.tokens.saturating_sub(NOTICE_TOKENS);
    if result.is_text && saving >= policy.min_result_saving {
        saving
    } else {
        0
    }
}

/// Returns the tokens of the fixed prefix and of the results that stay, those from the index `old` on.
/// A smaller budget would be exceeded by every request.
fn find_smallest_budget(request: &ParsedRequest<'_>, old: usize) -> u64 {
    let kept: u64 = request.results[old..].iter().map(|one| one.tokens).sum();
    let fixed: u64 = request
        .elements
        .iter()
        .filter(|element| element.kind != SegmentKind::Message)
        .map(|element| element.tokens)
        .sum();
    fixed + kept
}

/// Returns the results among the `old` oldest that a pass would clear: those that save something and
/// show no file that is being worked on.
fn choose_results(
    request: &ParsedRequest<'_>,
    policy: &SavePolicy,
    gone: &[bool],
    old: usize,
) -> Vec<usize> {
    let working = find_working_results(request);
    (0..old)
        .filter(|index| !gone[*index] && !working.contains(index))
        .filter(|index| result_saving(&request.results[*index], policy) > 0)
        .collect()
}

/// Adds the results that a new pass clears to the plan, if the pass is worth its cost.
fn add_new_pass(
    input: &PlanInput<'_>,
    history: &History,
    mut effects: Vec<PassEffect>,
    gone: &[bool],
    plan: &mut Plan,
) {
    let request = input.request;
    let policy = input.policy;
    let prices = input.prices;
    let ends = &history.ends;
    let current = ends.len() - 1;
    let end = ends[current];
    let tokens = history.tokens(end, effects.iter());
    let old = count_old_results(request, ends, current, policy.kept_results);
    if !request.has_tools() || tokens < policy.budget_tokens() || old == 0 || current == 0 {
        return;
    }
    if effects.iter().any(|one| one.request == current + 1) {
        return;
    }
    let needed = find_smallest_budget(request, old);
    if policy.budget.is_some_and(|budget| budget < needed) {
        plan.needed_budget = Some(needed);
        return;
    }
    let waste = estimate_waste(input, ends, gone, &effects);
    if waste <= 0.0 {
        return;
    }
    let newly = choose_results(request, policy, gone, old);
    let savings = newly.iter().map(|index| {
        let result = &request.results[*index];
        (result.element, result_saving(result, policy))
    });
    let Some(effect) = build_effect(current + 1, input.is_cold, savings.collect()) else {
        return;
    };
    let saved = effect.total;
    if saved < MIN_PASS_SAVING {
        return;
    }
    let previous = ends[current - 1];
    let first = effect.first;
    let rewritten = history
        .tokens(previous, effects.iter())
        .saturating_sub(history.tokens(first, effects.iter()))
        .saturating_sub(effect.saving_before(previous));
    let price = (prices.write - prices.read).max(0.0) * rewritten as f64;
    effects.push(effect);
    let cost = history.estimate_cost(&effects, prices);
    let pays = waste >= policy.min_waste * price
        && prices.read * saved as f64 * policy.max_payback >= price
        && cost.sent <= cost.received * (1.0 + policy.max_loss);
    if input.is_cold || pays {
        plan.newly = newly;
        plan.saved_tokens = saved;
        plan.cost = cost;
    }
}

/// Returns the cost so far of reading results that could have been cleared since the last pass.
fn estimate_waste(
    input: &PlanInput<'_>,
    ends: &[usize],
    gone: &[bool],
    effects: &[PassEffect],
) -> f64 {
    let request = input.request;
    let mut before = vec![0];
    let mut total = 0;
    for (index, result) in request.results.iter().enumerate() {
        if !gone[index] {
            total += result_saving(result, input.policy);
        }
        before.push(total);
    }
    let since = effects.iter().map(|one| one.request).max().unwrap_or(0);
    let wasted = (since..ends.len())
        .map(|at| before[count_old_results(request, ends, at, input.policy.kept_results)])
        .sum::<u64>();
    input.prices.read * wasted as f64
}
