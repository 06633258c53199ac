//! Estimates the input cost of a request on a warm cache: its read, written and fresh tokens, and
//! the extra cost of a break of the prefix.
//!
//! ```text
//! last   S ¹ U A T A T ²
//! now    S ¹ U A t A T A T ²      the result t was cleared: the nearest mark that still matches is ¹
//!        read| written       |    again: U, A, A, T were sent before and are written once more
//! ```

use std::collections::HashSet;

use haft_types::{CacheMatch, ModelSpec, SentSegment, Usage};

use crate::cache::prefix::{Break, DeliberateChanges, Prefix, Sent, compare_requests};
use crate::scale::Scale;

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
    /// Returns the input tokens by class, assuming that the provider's cache holds the previous
    /// request.
    ///
    /// `total` is the counted size of the whole request, including its framing. `last` contains the
    /// previous request, and the number of its segments that the current request repeats.
    pub(crate) fn expected_usage(self, total: u64, last: Option<(&Sent, usize)>) -> Usage {
        let CachedSegments { read, stored } = self.cached_segments(last);
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

    /// Sets the token count and the cost of a break. A token counts only if the previous request
    /// also contained it and it is billed again.
    pub(crate) fn price_break(self, broken: &mut Break, last: &Sent, kept: usize) {
        let CachedSegments { read, stored } = self.cached_segments(Some((last, kept)));
        // Without a cache nothing is lost, but the resent tokens can still be counted.
        let read = if self.model.cache.rule.cache_match() == CacheMatch::NoCache {
            kept
        } else {
            read
        };
        let before: HashSet<_> = last.segments[read..]
            .iter()
            .map(|segment| segment.hash)
            .collect();
        let mut again = Usage::default();
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
        }
        for (index, segment) in self.now.segments.iter().enumerate().skip(read) {
            if before.contains(&segment.hash) {
                add(segment.tokens, index);
            }
        }
        let scale = Scale::for_model(self.model);
        again.input = scale.to_model_tokens(again.input);
        again.cache_write = scale.to_model_tokens(again.cache_write);
        broken.tokens = again.all_input();
        // The size of the whole request decides which prices apply, not the part that is billed
        // again.
        let whole = self.prefix_tokens(self.now.segments.len());
        let as_read = Usage {
            cached_input: broken.tokens,
            ..Usage::default()
        };
        let price = self.model.price.map(|price| price.prices_for_input(whole));
        broken.cost = price.map(|price| match self.model.cache.rule.cache_match() {
            CacheMatch::NoCache => 0.0,
            CacheMatch::Prefix | CacheMatch::Boundaries => {
                price.request_cost(again).total - price.request_cost(as_read).total
            }
        });
    }

    fn cached_segments(self, last: Option<(&Sent, usize)>) -> CachedSegments {
        let (read, stored) = match self.model.cache.rule.cache_match() {
            CacheMatch::NoCache => (0, 0),
            CacheMatch::Prefix => (last.map_or(0, |(_, kept)| kept), 0),
            CacheMatch::Boundaries => {
                let marked =
                    |segments: &[SentSegment]| segments.iter().rposition(|one| one.boundary);
                let found = last.and_then(|(sent, kept)| marked(&sent.segments[..kept]));
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

/// Compares two requests from a log. The log does not record which changes were deliberate.
///
/// Causes that segments cannot show ([`Cause::TooLarge`](crate::Cause::TooLarge),
/// [`Cause::MessagesDeleted`](crate::Cause::MessagesDeleted)) are reported as the cause that the
/// segments suggest. `tool_tokens` is the number of tokens of the tools of `now`, which precede its
/// first segment.
pub fn compare_logged_requests(
    last: &Sent,
    now: &Sent,
    model: &ModelSpec,
    tool_tokens: u32,
) -> Prefix {
    let mut prefix = compare_requests(
        last,
        now,
        DeliberateChanges {
            deleted: false,
            ladder: false,
        },
    );
    let priced = Priced {
        now,
        model,
        tool_tokens,
    };
    if let Some(broken) = &mut prefix.broken {
        priced.price_break(broken, last, prefix.kept);
    }
    prefix
}

#[cfg(test)]
mod tests;
