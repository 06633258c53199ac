//! Finds the requests that were sent after the entry of the provider's cache had expired.

use std::time::Duration;

use haft_agent::sent_from_outline;
use haft_context::{EarlierRequest, IdleCost, LoggedInput, compare_logged_requests};
use haft_store::RequestOutline;
use haft_types::ModelSpec;

/// A request that wrote an expired prefix again.
#[derive(Clone, Debug, PartialEq)]
pub struct ColdRebuild {
    /// The number of the request.
    pub request: u64,
    /// The time since the cache was last used.
    pub idle: Duration,
    /// The number of tokens that the cache would have provided.
    pub tokens: u64,
    /// The cost beyond the cost of reading these tokens, in USD; `None` if the model has no prices.
    pub cost: Option<f64>,
}

/// Finds every request of a log that came after the lifetime of its cache entry. `models` are the
/// models of the requests.
pub fn find_cold_rebuilds(outlines: &[RequestOutline], models: &[ModelSpec]) -> Vec<ColdRebuild> {
    let pairs = outlines.windows(2).zip(models.iter().skip(1));
    let cold = |(pair, model): (&[RequestOutline], &ModelSpec)| {
        let [last, now] = pair else { return None };
        let between = now.summary.sent_at.duration_since(last.summary.sent_at);
        let idle = Duration::try_from(between).ok()?;
        let lifetime = model.cache_lifetime()?;
        if idle <= lifetime || last.summary.model != now.summary.model {
            return None;
        }
        let (before, _) = sent_from_outline(last);
        let (sent, tools) = sent_from_outline(now);
        let now_sent = LoggedInput {
            sent: &sent,
            model,
            tool_tokens: tools,
            billed: None,
        };
        let earlier = EarlierRequest {
            sent: &before,
            idle: Some(idle),
        };
        let kept = compare_logged_requests(now_sent, earlier, || None).kept;
        let segments = sent.segments[..kept].iter();
        let counted: u64 = segments.map(|segment| u64::from(segment.tokens)).sum();
        let counted = counted + u64::from(tools);
        let tokens = (counted as f64 * model.tokenizer_factor) as u64;
        let is_cached = kept > 0 && tokens >= u64::from(model.cache.min);
        is_cached.then(|| ColdRebuild {
            request: now.summary.number,
            idle,
            tokens,
            cost: model
                .price
                .map(|price| IdleCost::from_price(price, tokens, 0).rebuild),
        })
    };
    pairs.filter_map(cold).collect()
}
