//! What a session and its sub-agents have used together, in all turns, and what is reserved for
//! requests in flight.
//!
//! Invariant: within a limit of money, what is spent, what is reserved and what failed tries may
//! have been billed for is together never more than the limit.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What was used so far. Clones are the same budget: sessions that have one share their limits of
/// tokens and money.
#[derive(Clone, Default)]
pub struct SharedBudget(Arc<BudgetState>);

#[derive(Default)]
struct BudgetState {
    used: Mutex<BudgetUse>,
    /// A request in flight has ended.
    freed: Notify,
}

#[derive(Default)]
struct BudgetUse {
    tokens: u64,
    usd: f64,
    /// The most that requests in flight can cost.
    reserved: f64,
    in_flight: u32,
    /// The most that tries without a reply may have been billed for.
    unknown: f64,
    /// By model, the most tokens that were ever billed for a counted one.
    ratios: HashMap<String, f64>,
}

/// The most a request can cost: its input, and as much output as there is money for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestQuote {
    /// The input, in USD.
    pub(crate) input: f64,
    /// A token of output, in USD.
    pub(crate) output: f64,
    /// The output that is asked for.
    pub(crate) wanted: u64,
    /// The output below which the request is of no use.
    pub(crate) least: u64,
}

/// With room for this much output nobody waits for more of it.
const COMFORTABLE: u64 = 4_096;

impl RequestQuote {
    pub(crate) fn at(&self, output: u64) -> f64 {
        self.input + output as f64 * self.output
    }

    /// The output there is money for; none below the least.
    fn affordable(&self, left: f64) -> Option<u64> {
        let room = left - self.input;
        let output = if self.output > 0.0 {
            ((room / self.output).max(0.0) as u64).min(self.wanted)
        } else {
            self.wanted
        };
        (room >= 0.0 && output >= self.least && self.at(output) <= left).then_some(output)
    }
}

impl SharedBudget {
    /// Adds what a request used; its money where the price is known.
    pub(crate) fn spend(&self, tokens: u64, usd: f64) {
        let mut used = self.used();
        used.tokens += tokens;
        used.usd += usd;
    }

    fn used(&self) -> MutexGuard<'_, BudgetUse> {
        self.0.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tokens used so far, of all kinds together.
    pub fn tokens(&self) -> u64 {
        self.used().tokens
    }

    /// The money spent so far.
    pub fn usd(&self) -> f64 {
        self.used().usd
    }

    /// The most tokens of this model that were billed for a counted one, where a reply has shown
    /// it.
    pub(crate) fn ratio(&self, model: &str) -> Option<f64> {
        self.used().ratios.get(model).copied()
    }

    pub(crate) fn note_ratio(&self, model: &str, ratio: f64) {
        let mut used = self.used();
        let highest = used.ratios.entry(model.to_owned()).or_insert(ratio);
        *highest = highest.max(ratio);
    }

    /// Reserves the money for a request, and says how much output it may have. Waits while requests
    /// in flight may leave more than they reserve; `None` when the limit has no room for it.
    pub(crate) async fn reserve(
        &self,
        limit: f64,
        quote: RequestQuote,
    ) -> Option<(Reservation, u64)> {
        loop {
            let mut freed = std::pin::pin!(self.0.freed.notified());
            // From now on none is missed.
            freed.as_mut().enable();
            {
                let mut used = self.used();
                let output = quote.affordable(limit - used.committed());
                let waits = used.in_flight > 0;
                if let Some(output) =
                    output.filter(|output| !waits || *output >= quote.wanted.min(COMFORTABLE))
                {
                    let usd = quote.at(output);
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
    fn committed(&self) -> f64 {
        self.usd + self.reserved + self.unknown
    }
}

/// The money of one request in flight. Dropped without being settled it stays taken: the provider
/// may bill the request.
pub(crate) struct Reservation {
    budget: SharedBudget,
    limit: f64,
    usd: f64,
}

impl Reservation {
    /// The request cost this much.
    pub(crate) fn settle(mut self, tokens: u64, usd: f64) {
        self.budget.spend(tokens, usd);
        self.free();
    }

    /// The request cost nothing.
    pub(crate) fn release(mut self) {
        self.free();
    }

    /// Whether there is money for another try, when the one before may be billed.
    pub(crate) fn repeat(&mut self) -> bool {
        let mut used = self.budget.used();
        let fits = used.committed() + self.usd <= self.limit;
        if fits {
            used.unknown += self.usd;
        }
        fits
    }

    fn free(&mut self) {
        self.budget.used().reserved -= std::mem::take(&mut self.usd);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        {
            let mut used = self.budget.used();
            used.reserved -= self.usd;
            used.unknown += self.usd;
            used.in_flight -= 1;
            if used.in_flight == 0 {
                // Sums of fractions leave dust.
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
    async fn a_request_has_as_much_output_as_there_is_money_for() {
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
    async fn one_waits_for_what_another_does_not_use() {
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
    async fn what_may_have_been_billed_stays_taken() {
        let budget = SharedBudget::default();
        let (mut tried, _) = budget.reserve(10.0, quote(1.0, 2_000)).await.unwrap();
        assert!(
            tried.repeat() && tried.repeat() && !tried.repeat(),
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

    /// Whatever agents do side by side, and however dear their requests turn out, the limit holds.
    #[tokio::test]
    async fn requests_side_by_side_keep_the_limit() {
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
                        let most = quote.at(output);
                        match draw {
                            // Refused before it was worked on.
                            0 => reserved.release(),
                            // Lost, billed in full, and sent again.
                            1 if reserved.repeat() => {
                                billed += 2.0 * most;
                                reserved.settle(10, most);
                            }
                            // Cancelled, and billed in full.
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
