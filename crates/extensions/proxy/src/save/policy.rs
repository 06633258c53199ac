//! The numbers on which decisions are based.

use std::time::Duration;

use haft_types::{ModelSpec, Price};

/// The tokens from which a request is cleared unless the user sets a budget. Below this size, what
/// could be cleared costs too little to pay for sending the rest again.
const DEFAULT_BUDGET: u64 = 24 * 1_024;
/// The number of newest results that stay: the default of `prune_keep` in haft's own requests.
const KEPT_RESULTS: usize = 6;
/// The lifetime of an unused cache entry if the model's cache rule states none.
const DEFAULT_CACHE_LIFETIME: Duration = Duration::from_mins(5);

/// The rules of clearing.
#[derive(Clone, Debug, PartialEq)]
pub struct SavePolicy {
    /// The tokens below which nothing is cleared; `None` for the default.
    pub budget: Option<u64>,
    /// The number of newest results that are never cleared. The results of the newest step count as
    /// one.
    pub kept_results: usize,
    /// The maximum share by which a conversation may become dearer, should it end with the request
    /// that is cleared.
    pub max_loss: f64,
    /// The share of the cost of clearing that old results must have cost already before they are
    /// cleared.
    pub min_waste: f64,
    /// The maximum number of further requests after which a pass must have saved its cost.
    pub max_payback: f64,
    /// The minimum tokens that clearing a result must save.
    pub min_result_saving: u64,
}

impl Default for SavePolicy {
    fn default() -> Self {
        Self {
            budget: None,
            kept_results: KEPT_RESULTS,
            max_loss: 0.05,
            min_waste: 0.6,
            max_payback: 10.0,
            min_result_saving: 60,
        }
    }
}

impl SavePolicy {
    /// Returns the tokens from which a request is cleared.
    pub fn budget_tokens(&self) -> u64 {
        self.budget.unwrap_or(DEFAULT_BUDGET)
    }
}

/// The prices of a model's input, relative to input that is neither read from nor written to a cache.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SavePrices {
    /// The relative price of a token that is read from the cache.
    pub read: f64,
    /// The relative price of a token that is not read from the cache but can be read later.
    pub write: f64,
    /// The price of a million input tokens in USD, if known.
    pub input_usd: Option<f64>,
    /// The time after which an unused cache entry is lost.
    pub cache_lifetime: Duration,
}

impl Default for SavePrices {
    /// Returns the most common ratios, for models whose prices are unknown.
    fn default() -> Self {
        Self {
            read: 0.1,
            write: 1.25,
            input_usd: None,
            cache_lifetime: DEFAULT_CACHE_LIFETIME,
        }
    }
}

impl SavePrices {
    /// Returns the prices of a model, or the default ratios if the model has no price.
    pub fn for_model(model: &ModelSpec) -> Self {
        let cache_lifetime = model
            .cache
            .entry_lifetime()
            .unwrap_or(DEFAULT_CACHE_LIFETIME);
        let Some(Price {
            input,
            cached_input,
            cache_write,
            ..
        }) = model.price.filter(|price| price.input > 0.0)
        else {
            return Self {
                cache_lifetime,
                ..Self::default()
            };
        };
        Self {
            read: cached_input.unwrap_or(input) / input,
            write: cache_write.unwrap_or(input).max(input) / input,
            input_usd: Some(input),
            cache_lifetime,
        }
    }
}
