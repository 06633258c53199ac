//! What the input of a request should cost if the cache is warm: read, written and fresh tokens apart (SPEC 8.3).

use haft_types::{CacheKind, ModelSpec, Request, Usage};

use crate::prefix::Sent;

/// The input tokens by class, if the provider's cache holds what the request before left there.
///
/// `last` is the request before and how many of its segments this one repeats.
pub(crate) fn expected(request: &Request, model: &ModelSpec, last: Option<(&Sent, usize)>) -> Usage {
    let total = request.tokens();
    let min = u64::from(model.cache.min);
    // The tokens of the first `count` segments, with the tools before them.
    let prefix = |count: usize| match count {
        0 => 0,
        count => u64::from(request.tools.tokens) + segment_tokens(&request.segments[..count]),
    };
    let kept = last.map_or(0, |(_, kept)| kept);
    let (cached, stored) = match model.cache.rule {
        CacheKind::None => (0, 0),
        CacheKind::Automatic => (prefix(kept), 0),
        CacheKind::Anthropic | CacheKind::OpenaiBreakpoints => {
            let found = last.and_then(|(sent, kept)| sent.segments[..kept].iter().rposition(|one| one.boundary));
            let marked = request.segments.iter().rposition(|segment| segment.boundary);
            (prefix(found.map_or(0, |index| index + 1)), prefix(marked.map_or(0, |index| index + 1)))
        }
    };
    let cached = if cached < min { 0 } else { cached };
    let cache_write = if stored < min { 0 } else { stored.saturating_sub(cached) };
    Usage { input: total - cached - cache_write, cached_input: cached, cache_write, ..Usage::default() }
}

fn segment_tokens(segments: &[haft_types::Segment]) -> u64 {
    segments.iter().map(|segment| u64::from(segment.entry.tokens)).sum()
}

#[cfg(test)]
mod tests;
