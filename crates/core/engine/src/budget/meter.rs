//! Measures what a run uses (tokens, money, time), what remains of its limits, and how each model's
//! tokenizer differs from the local count.
//!
//! Invariant: money and tokens spent here enter the budget shared with sub-agents at once. The
//! usage of sub-agents is added only to the totals of this turn, because they have already charged
//! the shared budget.

use std::time::{Duration, Instant};

use haft_types::{Cost, CostSum, Price, Usage};

use super::limits::{Spent, TurnLimits};
use super::shared_budget::{Reservation, SharedBudget};
use crate::stored_state::TokenizerFactors;

/// The weight of the newest reply in the moving average of a tokenizer's factor.
const NEWEST_RATIO_WEIGHT: f64 = 0.3;
/// The minimum size, in local tokens, of a request that updates a tokenizer's factor. In smaller
/// requests, the API's framing outweighs the text.
const MIN_COUNTED_TOKENS: u64 = 1_000;
/// The plausible ratios of billed to locally counted tokens. Ratios outside this range are not
/// caused by the tokenizer, but by images, hidden instructions, or a server that counts something
/// else.
const PLAUSIBLE_RATIOS: std::ops::RangeInclusive<f64> = 0.5..=2.5;
/// The factor by which the ratio of billed to locally counted tokens may rise above the highest
/// ratio seen so far.
const RATIO_MARGIN: f64 = 1.25;
/// The maximum number of tokens that APIs add around the text of a request.
const MAX_FRAMING_TOKENS: u64 = 512;

/// The usage of a turn, and its limits.
pub(crate) struct Meter {
    limits: TurnLimits,
    /// The usage of all turns and their sub-agents.
    budget: SharedBudget,
    /// The start of this turn.
    since: Instant,
    /// The tokens used by this turn and its sub-agents.
    usage: Usage,
    /// The cost of this turn and its sub-agents, by class of tokens.
    cost: CostSum,
    /// The cost of requests that no `usage` event has reported yet.
    unreported_cost: CostSum,
    /// The number of tokens saved by references to earlier reads since [`Self::take_saved_tokens`]
    /// was last called.
    saved_tokens: u64,
    /// True once a reply without usage data has been reported to the user.
    reported_missing_usage: bool,
    factors: TokenizerFactors,
}

impl Meter {
    pub(crate) fn new(limits: TurnLimits, budget: SharedBudget, factors: TokenizerFactors) -> Self {
        let usage = Usage::default();
        Self {
            limits,
            budget,
            since: Instant::now(),
            usage,
            cost: CostSum::default(),
            unreported_cost: CostSum::default(),
            saved_tokens: 0,
            reported_missing_usage: false,
            factors,
        }
    }

    /// Resets the totals for a new turn. `price` is the price of the turn's model.
    pub(crate) fn begin_turn(&mut self, price: Option<Price>) {
        self.since = Instant::now();
        self.usage = Usage::default();
        self.cost = price.map_or_else(CostSum::default, |_| CostSum::zero());
    }

    /// Replaces the reservation of a request with its actual usage, and records the ratio of billed
    /// to locally counted tokens. `counted` is the local token count of the request.
    pub(crate) fn record_request(
        &mut self,
        reserved: Option<Reservation>,
        (model, price): (&str, Option<Price>),
        counted: u64,
        usage: Usage,
    ) {
        let cost = price.map(|price| price.request_cost(usage));
        let usd = cost.map_or(0.0, |cost| cost.total);
        match reserved {
            Some(reserved) => reserved.settle(usage.total(), usd),
            None => self.budget.spend(usage.total(), usd),
        }
        let ratio = usage.all_input() as f64 / counted.max(1) as f64;
        if PLAUSIBLE_RATIOS.contains(&ratio) {
            self.budget.record_ratio(model, ratio);
        }
        self.usage += usage;
        self.cost.add(cost);
        self.unreported_cost.add(cost);
    }

    /// Takes the cost of all requests since the last call of this method; `None` if one of the
    /// requests had no price.
    pub(crate) fn take_unreported_cost(&mut self) -> Option<Cost> {
        std::mem::take(&mut self.unreported_cost)
            .total()
            .filter(|cost| !cost.incomplete)
    }

    /// Returns the maximum number of tokens that the model may bill for an input of `counted` local
    /// tokens.
    pub(crate) fn max_billed_input(&self, model: &str, counted: u64) -> u64 {
        let ratio = self
            .budget
            .max_ratio(model)
            .map_or(*PLAUSIBLE_RATIOS.end(), |ratio| ratio * RATIO_MARGIN);
        (counted as f64 * ratio).ceil() as u64 + MAX_FRAMING_TOKENS
    }

    /// Returns true if the limits allow only models with a known price.
    pub(crate) fn needs_price(&self) -> bool {
        self.limits.needs_price()
    }

    /// Adds the usage of sub-agents, and the cost of each of their requests, to the totals of this
    /// turn.
    pub(crate) fn add_relayed_usage(&mut self, usage: Usage, costs: Vec<Option<Cost>>) {
        self.usage += usage;
        for cost in costs {
            self.cost.add(cost);
        }
    }

    pub(crate) fn limits(&self) -> TurnLimits {
        self.limits
    }

    /// Returns the budget shared with sub-agents.
    pub(crate) fn budget(&self) -> &SharedBudget {
        &self.budget
    }

    /// Returns the tokens used in this turn, including its sub-agents.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// Returns the cost of this turn as far as it is known; `None` if no request had a price.
    pub(crate) fn cost(&self) -> Option<Cost> {
        self.cost.total()
    }

    /// Returns the time since this turn began.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Returns the usage that counts toward the limits. Tokens and money include those of earlier
    /// turns.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            tokens: self.budget.tokens(),
            usd: self.budget.usd(),
            elapsed: self.elapsed(),
        }
    }

    /// Describes how much of each limit is used after `replies` replies. Empty without limits.
    pub(crate) fn describe_limits(&self, replies: u32) -> String {
        self.limits.describe_usage(replies, &self.spent())
    }

    /// Returns the number of replies that a sub-agent may use after `replies` replies of this turn,
    /// which is at least 1; `None` if there is no limit.
    pub(crate) fn turns_left(&self, replies: u32) -> Option<u32> {
        self.limits
            .turns
            .map(|turns| turns.saturating_sub(replies).max(1))
    }

    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.limits
            .wall_time
            .map(|limit| limit.saturating_sub(self.elapsed()))
    }

    pub(crate) fn add_saved_tokens(&mut self, tokens: u64) {
        self.saved_tokens += tokens;
    }

    /// Returns the number of tokens saved since the last call of this method.
    pub(crate) fn take_saved_tokens(&mut self) -> u64 {
        std::mem::take(&mut self.saved_tokens)
    }

    /// Returns true if `usage` is that of the first reply for which the provider reported no usage.
    pub(crate) fn notice_missing_usage(&mut self, usage: Usage) -> bool {
        usage == Usage::default() && !std::mem::replace(&mut self.reported_missing_usage, true)
    }

    /// Returns the ratio of the model's own token count to the local count, or `None` before the
    /// first reply. The ratio is rounded, so that the value recorded in the log changes rarely.
    pub(crate) fn tokenizer_factor(&self, model: &str) -> Option<f64> {
        self.factors.0.get(model).copied().map(round_factor)
    }

    /// Updates the model's tokenizer factor from a reply. `assumed` is the factor to use if none is
    /// known yet. Returns the factors to store if the rounded factor has changed.
    pub(crate) fn learn_tokenizer_factor(
        &mut self,
        model: &str,
        assumed: f64,
        counted: u64,
        usage: Usage,
    ) -> Option<&TokenizerFactors> {
        let before = self.factors.0.get(model).copied().unwrap_or(assumed);
        let factor = updated_factor(before, counted, usage.all_input())?;
        self.factors.0.insert(model.to_owned(), factor);
        ((round_factor(factor) - round_factor(before)).abs() > f64::EPSILON)
            .then_some(&self.factors)
    }
}

/// Returns the tokenizer factor updated by one reply: a moving average in which newer replies weigh
/// more. Returns `None` if the request is too small or the ratio is implausible.
fn updated_factor(factor: f64, counted: u64, billed: u64) -> Option<f64> {
    if counted < MIN_COUNTED_TOKENS {
        return None;
    }
    let seen = billed as f64 / counted as f64;
    PLAUSIBLE_RATIOS
        .contains(&seen)
        .then_some(factor + NEWEST_RATIO_WEIGHT * (seen - factor))
}

/// Converts a duration to milliseconds, the unit in which messages and events store durations.
pub(crate) fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Rounds a factor to two decimal places.
fn round_factor(factor: f64) -> f64 {
    (factor * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
