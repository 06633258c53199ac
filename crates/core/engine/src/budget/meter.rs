//! What a run uses: tokens, money and time, what is left of its limits, and what replies teach
//! about tokenizers.
//!
//! Invariant: what is spent here is in the budget that is shared with sub-agents at once; what they
//! spend is added to the totals of this turn only, for they have spent it there already.

use std::time::{Duration, Instant};

use haft_types::{Cost, CostSum, Price, Usage};

use super::limits::{Spent, TurnLimits};
use super::shared_budget::{Reservation, SharedBudget};
use crate::stored_state::TokenizerFactors;

/// How much of the newest reply's ratio goes into a factor.
const WEIGHT: f64 = 0.3;
/// Below this the framing of the API weighs more than the text.
const SMALLEST: u64 = 1_000;
/// A ratio outside of this is not the tokenizer's doing: pictures, hidden instructions, a server
/// that counts something else.
const BELIEVABLE: std::ops::RangeInclusive<f64> = 0.5..=2.5;
/// How much more than it ever was the ratio may be in the next request.
const RATIO_MARGIN: f64 = 1.25;
/// What APIs add around the text of a request, at most.
const MOST_FRAMING: u64 = 512;

/// What is used up, and how far it may go.
pub(crate) struct Meter {
    limits: TurnLimits,
    /// What all turns have used, with their sub-agents.
    budget: SharedBudget,
    /// When this turn began.
    since: Instant,
    /// Of this turn, with its sub-agents.
    usage: Usage,
    /// Of this turn: money by class.
    cost: CostSum,
    /// Of requests whose reply is not told yet.
    untold: CostSum,
    /// Tokens that references to earlier reads have saved since this was last told.
    saved_tokens: u64,
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
            untold: CostSum::default(),
            saved_tokens: 0,
            factors,
        }
    }

    /// Another turn begins, with a model of this price.
    pub(crate) fn begin(&mut self, price: Option<Price>) {
        self.since = Instant::now();
        self.usage = Usage::default();
        self.cost = price.map_or_else(CostSum::default, |_| CostSum::zero());
    }

    /// Adds what a request used, in place of what was reserved for it. Its input was counted so.
    pub(crate) fn settle(
        &mut self,
        reserved: Option<Reservation>,
        (model, price): (&str, Option<Price>),
        counted: u64,
        usage: Usage,
    ) {
        let cost = price.map(|price| price.cost(usage));
        let usd = cost.map_or(0.0, |cost| cost.total);
        match reserved {
            Some(reserved) => reserved.settle(usage.total(), usd),
            None => self.budget.spend(usage.total(), usd),
        }
        let ratio = usage.all_input() as f64 / counted.max(1) as f64;
        if BELIEVABLE.contains(&ratio) {
            self.budget.note_ratio(model, ratio);
        }
        self.usage += usage;
        self.cost.add(cost);
        self.untold.add(cost);
    }

    /// The cost of the requests since this was last asked; none where one of them had no price.
    pub(crate) fn take_cost(&mut self) -> Option<Cost> {
        std::mem::take(&mut self.untold)
            .total()
            .filter(|cost| !cost.incomplete)
    }

    /// The most tokens of this model that so many counted ones can be.
    pub(crate) fn most_input(&self, model: &str, counted: u64) -> u64 {
        let ratio = self
            .budget
            .ratio(model)
            .map_or(*BELIEVABLE.end(), |ratio| ratio * RATIO_MARGIN);
        (counted as f64 * ratio).ceil() as u64 + MOST_FRAMING
    }

    /// Whether a request to a model without a price could not be paid within the limits.
    pub(crate) fn needs_price(&self) -> bool {
        self.limits.needs_price()
    }

    /// Adds what sub-agents used, and the cost of each of their requests.
    pub(crate) fn add_relayed(&mut self, usage: Usage, costs: Vec<Option<Cost>>) {
        self.usage += usage;
        for cost in costs {
            self.cost.add(cost);
        }
    }

    /// The limits of a turn.
    pub(crate) fn limits(&self) -> TurnLimits {
        self.limits
    }

    /// The budget that is shared with sub-agents.
    pub(crate) fn budget(&self) -> &SharedBudget {
        &self.budget
    }

    /// The tokens of this turn, with its sub-agents.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// The money of this turn, as far as it is known; none where no request had a price.
    pub(crate) fn cost(&self) -> Option<Cost> {
        self.cost.total()
    }

    /// How long this turn has taken.
    pub(crate) fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// What the run has used up so far.
    pub(crate) fn spent(&self) -> Spent {
        Spent {
            tokens: self.budget.tokens(),
            usd: self.budget.usd(),
            elapsed: self.elapsed(),
        }
    }

    /// How much of each limit is used up after so many replies, in words; nothing without limits.
    pub(crate) fn used_of_limits(&self, replies: u32) -> String {
        self.limits.used(replies, &self.spent())
    }

    /// The replies that are left for a sub-agent after so many of this turn: one at least.
    pub(crate) fn turns_left(&self, replies: u32) -> Option<u32> {
        self.limits
            .turns
            .map(|turns| turns.saturating_sub(replies).max(1))
    }

    /// The time that is left.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.limits
            .wall_time
            .map(|limit| limit.saturating_sub(self.elapsed()))
    }

    /// Notes tokens that were saved.
    pub(crate) fn note_saved(&mut self, tokens: u64) {
        self.saved_tokens += tokens;
    }

    /// The tokens that were saved since this was last asked.
    pub(crate) fn take_saved(&mut self) -> u64 {
        std::mem::take(&mut self.saved_tokens)
    }

    /// How many tokens of this model a counted one is, where replies have taught it. In steps, so
    /// that what is logged of it repeats.
    pub(crate) fn factor(&self, model: &str) -> Option<f64> {
        self.factors.0.get(model).copied().map(in_steps)
    }

    /// Learns the factor of a model from a reply; `assumed` is what it was taken for so far. Gives
    /// what has to be kept with the conversation when the factor is another one now.
    pub(crate) fn learn_factor(
        &mut self,
        model: &str,
        assumed: f64,
        counted: u64,
        usage: Usage,
    ) -> Option<&TokenizerFactors> {
        let before = self.factors.0.get(model).copied().unwrap_or(assumed);
        let factor = corrected(before, counted, usage.all_input())?;
        self.factors.0.insert(model.to_owned(), factor);
        ((in_steps(factor) - in_steps(before)).abs() > f64::EPSILON).then_some(&self.factors)
    }
}

/// The factor after a reply: an average in which newer replies weigh more. `None` when the reply
/// teaches nothing.
fn corrected(factor: f64, counted: u64, billed: u64) -> Option<f64> {
    if counted < SMALLEST {
        return None;
    }
    let seen = billed as f64 / counted as f64;
    BELIEVABLE
        .contains(&seen)
        .then_some(factor + WEIGHT * (seen - factor))
}

/// A duration as messages and events hold it.
pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// As it is used.
fn in_steps(factor: f64) -> f64 {
    (factor * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests;
