//! Decides what happens to the cached prefix while no request is sent: whether another keep-alive
//! request pays, and which lifetime to buy when the prefix is written.
//!
//! ```text
//! reply ── 4.5 min ──► keep-alive ── 4.5 min ──► keep-alive ──► next request
//!          |           reads the prefix: r · T    |              reads the prefix instead of
//!          |                                      |              writing it again: saves (w − r) · T
//!          the entry would expire after 5 min
//! ```
//!
//! A keep-alive request pays if the saving, multiplied by the probability that the next request
//! comes before the entry expires again, exceeds its own cost. The probability depends on the time
//! that has passed and on the reason for the pause: a [`GapHistory`] combines the gaps of this
//! conversation with gaps recorded elsewhere (`docs/context-lab.md`).
//!
//! Invariant: a keep-alive request is recommended only if its expected saving is positive.

use std::time::Duration;

use haft_types::{CacheKind, Message, Price, Role, Timestamp};
use serde::{Deserialize, Serialize};

/// The fraction of the lifetime that is left when a keep-alive request is sent.
const MARGIN_DIVISOR: u32 = 10;
/// The weight of the recorded gaps, as a number of gaps of the conversation.
const RECORDED_WEIGHT: f64 = 20.0;
/// The number of requests after which a prefix is expected to be written anew, whatever its
/// lifetime.
const REQUESTS_PER_WRITE: f64 = 40.0;

/// The proportion of recorded gaps that were longer than a number of seconds. The gaps are those of
/// the first half of the timed recordings.
type RecordedGaps = [(f64, f64)];

/// The gaps after a turn. No further input followed a quarter of the turns.
const RECORDED_USER_GAPS: &RecordedGaps = &[
    (5.0, 0.973),
    (30.0, 0.884),
    (60.0, 0.759),
    (120.0, 0.616),
    (180.0, 0.518),
    (240.0, 0.482),
    (300.0, 0.411),
    (420.0, 0.384),
    (600.0, 0.366),
    (900.0, 0.304),
    (1_800.0, 0.295),
    (3_600.0, 0.268),
    (14_400.0, 0.259),
];
/// The gaps before a user's input after turns that were followed by one.
const RECORDED_AWAITED_GAPS: &RecordedGaps = &[
    (5.0, 0.964),
    (30.0, 0.845),
    (60.0, 0.679),
    (120.0, 0.488),
    (180.0, 0.357),
    (240.0, 0.310),
    (300.0, 0.214),
    (420.0, 0.179),
    (600.0, 0.155),
    (900.0, 0.072),
    (1_800.0, 0.060),
    (3_600.0, 0.024),
    (14_400.0, 0.012),
];
/// The gaps while calls ran, including the time for their approval.
const RECORDED_CALL_GAPS: &RecordedGaps = &[
    (1.0, 0.698),
    (2.0, 0.479),
    (5.0, 0.225),
    (10.0, 0.125),
    (30.0, 0.060),
    (60.0, 0.042),
    (120.0, 0.018),
    (180.0, 0.012),
    (240.0, 0.008),
    (300.0, 0.0067),
    (600.0, 0.0022),
    (900.0, 0.0015),
    (1_800.0, 0.0006),
    (3_600.0, 0.0003),
];

/// Controls when keep-alive requests are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdleMode {
    /// Keep-alive requests are sent only while something is pending.
    #[default]
    Auto,
    /// Keep-alive requests are also sent while the user alone is awaited.
    Ping,
    /// No keep-alive request is sent.
    Off,
}

impl IdleMode {
    /// Returns the name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Ping => "ping",
            Self::Off => "off",
        }
    }
}

/// The work that a pause waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PendingWork {
    /// A call of the running turn, or its approval.
    Call,
    /// A background task or terminal session.
    Task,
    /// A question to the user.
    Question,
    /// The pause ends only with the user's next input.
    Nothing,
}

impl PendingWork {
    /// Returns the kind of gap that this work causes. A background task doesn't send a request when
    /// it ends, so the user ends the gap, as with a question. In both cases the user has a reason to
    /// come back.
    fn gap_kind(self) -> GapKind {
        match self {
            Self::Call => GapKind::Call,
            Self::Task | Self::Question => GapKind::Awaited,
            Self::Nothing => GapKind::User,
        }
    }
}

/// The event that ends a gap between a reply and the next request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapKind {
    /// The calls of the reply have ended.
    Call,
    /// The user has sent an input for which something waited.
    Awaited,
    /// The user has sent an input, if ever.
    User,
}

/// The gaps between replies and the requests after them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GapHistory {
    calls: Vec<f64>,
    user: Vec<f64>,
}

impl GapHistory {
    /// Collects the gaps of a conversation from the times of its messages, oldest first.
    pub fn from_messages<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Self {
        let mut history = Self::default();
        let mut reply = None;
        let mut newest = None;
        for message in messages {
            match message.role {
                Role::Assistant => {
                    if let Some((replied, (kind, ended))) = reply.zip(newest.take()) {
                        let gap = message_gap(replied, ended);
                        history.record(kind, gap);
                    }
                    reply = Some(message.created_at);
                }
                Role::Tool => newest = Some((GapKind::Call, message.created_at)),
                Role::User => {
                    let kind = if message.opens_round() {
                        GapKind::User
                    } else {
                        newest.map_or(GapKind::User, |(kind, _)| kind)
                    };
                    newest = Some((kind, message.created_at));
                }
                Role::System | Role::Summary => {}
            }
        }
        history
    }

    /// Adds a gap.
    pub fn record(&mut self, kind: GapKind, gap: Duration) {
        self.own_gaps_mut(kind).push(gap.as_secs_f64());
    }

    fn own_gaps_mut(&mut self, kind: GapKind) -> &mut Vec<f64> {
        match kind {
            GapKind::Call => &mut self.calls,
            GapKind::Awaited | GapKind::User => &mut self.user,
        }
    }

    /// Returns the estimated proportion of gaps that are longer than `time`.
    pub fn longer_than(&self, kind: GapKind, time: Duration) -> f64 {
        let seconds = time.as_secs_f64();
        let (own, recorded) = match kind {
            GapKind::Call => (&self.calls, RECORDED_CALL_GAPS),
            GapKind::Awaited => (&self.user, RECORDED_AWAITED_GAPS),
            GapKind::User => (&self.user, RECORDED_USER_GAPS),
        };
        let longer = own.iter().filter(|gap| **gap > seconds).count() as f64;
        (RECORDED_WEIGHT * interpolate(recorded, seconds) + longer)
            / (RECORDED_WEIGHT + own.len() as f64)
    }

    /// Returns the number of gaps of this conversation.
    fn count(&self, kind: GapKind) -> usize {
        match kind {
            GapKind::Call => self.calls.len(),
            GapKind::Awaited | GapKind::User => self.user.len(),
        }
    }
}

/// Returns the time between two messages; zero if the clock was set back.
fn message_gap(earlier: Timestamp, later: Timestamp) -> Duration {
    later.duration_since(earlier).try_into().unwrap_or_default()
}

/// Returns the recorded proportion of gaps longer than `seconds`, interpolated by the logarithm of
/// the time.
fn interpolate(recorded: &RecordedGaps, seconds: f64) -> f64 {
    let mut before = (0.0_f64, 1.0_f64);
    for &(time, longer) in recorded {
        if seconds <= time {
            let part = (seconds.ln_1p() - before.0.ln_1p()) / (time.ln_1p() - before.0.ln_1p());
            return before.1 + (longer - before.1) * part;
        }
        before = (time, longer);
    }
    before.1
}

/// The costs between which a keep-alive request decides, in USD.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleCost {
    /// The cost of a keep-alive request.
    pub ping: f64,
    /// The cost of writing an expired prefix again, beyond the cost of reading it.
    pub rebuild: f64,
}

impl IdleCost {
    /// Computes the costs for a prefix of `tokens` of the model's tokens and a keep-alive request
    /// with `output` tokens of output.
    pub fn from_price(price: Price, tokens: u64, output: u32) -> Self {
        let price = price.prices_for_input(tokens);
        let read = price.cached_input.unwrap_or(price.input);
        let write = price.cache_write.unwrap_or(price.input).max(price.input);
        let millions = tokens as f64 / 1e6;
        Self {
            ping: millions * read + f64::from(output) * price.output / 1e6,
            rebuild: millions * (write - read).max(0.0),
        }
    }
}

/// The limits of the keep-alive requests in one gap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdleLimits {
    /// The maximum number of requests.
    pub pings: u32,
    /// The maximum cost of all requests, in USD.
    pub usd: f64,
}

/// A pause between two requests, at the moment at which the next keep-alive request could be sent.
#[derive(Clone, Copy, Debug)]
pub struct IdlePause<'a> {
    pub mode: IdleMode,
    pub pending: PendingWork,
    pub cost: IdleCost,
    pub limits: IdleLimits,
    /// The lifetime of a cache entry after its last use.
    pub lifetime: Duration,
    /// The time since the reply that began the pause.
    pub elapsed: Duration,
    /// The time since the cached prefix was last used.
    pub unused: Duration,
    /// The number of keep-alive requests sent in this pause.
    pub sent: u32,
    /// The cost of the keep-alive requests sent in this pause, in USD.
    pub spent: f64,
    pub gaps: &'a GapHistory,
}

/// The decision about the next keep-alive request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum IdleDecision {
    /// A keep-alive request is sent now.
    KeepAlive {
        /// The expected saving of the planned requests, in USD.
        saving: f64,
        /// The number of requests for which the expected saving is highest, including this one.
        planned: u32,
    },
    /// The prefix is left to expire.
    Expire(ExpiryReason),
}

/// The reason why no further keep-alive request is sent in a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryReason {
    /// The configuration allows no keep-alive requests.
    Off,
    /// Nothing is pending, and the configuration allows keep-alive requests only if something is.
    NothingPending,
    /// The cache entry has already expired.
    Expired,
    /// The pause has used up its number of requests.
    PingLimit,
    /// The next request would exceed the amount of money for one pause.
    MoneyLimit,
    /// The expected saving is not positive.
    NoSaving,
    /// A keep-alive request can't prolong the life of the entry, or its cost is unknown, or its
    /// output can't be limited.
    Unsupported,
    /// A keep-alive request failed.
    Failed,
}

/// Returns the time after its last use at which a cache entry with this lifetime gets a keep-alive
/// request.
pub fn keep_alive_after(lifetime: Duration) -> Duration {
    lifetime - lifetime / MARGIN_DIVISOR
}

/// True if keep-alive requests can prolong entries of this kind of cache: the provider documents
/// how long an entry lives after its last use.
pub fn can_keep_alive(rule: CacheKind) -> bool {
    match rule {
        CacheKind::Anthropic | CacheKind::Openai | CacheKind::OpenaiBreakpoints => true,
        // DeepSeek keeps entries for hours or days, Gemini guarantees nothing, and the lifetimes of
        // other servers are unknown or depend on their memory.
        CacheKind::Deepseek
        | CacheKind::Gemini
        | CacheKind::Automatic
        | CacheKind::Vllm
        | CacheKind::LlamaCpp
        | CacheKind::None => false,
    }
}

/// Decides whether a keep-alive request is sent now.
pub fn decide_idle(pause: &IdlePause<'_>) -> IdleDecision {
    let IdlePause {
        mode,
        pending,
        cost,
        limits,
        lifetime,
        unused,
        sent,
        spent,
        ..
    } = *pause;
    let reason = match mode {
        IdleMode::Off => Some(ExpiryReason::Off),
        IdleMode::Auto if pending == PendingWork::Nothing => Some(ExpiryReason::NothingPending),
        IdleMode::Auto | IdleMode::Ping if unused >= lifetime => Some(ExpiryReason::Expired),
        IdleMode::Auto | IdleMode::Ping if sent >= limits.pings => Some(ExpiryReason::PingLimit),
        IdleMode::Auto | IdleMode::Ping if spent + cost.ping > limits.usd => {
            Some(ExpiryReason::MoneyLimit)
        }
        IdleMode::Auto | IdleMode::Ping => None,
    };
    if let Some(reason) = reason {
        return IdleDecision::Expire(reason);
    }
    let affordable = if cost.ping > 0.0 {
        // The quotient may be slightly too low.
        ((limits.usd - spent) / cost.ping + 1e-9) as u32
    } else {
        u32::MAX
    };
    let most = (limits.pings - sent).min(affordable).max(1);
    let (saving, planned) = best_plan(pause, most);
    if planned > 0 {
        IdleDecision::KeepAlive { saving, planned }
    } else {
        IdleDecision::Expire(ExpiryReason::NoSaving)
    }
}

/// Returns the highest expected saving of up to `most` keep-alive requests, the first of which is
/// sent now, and their number. The number is 0 if no number of requests saves money.
fn best_plan(pause: &IdlePause<'_>, most: u32) -> (f64, u32) {
    let kind = pause.pending.gap_kind();
    let longer = |time| pause.gaps.longer_than(kind, time);
    let now = pause.elapsed;
    let still_idle = longer(now);
    if still_idle <= 0.0 {
        return (0.0, 0);
    }
    let step = keep_alive_after(pause.lifetime);
    let expires = now + pause.lifetime.saturating_sub(pause.unused);
    let lost_without = longer(expires);
    let mut best = (0.0, 0);
    let mut cost = 0.0;
    for count in 1..=most {
        let sent_at = now + step.saturating_mul(count - 1);
        cost += pause.cost.ping * longer(sent_at);
        let rescued = lost_without - longer(sent_at + pause.lifetime);
        let saving = (pause.cost.rebuild * rescued - cost) / still_idle;
        if saving > best.0 {
            best = (saving, count);
        }
        // Further requests would only be sent in gaps that hardly ever occur.
        if pause.cost.rebuild * longer(sent_at + pause.lifetime) < pause.cost.ping * 1e-3 {
            break;
        }
    }
    best
}

/// A lifetime that a provider sells, with the price of writing a million tokens for that time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LifetimeOffer {
    pub lifetime: Duration,
    pub write: f64,
}

/// The facts on which the choice of a lifetime depends, besides the offers.
#[derive(Clone, Copy, Debug)]
pub struct LifetimeChoice<'a> {
    pub mode: IdleMode,
    pub limits: IdleLimits,
    /// The price of reading a million tokens.
    pub read: f64,
    /// The number of tokens that are written now.
    pub prefix: u64,
    /// The mean number of tokens that each later request adds.
    pub growth: u64,
    pub gaps: &'a GapHistory,
}

/// Returns the index of the offer with the lowest expected cost until the prefix is written again.
/// Returns the first of several equal offers, and 0 without offers.
pub fn choose_lifetime(offers: &[LifetimeOffer], choice: &LifetimeChoice<'_>) -> usize {
    let costs = offers.iter().map(|offer| expected_cost(offer, choice));
    let mut best = (0, f64::INFINITY);
    for (index, cost) in costs.enumerate() {
        if cost < best.1 {
            best = (index, cost);
        }
    }
    best.0
}

/// Returns the expected cost in USD of writing the prefix for the lifetime of `offer`, of the later
/// writes, and of the pauses.
fn expected_cost(offer: &LifetimeOffer, choice: &LifetimeChoice<'_>) -> f64 {
    let tokens = choice.prefix as f64 / 1e6;
    let growth = choice.growth as f64 / 1e6;
    let cost = IdleCost {
        ping: tokens * choice.read,
        rebuild: tokens * (offer.write - choice.read).max(0.0),
    };
    // Gaps before an input are a tenth of all gaps until the conversation shows its own share.
    let calls = choice.gaps.count(GapKind::Call) as f64 + 9.0;
    let inputs = choice.gaps.count(GapKind::User) as f64 + 1.0;
    let pauses = [(PendingWork::Call, calls), (PendingWork::Nothing, inputs)];
    let lost: f64 = pauses
        .into_iter()
        .map(|(pending, weight)| {
            let gap = pending.gap_kind();
            let pause = IdlePause {
                mode: choice.mode,
                pending,
                cost,
                limits: choice.limits,
                lifetime: offer.lifetime,
                elapsed: keep_alive_after(offer.lifetime),
                unused: keep_alive_after(offer.lifetime),
                sent: 0,
                spent: 0.0,
                gaps: choice.gaps,
            };
            let saving = match decide_idle(&pause) {
                IdleDecision::KeepAlive { saving, .. } => saving,
                IdleDecision::Expire(_) => 0.0,
            };
            let expired = cost.rebuild * choice.gaps.longer_than(gap, offer.lifetime);
            weight * (expired - saving * choice.gaps.longer_than(gap, pause.elapsed))
        })
        .sum();
    let per_request = lost / (calls + inputs) + growth * offer.write;
    tokens * offer.write + REQUESTS_PER_WRITE * per_request
}

/// Billed reads that confirm or contradict the declared lifetime of cache entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LifetimeEvidence {
    /// The longest time, in seconds, after which a prefix was still read.
    longest_hit: f64,
    /// The shortest time, in seconds, after which a prefix was lost.
    shortest_loss: Option<f64>,
    /// The number of losses within the declared lifetime.
    early_losses: u32,
    /// The number of reads after the declared lifetime.
    late_hits: u32,
    /// True if the contradiction was reported to the user.
    pub reported: bool,
}

/// The number of observations that contradict a declared lifetime. A single loss may have another
/// cause, such as another server.
const CONTRADICTIONS: u32 = 2;
/// The minimum time after which a lost prefix says something about lifetimes.
const MIN_OBSERVED: Duration = Duration::from_secs(30);
/// The fraction of the expected tokens that must be read for a hit.
const HIT_SHARE: f64 = 0.8;
/// The fraction of the expected tokens below which the prefix was lost.
const LOSS_SHARE: f64 = 0.2;

impl LifetimeEvidence {
    /// Records a request that was sent `unused` after the last use of its prefix. `expected` is the
    /// number of tokens that an entry that lives on would provide, `read` the number billed.
    pub fn observe(&mut self, declared: Duration, unused: Duration, expected: u64, read: u64) {
        let seconds = unused.as_secs_f64();
        let share = read as f64 / expected.max(1) as f64;
        if unused < MIN_OBSERVED || expected == 0 {
            return;
        }
        if share >= HIT_SHARE {
            self.longest_hit = self.longest_hit.max(seconds);
            self.late_hits += u32::from(unused > declared);
            // A loss after a shorter time had another cause.
            if self.shortest_loss.is_some_and(|loss| loss <= seconds) {
                self.shortest_loss = None;
                self.early_losses = 0;
            }
        } else if share <= LOSS_SHARE && seconds > self.longest_hit {
            self.early_losses += u32::from(unused <= declared);
            let shortest = self.shortest_loss.unwrap_or(seconds).min(seconds);
            self.shortest_loss = Some(shortest);
        }
    }

    /// Returns the measured lifetime if the observations contradict the declared one.
    pub fn measured_lifetime(&self, declared: Duration) -> Option<Duration> {
        if self.late_hits >= CONTRADICTIONS {
            return Some(Duration::from_secs_f64(self.longest_hit));
        }
        let loss = self
            .shortest_loss
            .filter(|_| self.early_losses >= CONTRADICTIONS)?;
        // Without a hit, nothing is known about shorter times.
        let measured = if self.longest_hit > 0.0 {
            self.longest_hit
        } else {
            loss / 2.0
        };
        let measured = Duration::from_secs_f64(measured);
        (measured < declared).then_some(measured)
    }
}

#[cfg(test)]
mod tests;
