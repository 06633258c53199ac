//! Estimates the input cost of a request on a warm cache: its read, written and fresh tokens, and
//! the extra cost of a break of the prefix.
//!
//! ```text
//! last   S ¹ U A T A T ²
//! now    S ¹ U A t A T A T ²      the result t was cleared: the nearest mark that still matches is ¹
//!        read| written       |    again: U, A, A, T were sent before and are written once more
//! ```

use std::collections::HashSet;
use std::time::Duration;

use haft_types::{CacheMatch, Layer, ModelSpec, SentSegment, Usage};

use serde::Serialize;

use crate::cache::prefix::{
    Cause, DeliberateChanges, Prefix, Sent, compare_requests, count_equal_segments,
    count_kept_segments,
};
use crate::scale::Scale;
use crate::snapshot::has_expired;

/// The tokens that a break causes to be billed again, and their extra cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BreakPrice {
    /// The number of tokens that were sent before and are billed again instead of being read from
    /// the cache.
    pub tokens: u64,
    /// The extra cost of `tokens` compared with reading them from the cache, in USD; `None` without
    /// prices.
    pub cost: Option<f64>,
    pub basis: PriceBasis,
}

/// The evidence for the price of a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceBasis {
    /// The provider's token counts for the request.
    Billed,
    /// The documented rules of the provider's cache. There are no token counts, or not yet.
    Forecast,
}

/// The input of a request that does not extend the previous one, in the model's own tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokenInput {
    /// The estimated number of tokens in the whole request.
    pub total: u64,
    /// The number of tokens that no earlier request contained.
    pub new: u64,
    /// The tokens that were sent before and that the cache is not expected to contain any more, by
    /// the class in which they are billed: `input` or `cache_write`.
    pub again: Usage,
}

impl BrokenInput {
    /// Returns the price of the break. This is the only function that prices a break.
    ///
    /// The break never costs more than the input that the provider billed as not read from the
    /// cache, less the tokens that are new in this request. Without `billed`, the price is a
    /// forecast.
    pub fn price(&self, billed: Option<Usage>, model: &ModelSpec) -> BreakPrice {
        let billed = billed.filter(|usage| usage.all_input() > 0);
        let forecast = self.again.all_input();
        let (again, whole, basis) = match billed {
            None => (self.again, self.total, PriceBasis::Forecast),
            Some(usage) => {
                let unread = usage.input + usage.cache_write;
                let forecast = scale_to_bill(forecast, self.total, usage);
                let tokens =
                    forecast.min(unread - estimate_new_tokens(self.total, self.new, usage));
                // New tokens are at the end of a request, behind the tokens that are written.
                let cache_write = tokens.min(usage.cache_write);
                let again = Usage {
                    input: tokens - cache_write,
                    cache_write,
                    ..Usage::default()
                };
                (again, usage.all_input(), PriceBasis::Billed)
            }
        };
        let tokens = again.all_input();
        let as_read = Usage {
            cached_input: tokens,
            ..Usage::default()
        };
        // The size of the whole request decides which prices apply, not the part that is billed
        // again.
        let price = model.price.map(|price| price.prices_for_input(whole));
        let cost = price.map(|price| match model.cache.rule.cache_match() {
            CacheMatch::NoCache => 0.0,
            CacheMatch::Prefix | CacheMatch::Boundaries => {
                price.request_cost(again).total - price.request_cost(as_read).total
            }
        });
        BreakPrice {
            tokens,
            cost,
            basis,
        }
    }
}

/// Estimates how many tokens of a billed request no earlier request contained, and which therefore
/// no cache could have contained: `new` of the `total` tokens of haft's own estimate. The result is
/// never larger than the input that was not read from the cache.
pub fn estimate_new_tokens(total: u64, new: u64, billed: Usage) -> u64 {
    let new = scale_to_bill(new, total, billed);
    new.min(billed.input + billed.cache_write)
}

/// Converts `tokens` of haft's estimate for a request of `total` tokens to the provider's count.
fn scale_to_bill(tokens: u64, total: u64, billed: Usage) -> u64 {
    const MAX_ERROR: f64 = 2.0;
    let error = billed.all_input() as f64 / total.max(1) as f64;
    // A bill far above the estimate includes parts that the log lacks, such as the system message
    // of an imported conversation.
    let scale = if error > MAX_ERROR { 1.0 } else { error };
    (tokens as f64 * scale).round() as u64
}

/// A request that the provider's cache may still contain, and the number of its leading segments
/// that the current request repeats.
pub(crate) type CachedBase<'a> = (&'a Sent, usize);

/// A request whose cost is to be computed. Its cache marks must already be set.
#[derive(Clone, Copy)]
pub(crate) struct Priced<'a> {
    pub(crate) now: &'a Sent,
    pub(crate) model: &'a ModelSpec,
    /// The number of tokens in the tools, which precede the first segment.
    pub(crate) tool_tokens: u32,
}

/// The numbers of leading segments of a request that the provider's cache reads, and that it
/// stores.
#[derive(Clone, Copy)]
struct CachedSegments {
    /// The number of leading segments that are read from the cache.
    read: usize,
    /// The number of leading segments that are in the cache after the request, if storing them is
    /// billed.
    stored: usize,
}

impl Priced<'_> {
    /// Returns the input tokens by class, assuming that the provider's cache holds `base`. `total`
    /// is the counted size of the whole request, including its framing.
    pub(crate) fn expected_usage(self, total: u64, base: Option<CachedBase<'_>>) -> Usage {
        let CachedSegments { read, stored } = self.cached_segments(base);
        let cached_input = self.prefix_tokens(read);
        let cache_write = self.prefix_tokens(stored).saturating_sub(cached_input);
        let total = Scale::for_model(self.model).to_model_tokens(total);
        Usage {
            input: total - cached_input - cache_write,
            cached_input,
            cache_write,
            ..Usage::default()
        }
    }

    /// Returns the input of a request that breaks the prefix of `last`. `base` is the request whose
    /// prefix the cache still contains, if there is one.
    ///
    /// A token was sent before if `last` contains its segment, or contains its message in another
    /// form: a client that only appends would still send the message as it was.
    pub(crate) fn broken_input(self, last: &Sent, base: Option<CachedBase<'_>>) -> BrokenInput {
        let CachedSegments { read, stored } = self.cached_segments(base);
        // Without a cache nothing is lost, but the resent tokens can still be counted.
        let read = if self.model.cache.rule.cache_match() == CacheMatch::NoCache {
            base.map_or(0, |(_, kept)| kept)
        } else {
            read
        };
        let equal = count_equal_segments(last, self.now);
        let others = &last.segments[equal..];
        let hashes: HashSet<_> = others.iter().map(|segment| segment.hash).collect();
        let is_conversation =
            |segment: &&SentSegment| matches!(segment.layer, Layer::History | Layer::Current);
        let messages: HashSet<_> = others
            .iter()
            .filter(is_conversation)
            .map(|segment| segment.message)
            .collect();
        let mut again = Usage::default();
        let mut new = 0;
        let mut add = |tokens: u32, index: usize| {
            let class = if index < stored {
                &mut again.cache_write
            } else {
                &mut again.input
            };
            *class += u64::from(tokens);
        };
        // Tools are read together with the first segment or not at all.
        if read == 0 && last.tools == self.now.tools {
            add(self.tool_tokens, 0);
        } else if last.tools != self.now.tools {
            new += u64::from(self.tool_tokens);
        }
        for (index, segment) in self.now.segments.iter().enumerate() {
            let was_sent = index < equal
                || hashes.contains(&segment.hash)
                || is_conversation(&segment) && messages.contains(&segment.message);
            if !was_sent {
                new += u64::from(segment.tokens);
            } else if index >= read {
                add(segment.tokens, index);
            }
        }
        let scale = Scale::for_model(self.model);
        again.input = scale.to_model_tokens(again.input);
        again.cache_write = scale.to_model_tokens(again.cache_write);
        BrokenInput {
            total: self.prefix_tokens(self.now.segments.len()),
            new: scale.to_model_tokens(new),
            again,
        }
    }

    /// Returns the price of a break of the prefix of `last`. `own` is the newest earlier request to
    /// the model, if `last` went to another one.
    pub(crate) fn price_break(
        self,
        last: EarlierRequest<'_>,
        own: Option<EarlierRequest<'_>>,
        billed: Option<Usage>,
    ) -> BreakPrice {
        let base = find_cached_base(self.now, self.model, Some(last), own);
        let mut input = self.broken_input(last.sent, base);
        // Nothing in an expired cache can be lost.
        if has_expired(self.model, last.idle) {
            input.again = Usage::default();
        }
        input.price(billed, self.model)
    }

    fn cached_segments(self, base: Option<CachedBase<'_>>) -> CachedSegments {
        let (read, stored) = match self.model.cache.rule.cache_match() {
            CacheMatch::NoCache => (0, 0),
            CacheMatch::Prefix => (base.map_or(0, |(_, kept)| kept), 0),
            CacheMatch::Boundaries => {
                let marked =
                    |segments: &[SentSegment]| segments.iter().rposition(|one| one.boundary);
                let found = base.and_then(|(sent, kept)| marked(&sent.segments[..kept]));
                (
                    found.map_or(0, |index| index + 1),
                    marked(&self.now.segments).map_or(0, |index| index + 1),
                )
            }
        };
        // Shorter prefixes are not cached.
        let bounded = |count: usize| {
            if self.prefix_tokens(count) < u64::from(self.model.cache.min) {
                0
            } else {
                count
            }
        };
        CachedSegments {
            read: bounded(read),
            stored: bounded(stored),
        }
    }

    /// Returns the number of the model's tokens in the tools and the first `count` segments; 0 if
    /// `count` is 0.
    fn prefix_tokens(self, count: usize) -> u64 {
        let segments = self.now.segments[..count]
            .iter()
            .map(|segment| u64::from(segment.tokens))
            .sum::<u64>();
        if count == 0 {
            0
        } else {
            Scale::for_model(self.model).to_model_tokens(u64::from(self.tool_tokens) + segments)
        }
    }
}

/// An earlier request of a conversation, and the time from that request to the current one.
#[derive(Clone, Copy, Debug)]
pub struct EarlierRequest<'a> {
    pub sent: &'a Sent,
    pub idle: Option<Duration>,
}

impl<'a> EarlierRequest<'a> {
    /// Returns this request as the base of a prediction, or `None` if the cache of `model` can hold
    /// no part of it.
    fn cached_base(self, now: &Sent, model: &ModelSpec) -> Option<CachedBase<'a>> {
        let is_alive = self.sent.model == model.full_name() && !has_expired(model, self.idle);
        is_alive.then(|| (self.sent, count_kept_segments(self.sent, now)))
    }
}

/// Returns the request whose prefix the provider's cache still contains: the previous request, or,
/// after a switch back to a model, the newest request to that model.
pub(crate) fn find_cached_base<'a>(
    now: &Sent,
    model: &ModelSpec,
    last: Option<EarlierRequest<'a>>,
    own: Option<EarlierRequest<'a>>,
) -> Option<CachedBase<'a>> {
    [last, own]
        .into_iter()
        .flatten()
        .find_map(|earlier| earlier.cached_base(now, model))
}

/// A request from a log.
#[derive(Clone, Copy)]
pub struct LoggedInput<'a> {
    pub sent: &'a Sent,
    pub model: &'a ModelSpec,
    /// The number of tokens in the tools, which precede the first segment.
    pub tool_tokens: u32,
    /// The token counts that the provider reported.
    pub billed: Option<Usage>,
}

/// Compares a request from a log with the previous one, `last`. The log does not record which
/// changes were deliberate.
///
/// Causes that segments cannot show ([`Cause::TooLarge`],
/// [`Cause::MessagesDeleted`]) are reported as the cause that the
/// segments suggest. `find_own` is called only after a switch of the model; it returns the newest
/// earlier request to the model of `now`.
pub fn compare_logged_requests<'a>(
    now: LoggedInput<'_>,
    last: EarlierRequest<'a>,
    find_own: impl FnOnce() -> Option<EarlierRequest<'a>>,
) -> Prefix {
    let mut prefix = compare_requests(
        last.sent,
        now.sent,
        DeliberateChanges {
            deleted: false,
            ladder: false,
        },
    );
    if let Some(broken) = &mut prefix.broken {
        let own = if broken.cause == Cause::ModelSwitched {
            find_own()
        } else {
            None
        };
        let priced = Priced {
            now: now.sent,
            model: now.model,
            tool_tokens: now.tool_tokens,
        };
        broken.price = priced.price_break(last, own, now.billed);
    }
    prefix
}

#[cfg(test)]
mod tests;
