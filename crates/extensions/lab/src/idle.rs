//! Computes the cost of recorded pauses under rules for keep-alive requests and lifetimes of cache
//! entries, and the cost with perfect knowledge of all pauses.
//!
//! Each request repeats the previous one and adds tokens. A pause costs nothing if the cache entry
//! lives until the next request; otherwise the whole prefix is written again.

use std::time::Duration;

use haft_context::{
    GapHistory, GapKind, IdleCost, IdleDecision, IdleLimits, IdleMode, IdlePause, LifetimeChoice,
    LifetimeOffer, PendingWork, choose_lifetime, decide_idle, keep_alive_after,
};
use haft_types::Price;

/// The mean number of tokens that a request adds, as the choice of a lifetime assumes.
const MEAN_GROWTH: u64 = 1_000;

/// A recorded request of a timed conversation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedRequest {
    /// The time since the previous reply, and the event that ended this time; `None` for the first
    /// request.
    pub gap: Option<(Duration, GapKind)>,
    /// The number of tokens in the request.
    pub tokens: u64,
}

/// The prices of a model, and the lifetimes that its provider sells.
#[derive(Clone, Debug)]
pub struct TimedPrices {
    pub name: &'static str,
    pub price: Price,
    /// The lifetimes, shortest first, with the price of writing a million tokens.
    pub offers: Vec<LifetimeOffer>,
}

impl TimedPrices {
    fn read(&self) -> f64 {
        self.price.cached_input.unwrap_or(self.price.input)
    }
}

/// A rule for the time between two requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IdleRule {
    /// No keep-alive requests, and always the offer with this index.
    Expire { offer: usize },
    /// Up to this many keep-alive requests in every pause, with the shortest lifetime.
    Always { pings: u32 },
    /// haft's own rule.
    Decide(IdleMode),
}

/// The cost of conversations under a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IdleOutcome {
    /// The cost of the input of all requests, in USD.
    pub cost: f64,
    /// The part of the cost that keep-alive requests caused.
    pub ping_cost: f64,
    pub pings: u32,
    /// The number of pauses after which the prefix was written again.
    pub rebuilds: u32,
}

impl IdleOutcome {
    fn pay(&mut self, cost: f64) {
        self.cost += cost;
    }
}

/// Computes the cost of the conversations under a rule. After the last request of a conversation,
/// the process stays open for ever, so that keep-alive requests that help nobody are counted.
pub fn price_idle_rule(
    rule: IdleRule,
    conversations: &[Vec<TimedRequest>],
    prices: &TimedPrices,
    limits: IdleLimits,
) -> IdleOutcome {
    let mut outcome = IdleOutcome::default();
    for requests in conversations {
        let mut replay = IdleReplay {
            rule,
            prices,
            limits,
            gaps: GapHistory::default(),
            offer: 0,
            outcome: &mut outcome,
        };
        replay.price_conversation(requests);
    }
    outcome
}

/// One conversation under a rule.
struct IdleReplay<'a> {
    rule: IdleRule,
    prices: &'a TimedPrices,
    limits: IdleLimits,
    gaps: GapHistory,
    /// The index of the lifetime that was bought last.
    offer: usize,
    outcome: &'a mut IdleOutcome,
}

impl IdleReplay<'_> {
    fn price_conversation(&mut self, requests: &[TimedRequest]) {
        let mut before = 0;
        for request in requests {
            let Some((gap, kind)) = request.gap else {
                self.write_prefix(request.tokens);
                before = request.tokens;
                continue;
            };
            let alive = self.keep_alive(before, gap, kind);
            if gap <= alive {
                let offer = self.prices.offers[self.offer];
                let cost = warm_cost(self.prices, offer, before, request.tokens);
                self.outcome.pay(cost);
            } else {
                self.outcome.rebuilds += 1;
                self.write_prefix(request.tokens);
            }
            self.gaps.record(kind, gap);
            before = request.tokens;
        }
        if before > 0 {
            self.keep_alive(before, Duration::MAX, GapKind::User);
        }
    }

    /// Buys a lifetime and writes the whole prefix.
    fn write_prefix(&mut self, tokens: u64) {
        self.offer = match self.rule {
            IdleRule::Expire { offer } => offer,
            IdleRule::Always { .. } => 0,
            IdleRule::Decide(mode) => choose_lifetime(
                &self.prices.offers,
                &LifetimeChoice {
                    mode,
                    limits: self.limits,
                    read: self.prices.read(),
                    prefix: tokens,
                    growth: MEAN_GROWTH,
                    gaps: &self.gaps,
                },
            ),
        };
        let write = self.prices.offers[self.offer].write;
        self.outcome.pay(tokens as f64 / 1e6 * write);
    }

    /// Sends keep-alive requests for a prefix of `tokens` during `gap`. Returns the time for which
    /// the entry lives after the previous reply.
    fn keep_alive(&mut self, tokens: u64, gap: Duration, kind: GapKind) -> Duration {
        let LifetimeOffer { lifetime, write } = self.prices.offers[self.offer];
        let price = Price {
            cache_write: Some(write),
            ..self.prices.price
        };
        let cost = IdleCost::from_price(price, tokens, 1);
        let step = keep_alive_after(lifetime);
        let mut used = Duration::ZERO;
        let mut sent = 0;
        loop {
            let due = used + step;
            let is_sent = gap > due
                && match self.rule {
                    IdleRule::Expire { .. } => false,
                    IdleRule::Always { pings } => sent < pings,
                    IdleRule::Decide(mode) => {
                        let pause = IdlePause {
                            mode,
                            pending: match kind {
                                GapKind::Call => PendingWork::Call,
                                GapKind::Awaited => PendingWork::Question,
                                GapKind::User => PendingWork::Nothing,
                            },
                            cost,
                            limits: self.limits,
                            lifetime,
                            elapsed: due,
                            unused: step,
                            sent,
                            spent: f64::from(sent) * cost.ping,
                            gaps: &self.gaps,
                        };
                        matches!(decide_idle(&pause), IdleDecision::KeepAlive { .. })
                    }
                };
            if !is_sent {
                return used + lifetime;
            }
            self.outcome.pay(cost.ping);
            self.outcome.ping_cost += cost.ping;
            self.outcome.pings += 1;
            sent += 1;
            used = due;
        }
    }
}

/// Returns the cost of a request of `tokens` tokens whose first `before` tokens are in the cache.
fn warm_cost(prices: &TimedPrices, offer: LifetimeOffer, before: u64, tokens: u64) -> f64 {
    let read = before.min(tokens);
    (read as f64 * prices.read() + (tokens - read) as f64 * offer.write) / 1e6
}

/// Returns the lowest possible cost of the conversations, in USD: every pause is known in advance,
/// and neither number nor cost of keep-alive requests is limited.
pub fn oracle_idle_cost(conversations: &[Vec<TimedRequest>], prices: &TimedPrices) -> f64 {
    conversations
        .iter()
        .map(|requests| oracle_conversation_cost(requests, prices))
        .sum()
}

fn oracle_conversation_cost(requests: &[TimedRequest], prices: &TimedPrices) -> f64 {
    // The lowest cost so far, for each lifetime that may have been bought last.
    let mut costs = vec![0.0; prices.offers.len()];
    let mut before = 0;
    for request in requests {
        let cheapest = costs.iter().copied().fold(f64::INFINITY, f64::min);
        let next = prices.offers.iter().zip(&costs).map(|(offer, so_far)| {
            let rebuilt = cheapest + request.tokens as f64 / 1e6 * offer.write;
            let Some((gap, _)) = request.gap else {
                return rebuilt;
            };
            let step = keep_alive_after(offer.lifetime).as_secs_f64();
            let beyond = gap.saturating_sub(offer.lifetime).as_secs_f64();
            let pings = (beyond / step).ceil();
            let ping = before as f64 / 1e6 * prices.read() + prices.price.output / 1e6;
            let kept = so_far + pings * ping + warm_cost(prices, *offer, before, request.tokens);
            kept.min(rebuilt)
        });
        costs = next.collect();
        before = request.tokens;
    }
    costs.into_iter().fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: IdleLimits = IdleLimits { pings: 6, usd: 0.1 };

    fn prices() -> TimedPrices {
        let offer = |minutes, write| LifetimeOffer {
            lifetime: Duration::from_mins(minutes),
            write,
        };
        TimedPrices {
            name: "m",
            price: Price {
                input: 2.0,
                cached_input: Some(0.2),
                cache_write: Some(2.5),
                output: 0.0,
                long: None,
            },
            offers: vec![offer(5, 2.5), offer(60, 4.0)],
        }
    }

    fn conversation(gaps: &[(u64, GapKind)]) -> Vec<TimedRequest> {
        let first = TimedRequest {
            gap: None,
            tokens: 100_000,
        };
        let later = gaps.iter().map(|(seconds, kind)| TimedRequest {
            gap: Some((Duration::from_secs(*seconds), *kind)),
            tokens: 100_000,
        });
        [first].into_iter().chain(later).collect()
    }

    fn cost(rule: IdleRule, gaps: &[(u64, GapKind)]) -> (f64, u32, u32) {
        let outcome = price_idle_rule(rule, &[conversation(gaps)], &prices(), LIMITS);
        let rounded = (outcome.cost * 1e4).round() / 1e4;
        (rounded, outcome.pings, outcome.rebuilds)
    }

    #[test]
    fn rules_pay_for_writes_reads_and_requests() {
        use GapKind::{Call, User};
        let gaps = [(20, Call), (400, User)];
        // A write, a read, and a rebuild.
        let expire = IdleRule::Expire { offer: 0 };
        assert_eq!(cost(expire, &gaps), (0.52, 0, 1));
        let hour = IdleRule::Expire { offer: 1 };
        assert_eq!(cost(hour, &gaps), (0.44, 0, 0));
        // One request in the gap, and two after the end.
        let always = IdleRule::Always { pings: 2 };
        assert_eq!(cost(always, &gaps), (0.35, 3, 0));
        let auto = IdleRule::Decide(IdleMode::Auto);
        let (_, pings, _) = cost(auto, &gaps);
        assert_eq!(pings, 0, "nothing is pending before an input");
        let (_, pings, rebuilds) = cost(auto, &[(400, Call)]);
        assert_eq!((pings, rebuilds), (1, 0), "a call is pending");
    }

    #[test]
    fn oracle_is_never_dearer_than_a_rule() {
        use GapKind::{Call, User};
        for gaps in [
            &[(20, Call), (400, User)][..],
            &[(4_000, User), (4_000, User), (10, Call)],
            &[(290, Call), (310, User), (86_400, User)],
        ] {
            let conversations = [conversation(gaps)];
            let best = oracle_idle_cost(&conversations, &prices());
            for rule in [
                IdleRule::Expire { offer: 0 },
                IdleRule::Expire { offer: 1 },
                IdleRule::Always { pings: 6 },
                IdleRule::Decide(IdleMode::Auto),
                IdleRule::Decide(IdleMode::Ping),
            ] {
                let outcome = price_idle_rule(rule, &conversations, &prices(), LIMITS);
                assert!(best <= outcome.cost + 1e-9, "{rule:?} {gaps:?}");
            }
        }
    }
}
