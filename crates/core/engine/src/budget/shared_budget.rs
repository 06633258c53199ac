//! Tracks the usage of a session and its sub-agents over all turns, and the money reserved for
//! requests in flight.
//!
//! Invariant: under a cost limit, the sum of the money spent, the money reserved, and the possible
//! cost of failed attempts never exceeds the limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The usage of a session and its sub-agents so far. All clones share these totals, so that limits
/// on tokens and money apply to the sessions together.
#[derive(Clone, Default)]
pub struct SharedBudget(Arc<BudgetState>);

#[derive(Default)]
struct BudgetState {
    used: Mutex<BudgetUse>,
    /// Notified when a request in flight has ended.
    freed: Notify,
}

#[derive(Default)]
struct BudgetUse {
    tokens: u64,
    usd: f64,
    /// The maximum cost of the requests in flight.
    reserved: f64,
    in_flight: u32,
    /// The maximum cost of attempts that got no reply but may have been billed.
    unknown: f64,
    /// The highest ratio of billed to locally counted tokens, by model.
    ratios: HashMap<String, f64>,
}

/// The prices and sizes that determine the maximum cost of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestQuote {
    /// The cost of the input, in USD.
    pub(crate) input: f64,
    /// The cost of one output token, in USD.
    pub(crate) output: f64,
    /// The number of output tokens that the request asks for.
    pub(crate) wanted: u64,
    /// The minimum number of output tokens with which the request is useful.
    pub(crate) least: u64,
}

/// The number of affordable output tokens with which a request is sent at once, instead of waiting
/// for other requests to return reserved money.
const AMPLE_OUTPUT: u64 = 4_096;

impl RequestQuote {
    /// Returns the cost in USD with `output` tokens of output.
    pub(crate) fn cost_with_output(&self, output: u64) -> f64 {
        self.input + output as f64 * self.output
    }

    /// Returns the number of output tokens that `left` USD pay for, or `None` if that number is
    /// less than the minimum.
    fn affordable_output(&self, left: f64) -> Option<u64> {
        let room = left - self.input;
        let output = if self.output > 0.0 {
            ((room / self.output).max(0.0) as u64).min(self.wanted)
        } else {
            self.wanted
        };
        (room >= 0.0 && output >= self.least && self.cost_with_output(output) <= left)
            .then_some(output)
    }
}

impl SharedBudget {
    /// Adds the usage of a request. `usd` is 0 if the price is unknown.
    pub(crate) fn spend(&self, tokens: u64, usd: f64) {
        let mut used = self.lock_use();
        used.tokens += tokens;
        used.usd += usd;
    }

    fn lock_use(&self) -> MutexGuard<'_, BudgetUse> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the number of tokens used so far, input and output together.
    pub fn tokens(&self) -> u64 {
        self.lock_use().tokens
    }

    /// Returns the money spent so far, in USD.
    pub fn usd(&self) -> f64 {
        self.lock_use().usd
    }

    /// Returns the model's highest ratio of billed to locally counted tokens, or `None` if no ratio
    /// is known yet.
    pub(crate) fn max_ratio(&self, model: &str) -> Option<f64> {
        self.lock_use().ratios.get(model).copied()
    }

    pub(crate) fn record_ratio(&self, model: &str, ratio: f64) {
        let mut used = self.lock_use();
        let highest = used.ratios.entry(model.to_owned()).or_insert(ratio);
        *highest = highest.max(ratio);
    }

    /// Reserves the money for a request. Returns the reservation and the number of output tokens
    /// that it pays for. Waits while requests in flight may return reserved money. Returns `None`
    /// if the limit has no room for the request.
    pub(crate) async fn reserve(
        &self,
        limit: f64,
        quote: RequestQuote,
    ) -> Option<(Reservation, u64)> {
        loop {
            let mut freed = std::pin::pin!(self.0.freed.notified());
            // No notification is missed from here on.
            freed.as_mut().enable();
            {
                let mut used = self.lock_use();
                let output = quote.affordable_output(limit - used.committed_usd());
                let waits = used.in_flight > 0;
                if let Some(output) =
                    output.filter(|output| !waits || *output >= quote.wanted.min(AMPLE_OUTPUT))
                {
                    let usd = quote.cost_with_output(output);
                    used.reserved += usd;
                    used.in_flight += 1;
                    return Some((
                        Reservation {
                            budget: self.clone(),
                            limit,
                            usd,
                        },
                        output,
                    ));
                }
                if !waits {
                    return None;
                }
            }
            freed.await;
        }
    }
}

impl BudgetUse {
    fn committed_usd(&self) -> f64 {
        self.usd + self.reserved + self.unknown
    }
}

/// The money reserved for one request in flight. If the reservation is dropped without being
/// settled, the money counts as spent, because the provider may bill the request.
pub(crate) struct Reservation {
    budget: SharedBudget,
    limit: f64,
    usd: f64,
}

impl Reservation {
    /// Replaces the reservation with the actual usage.
    pub(crate) fn settle(mut self, tokens: u64, usd: f64) {
        self.budget.spend(tokens, usd);
        self.return_reserved();
    }

    /// Frees the whole reserved amount, for a request that cost nothing.
    pub(crate) fn release(mut self) {
        self.return_reserved();
    }

    /// Reserves the money for another attempt after an attempt that may be billed. Returns false if
    /// the limit has no room for another attempt.
    pub(crate) fn reserve_retry(&mut self) -> bool {
        let mut used = self.budget.lock_use();
        let fits = used.committed_usd() + self.usd <= self.limit;
        if fits {
            used.unknown += self.usd;
        }
        fits
    }

    fn return_reserved(&mut self) {
        self.budget.lock_use().reserved -= std::mem::take(&mut self.usd);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        {
            let mut used = self.budget.lock_use();
            used.reserved -= self.usd;
            used.unknown += self.usd;
            used.in_flight -= 1;
            if used.in_flight == 0 {
                // Removes the rounding error of the sums.
                used.reserved = 0.0;
            }
        }
        self.budget.0.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quote(input: f64, wanted: u64) -> RequestQuote {
        RequestQuote {
            input,
            output: 0.001,
            wanted,
            least: wanted.min(100),
        }
    }

    #[tokio::test]
    async fn reserve_reduces_the_output_to_what_the_budget_allows() {
        let budget = SharedBudget::default();
        let (whole, output) = budget.reserve(10.0, quote(1.0, 5_000)).await.unwrap();
        assert_eq!(output, 5_000);
        whole.settle(10, 6.0);
        let (less, output) = budget.reserve(10.0, quote(1.0, 5_000)).await.unwrap();
        assert!((2_999..=3_000).contains(&output), "{output}");
        less.settle(10, 2.95);
        assert!(budget.reserve(10.0, quote(1.0, 5_000)).await.is_none());
        assert!((budget.usd() - 8.95).abs() < 1e-9);
    }

    #[tokio::test]
    async fn reserve_waits_for_other_reservations_to_settle() {
        let budget = SharedBudget::default();
        let (first, _) = budget.reserve(10.0, quote(1.0, 8_000)).await.unwrap();
        let second = tokio::spawn({
            let budget = budget.clone();
            async move {
                budget
                    .reserve(10.0, quote(1.0, 8_000))
                    .await
                    .map(|(_, output)| output)
            }
        });
        tokio::task::yield_now().await;
        assert!(!second.is_finished());
        first.settle(10, 0.5);
        assert_eq!(second.await.unwrap(), Some(8_000));
    }

    #[tokio::test]
    async fn drop_keeps_what_may_have_been_billed() {
        let budget = SharedBudget::default();
        let (mut tried, _) = budget.reserve(10.0, quote(1.0, 2_000)).await.unwrap();
        assert!(
            tried.reserve_retry() && tried.reserve_retry() && !tried.reserve_retry(),
            "three tries of $3"
        );
        drop(tried);
        assert!(budget.reserve(10.0, quote(1.0, 2_000)).await.is_none());
        assert!(budget.usd().abs() < 1e-9, "nobody knows that it was spent");
        let budget = SharedBudget::default();
        let (refused, _) = budget.reserve(3.0, quote(1.0, 2_000)).await.unwrap();
        refused.release();
        assert!(budget.reserve(3.0, quote(1.0, 2_000)).await.is_some());
    }

    /// Concurrent agents never exceed the limit, even if requests cost more than quoted.
    #[tokio::test]
    async fn reserve_keeps_the_limit_with_concurrent_agents() {
        for seed in 0..50_u64 {
            let budget = SharedBudget::default();
            let limit = 5.0 + seed as f64 / 3.0;
            let agents = (0..6_u64).map(|agent| {
                let budget = budget.clone();
                async move {
                    let mut billed = 0.0;
                    for turn in 0..20_u64 {
                        let draw = (seed * 31 + agent * 17 + turn * 7) % 10;
                        let quote = quote(0.1 * (draw + 1) as f64, 200 * (draw + 1));
                        let Some((mut reserved, output)) = budget.reserve(limit, quote).await
                        else {
                            break;
                        };
                        assert!((quote.least..=quote.wanted).contains(&output));
                        tokio::task::yield_now().await;
                        let most = quote.cost_with_output(output);
                        match draw {
                            // Rejected before the provider processed it.
                            0 => reserved.release(),
                            // Lost, billed in full, and sent again.
                            1 if reserved.reserve_retry() => {
                                billed += 2.0 * most;
                                reserved.settle(10, most);
                            }
                            // Canceled, and billed in full.
                            1 | 2 => billed += most,
                            3 => {
                                billed += most / 2.0;
                                reserved.settle(10, most / 2.0);
                            }
                            _ => {
                                billed += most;
                                reserved.settle(10, most);
                            }
                        }
                    }
                    billed
                }
            });
            let billed: f64 = futures::future::join_all(agents).await.into_iter().sum();
            assert!(
                billed <= limit + 1e-9,
                "seed {seed}: ${billed} at a limit of ${limit}"
            );
            assert!(
                billed > limit / 2.0,
                "seed {seed}: money is left for more: ${billed} of ${limit}"
            );
        }
    }
}
