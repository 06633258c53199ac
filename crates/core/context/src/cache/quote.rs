//! Estimates the cost of an action before it is done: how much of the prefix would be billed again.
//!
//! ```text
//! sent     S D U A T A T A T          the cache should hold all of it
//! action   S D U A · A T A T          one result is removed: everything after it is written again
//!          read   | again     |       tokens, money, and the tokens saved in every later request
//! ```
//!
//! A [`PrefixCache`] records the requests of a conversation and [simulates](CacheSimulator) the
//! content of the provider's cache. A quote compares two versions of the next request: without the
//! action, and with it.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use haft_text::format_thousands;
use haft_types::{CacheMatch, ContentHash, Layer, ModelSpec, SentSegment, Usage};

use crate::cache::prefix::Sent;
use crate::cache::simulate::{CachePiece, CacheSimulator};
use crate::scale::Scale;

/// The requests that a conversation sent to one model, with a simulation of the model's cache.
/// Token numbers are in haft's count, not in the model's own tokens.
#[derive(Clone, Debug)]
pub struct PrefixCache {
    cache: CacheSimulator,
    scale: Scale,
    /// The pieces of the newest request, with the tools as the first piece.
    last: Vec<CachePiece>,
    /// The index of a mark that was copied from the previous request and is not among the newest
    /// request's own marks.
    passing: Option<usize>,
    /// The time of the newest request, measured from the first request.
    at: Duration,
}

/// A change to the newest request, whose effect on the cost of the next request is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextChange {
    /// All of the request changes, because a change of the tools affects the prefix from the start
    /// on every API.
    Everything,
    /// The message with this index, from 0, and everything after it change. An index beyond the end
    /// changes nothing.
    From(usize),
    /// The messages with these indices are left out.
    Without {
        /// The index of the first message that is left out.
        first: usize,
        /// The index after the last message that is left out.
        end: usize,
    },
}

/// The estimated cost of an action, in tokens and money.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quote {
    /// The input tokens of the next request, by class, if the action is done.
    pub usage: Usage,
    /// The input tokens of the next request, by class, if the action is not done.
    pub otherwise: Usage,
    /// The number of tokens that will be billed again although they could have been read from the
    /// cache.
    pub tokens: u64,
    /// The cost of the tokens that are billed again, in USD; `None` if the model has no prices.
    pub cost: Option<f64>,
    /// The extra cost of the next request in USD, negative if the action saves money; `None` if the
    /// model has no prices.
    pub extra: Option<f64>,
}

impl PrefixCache {
    /// Creates a cache without any requests.
    pub fn new(model: &ModelSpec) -> Self {
        let cache = CacheSimulator::new(&model.cache);
        Self {
            cache,
            scale: Scale::for_model(model),
            last: Vec::new(),
            passing: None,
            at: Duration::ZERO,
        }
    }

    /// Records a request of which only the outline is known. `after` is the time since the previous
    /// request. `blocks` returns the number of content blocks in a message.
    pub fn record_request(
        &mut self,
        after: Duration,
        sent: &Sent,
        tool_tokens: u32,
        blocks: impl Fn(&SentSegment) -> usize,
    ) {
        let tools = CachePiece {
            hash: sent.tools,
            tokens: tool_tokens.into(),
            blocks: 1,
            boundary: false,
        };
        let piece = |segment: &SentSegment| CachePiece {
            hash: segment.hash,
            tokens: segment.tokens.into(),
            blocks: blocks(segment).max(1) as u32,
            boundary: segment.boundary,
        };
        let request = [tools]
            .into_iter()
            .chain(sent.segments.iter().map(piece))
            .collect();
        self.record_pieces(
            after,
            request,
            sent.segments.iter().map(|segment| segment.layer),
        );
    }

    fn record_pieces(
        &mut self,
        after: Duration,
        request: Vec<CachePiece>,
        layers: impl Iterator<Item = Layer>,
    ) {
        self.at += after;
        self.cache
            .send_request(self.at, &self.scale_pieces(&request));
        let layers: Vec<_> = layers.collect();
        let documents = layers
            .iter()
            .rposition(|layer| *layer == Layer::Documents)
            .map(|index| index + 1);
        let before_run = layers.iter().position(|layer| *layer == Layer::Reminders);
        let standing = [Some(1), documents, before_run, Some(layers.len())];
        let passing = |(index, piece): (usize, &CachePiece)| {
            piece.boundary && !standing.contains(&Some(index))
        };
        self.passing = request.iter().enumerate().position(passing);
        self.last = request;
    }

    /// True if the conversation has not sent a request to the model.
    pub fn is_empty(&self) -> bool {
        self.last.is_empty()
    }

    /// Returns the number of tokens in the newest request, as the model counts them.
    pub fn tokens(&self) -> u64 {
        self.scale_pieces(&self.last)
            .iter()
            .map(|piece| piece.tokens)
            .sum()
    }

    /// Predicts the input usage of `request` if it is sent after a pause of `idle` since the newest
    /// recorded request.
    pub fn predict_usage(&self, idle: Duration, request: &[CachePiece]) -> Usage {
        self.cache
            .clone()
            .send_request(self.at + idle, &self.scale_pieces(request))
    }

    /// Quotes `change`, assuming that the changed request is sent after a pause of `idle` since the
    /// newest request.
    pub fn quote_change(&self, change: ContextChange, idle: Duration, model: &ModelSpec) -> Quote {
        let mut changed = self.last.clone();
        let from = match change {
            ContextChange::Everything => 0,
            ContextChange::From(segment) => segment.saturating_add(1),
            ContextChange::Without { first, end } => {
                return self.quote_removal(idle, &self.last, first..end, model);
            }
        };
        changed
            .iter_mut()
            .skip(from)
            .for_each(|piece| piece.hash = derive_changed_hash(piece.hash));
        // The mark only serves to match the previous request, so a change before it makes it
        // useless.
        if let Some(passing) = self.passing.filter(|passing| *passing >= from) {
            changed[passing].boundary = false;
        }
        self.quote_replacement(idle, &self.last, &changed, model)
    }

    /// Quotes the removal of the messages with the indices `gone` from `request`, assuming that the
    /// shortened request is sent after a pause of `idle`.
    pub fn quote_removal(
        &self,
        idle: Duration,
        request: &[CachePiece],
        gone: Range<usize>,
        model: &ModelSpec,
    ) -> Quote {
        self.quote_replacement(idle, request, &remove_messages(request, gone), model)
    }

    /// Prepares quotes of several removals from `request`, each like [`Self::quote_removal`], which
    /// together cost little more than one.
    pub fn removal_quotes<'a>(
        &self,
        idle: Duration,
        request: &'a [CachePiece],
        model: &'a ModelSpec,
    ) -> RemovalQuotes<'a> {
        let mut cache = self.clone();
        cache.cache.remember_prefixes(&self.scale_pieces(request));
        RemovalQuotes {
            otherwise: cache.predict_usage(idle, request),
            cache,
            idle,
            request,
            model,
        }
    }

    /// Quotes the replacement of the request `before` by the request `after`, either of which would
    /// be sent after a pause of `idle` since the newest request.
    pub fn quote_replacement(
        &self,
        idle: Duration,
        before: &[CachePiece],
        after: &[CachePiece],
        model: &ModelSpec,
    ) -> Quote {
        Quote::from_usages(
            self.predict_usage(idle, before),
            self.predict_usage(idle, after),
            model,
        )
    }

    /// Quotes the extra cost that a pause of `idle` causes when the newest request is sent again.
    /// Returns `None` if the cache should still contain that request.
    pub fn quote_pause(&self, idle: Duration, model: &ModelSpec) -> Option<Quote> {
        let quote = Quote::from_usages(
            self.predict_usage(Duration::ZERO, &self.last),
            self.predict_usage(idle, &self.last),
            model,
        );
        (quote.tokens > 0).then_some(quote)
    }

    /// Quotes the cost of sending the newest request to another model, whose cache is empty.
    pub fn quote_model_switch(&self, to: &ModelSpec) -> Quote {
        let mut request = self.last.clone();
        if let Some(passing) = self.passing {
            request[passing].boundary = false;
        }
        let usage = Self::new(to).predict_usage(Duration::ZERO, &request);
        let read = Usage {
            cached_input: usage.all_input(),
            ..Usage::default()
        };
        Quote::from_usages(read, usage, to)
    }

    fn scale_pieces(&self, request: &[CachePiece]) -> Vec<CachePiece> {
        request
            .iter()
            .map(|piece| CachePiece {
                tokens: self.scale.to_model_tokens(piece.tokens),
                ..*piece
            })
            .collect()
    }
}

/// Quotes of removals from one request.
pub struct RemovalQuotes<'a> {
    cache: PrefixCache,
    idle: Duration,
    request: &'a [CachePiece],
    /// The input of the next request without a removal.
    otherwise: Usage,
    model: &'a ModelSpec,
}

impl RemovalQuotes<'_> {
    /// Quotes the removal of the messages with the indices `gone`.
    pub fn quote(&self, gone: Range<usize>) -> Quote {
        let left = remove_messages(self.request, gone);
        let usage = self.cache.predict_usage(self.idle, &left);
        Quote::from_usages(self.otherwise, usage, self.model)
    }
}

impl Quote {
    /// Creates a quote from the input of the next request with the action (`usage`) and without it
    /// (`otherwise`).
    pub fn from_usages(otherwise: Usage, usage: Usage, model: &ModelSpec) -> Self {
        let anew = |usage: Usage| Usage {
            cached_input: 0,
            ..usage
        };
        let price = model
            .price
            .map(|price| price.prices_for_input(usage.all_input()));
        let cost_of = |usage: Usage| price.map(|price| price.request_cost(usage).total);
        let more =
            |one: Option<f64>, other: Option<f64>| one.zip(other).map(|(one, other)| one - other);
        Self {
            usage,
            otherwise,
            tokens: anew(usage)
                .all_input()
                .saturating_sub(anew(otherwise).all_input()),
            cost: more(cost_of(anew(usage)), cost_of(anew(otherwise))).map(|cost| cost.max(0.0)),
            extra: more(
                model.price.map(|price| price.request_cost(usage).total),
                cost_of(otherwise),
            ),
        }
    }

    /// Returns the number of tokens by which the action shortens every later request.
    pub fn saved_tokens(&self) -> u64 {
        self.otherwise
            .all_input()
            .saturating_sub(self.usage.all_input())
    }

    /// Returns the cost of the saved tokens in each later request, in USD. If the model has a
    /// cache, the tokens are priced as read from the cache. Returns `None` if the model has no
    /// prices.
    pub fn saved_cost(&self, model: &ModelSpec) -> Option<f64> {
        let saved = match model.cache.rule.cache_match() {
            CacheMatch::NoCache => Usage {
                input: self.saved_tokens(),
                ..Usage::default()
            },
            CacheMatch::Prefix | CacheMatch::Boundaries => Usage {
                cached_input: self.saved_tokens(),
                ..Usage::default()
            },
        };
        model.price.map(|price| {
            price
                .prices_for_input(self.otherwise.all_input())
                .request_cost(saved)
                .total
        })
    }
}

/// Formats the quote like `≈12,345 tokens, $0.0463`.
impl fmt::Display for Quote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "≈{} tokens", format_thousands(self.tokens))?;
        match self.cost {
            Some(cost) if cost < 1.0 => write!(f, ", ${cost:.4}"),
            Some(cost) => write!(f, ", ${cost:.2}"),
            None => Ok(()),
        }
    }
}

/// Returns the request without the messages at the indices `gone`. Because the first piece of a
/// request is the tools, message 0 is piece 1.
fn remove_messages(request: &[CachePiece], gone: Range<usize>) -> Vec<CachePiece> {
    let gone = gone.start.saturating_add(1)..gone.end.saturating_add(1).min(request.len());
    let left = request
        .iter()
        .enumerate()
        .filter(|(index, _)| !gone.contains(index));
    let mut left: Vec<_> = left.map(|(_, piece)| *piece).collect();
    // A mark keeps its position: on the last message before a part that moves, or on the very last
    // message.
    let marked = request
        .get(gone.clone())
        .is_some_and(|gone| gone.iter().any(|piece| piece.boundary));
    if let Some(before) = left
        .get_mut(gone.start.saturating_sub(1))
        .filter(|_| marked)
    {
        before.boundary = true;
    }
    left
}

/// Returns a hash that is derived from `hash` and differs from it.
fn derive_changed_hash(hash: ContentHash) -> ContentHash {
    ContentHash::from_content(format!("changed {hash}").as_bytes())
}

#[cfg(test)]
mod tests;
