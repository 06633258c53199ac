//! What tokens cost.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::usage::Usage;

/// Prices in USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// Fresh input.
    pub input: f64,
    /// Input read from the cache; the input price when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Input written to the cache; the input price when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Output.
    pub output: f64,
    /// What the whole request costs when its input is long; always the same when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// Prices of requests with a long input, in USD per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// Input tokens of a request, whatever the cache did with them, above which these prices apply.
    pub above: u64,
    /// Fresh input.
    pub input: f64,
    /// Input read from the cache; the input price when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Input written to the cache; the input price when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Output.
    pub output: f64,
}

/// Money in USD, by class of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// Fresh input.
    pub input: f64,
    /// Input read from the cache.
    pub cached_input: f64,
    /// Input written to the cache.
    pub cache_write: f64,
    /// Output.
    pub output: f64,
    /// All of it.
    pub total: f64,
}

impl Price {
    /// The prices of a request with this much input, whatever the cache did with it.
    #[must_use]
    pub fn for_input(self, tokens: u64) -> Self {
        match self.long.filter(|long| tokens > long.above) {
            Some(LongPrice { above: _, input, cached_input, cache_write, output }) => {
                Self { input, cached_input, cache_write, output, long: None }
            }
            None => Self { long: None, ..self },
        }
    }

    /// What the usage of one request costs.
    pub fn cost(&self, usage: Usage) -> Cost {
        self.for_input(usage.all_input()).of(usage)
    }

    fn of(self, usage: Usage) -> Cost {
        let at = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        let input = at(usage.input, self.input);
        let cached_input = at(usage.cached_input, self.cached_input.unwrap_or(self.input));
        let cache_write = at(usage.cache_write, self.cache_write.unwrap_or(self.input));
        let output = at(usage.output, self.output);
        Cost { input, cached_input, cache_write, output, total: input + cached_input + cache_write + output }
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cached_input += other.cached_input;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.total += other.total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_its_own_price() {
        let price = Price { input: 3.0, cached_input: Some(0.3), cache_write: Some(3.75), output: 15.0, long: None };
        let usage = Usage {
            input: 1_000_000,
            cached_input: 2_000_000,
            cache_write: 400_000,
            output: 100_000,
            reasoning: 50_000,
        };
        let cost = price.cost(usage);
        assert!((cost.total - (3.0 + 0.6 + 1.5 + 1.5)).abs() < 1e-9, "{cost:?}");
        assert_eq!(usage.all_input(), 3_400_000);
    }

    #[test]
    fn absent_cache_prices_are_the_input_price() {
        let price = Price { input: 2.0, cached_input: None, cache_write: None, output: 8.0, long: None };
        let usage = Usage { cached_input: 500_000, cache_write: 500_000, ..Usage::default() };
        assert!((price.cost(usage).total - 2.0).abs() < 1e-9);
    }

    #[test]
    fn a_long_request_has_its_own_prices() {
        let long = LongPrice { above: 100_000, input: 4.0, cached_input: None, cache_write: None, output: 12.0 };
        let price = Price { input: 2.0, cached_input: None, cache_write: None, output: 8.0, long: Some(long) };
        let cost = |cached_input| price.cost(Usage { input: 50_000, cached_input, output: 1_000, ..Usage::default() });
        assert!((cost(50_000).total - (0.2 + 0.008)).abs() < 1e-9, "at the limit it is not above it");
        assert!((cost(150_000).total - (0.8 + 0.012)).abs() < 1e-9);
    }
}
