//! Token prices and costs.

use std::ops::AddAssign;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::CacheKind;
use crate::usage::Usage;

/// The prices per million tokens, in USD unless the model catalogue specifies another currency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of input that is neither read from nor written to the cache.
    pub input: f64,
    /// The price of input read from the cache; the input price if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// The price of input written to the cache; the input price if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// The price of output.
    pub output: f64,
    /// The prices of a request with a long input; absent if prices don't depend on the length of
    /// the input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<LongPrice>,
}

/// The prices per million tokens of requests with a long input.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LongPrice {
    /// The number of input tokens, including cached tokens, above which the long-input prices
    /// apply.
    pub above: u64,
    /// The price of input that is neither read from nor written to the cache.
    pub input: f64,
    /// The price of input read from the cache; the input price if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// The price of input written to the cache; the input price if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// The price of output.
    pub output: f64,
}

/// Amounts of money in USD, by class of token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// The cost of input that was neither read from nor written to the cache.
    pub input: f64,
    /// The cost of input read from the cache.
    pub cached_input: f64,
    /// The cost of input written to the cache.
    pub cache_write: f64,
    /// The cost of output.
    pub output: f64,
    /// The sum of all classes.
    pub total: f64,
    /// True if the amounts do not include some requests, whose price is unknown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// The cost of several requests, some of which may have no known price.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CostSum {
    known: Option<Cost>,
    missing: bool,
}

impl CostSum {
    /// Creates a sum of zero. Its total is zero, not unknown, even if no request is added.
    pub fn zero() -> Self {
        Self {
            known: Some(Cost::default()),
            missing: false,
        }
    }

    /// Adds the cost of a request. `None` means that the cost is unknown, not that it is zero, and
    /// makes the total incomplete.
    pub fn add(&mut self, cost: Option<Cost>) {
        match cost {
            Some(cost) => *self.known.get_or_insert_default() += cost,
            None => self.missing = true,
        }
    }

    /// Returns the sum of the known costs; `None` if no request had a price.
    pub fn total(self) -> Option<Cost> {
        let Self { known, missing } = self;
        // A zero sum is not a known cost once a request had no price.
        let known = known.filter(|cost| !missing || *cost != Cost::default());
        known.map(|cost| Cost {
            incomplete: cost.incomplete || missing,
            ..cost
        })
    }
}

impl Price {
    /// Returns the typical prices of a cache of this kind as multiples of the input price, for
    /// comparisons of requests to a model whose prices are unknown. The output price is 0.
    pub fn relative_to_input(cache: CacheKind) -> Self {
        let (read, write) = match cache {
            CacheKind::Anthropic | CacheKind::OpenaiBreakpoints => (0.1, 1.25),
            CacheKind::Automatic
            | CacheKind::Openai
            | CacheKind::Gemini
            | CacheKind::Vllm
            | CacheKind::LlamaCpp => (0.1, 1.0),
            CacheKind::Deepseek => (0.02, 1.0),
            CacheKind::None => (1.0, 1.0),
        };
        Self {
            input: 1.0,
            cached_input: Some(read),
            cache_write: Some(write),
            output: 0.0,
            long: None,
        }
    }

    /// Returns the prices of a request with `tokens` input tokens, including cached tokens.
    #[must_use]
    pub fn prices_for_input(self, tokens: u64) -> Self {
        match self.long.filter(|long| tokens > long.above) {
            Some(LongPrice {
                above: _,
                input,
                cached_input,
                cache_write,
                output,
            }) => Self {
                input,
                cached_input,
                cache_write,
                output,
                long: None,
            },
            None => Self { long: None, ..self },
        }
    }

    /// Converts the prices to USD. `rate` is the amount of the original currency that equals one
    /// dollar.
    #[must_use]
    pub fn in_usd(mut self, rate: f64) -> Self {
        let own = [
            Some(&mut self.input),
            self.cached_input.as_mut(),
            self.cache_write.as_mut(),
            Some(&mut self.output),
        ];
        let long = self.long.as_mut().map(|long| {
            [
                Some(&mut long.input),
                long.cached_input.as_mut(),
                long.cache_write.as_mut(),
                Some(&mut long.output),
            ]
        });
        own.into_iter()
            .chain(long.into_iter().flatten())
            .flatten()
            .for_each(|price| *price /= rate);
        self
    }

    /// Returns the cost of one request.
    pub fn request_cost(&self, usage: Usage) -> Cost {
        let price = self.prices_for_input(usage.all_input());
        let at = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        let input = at(usage.input, price.input);
        let cached_input = at(
            usage.cached_input,
            price.cached_input.unwrap_or(price.input),
        );
        let cache_write = at(usage.cache_write, price.cache_write.unwrap_or(price.input));
        let output = at(usage.output, price.output);
        let total = input + cached_input + cache_write + output;
        Cost {
            input,
            cached_input,
            cache_write,
            output,
            total,
            incomplete: false,
        }
    }

    /// Returns two upper bounds in USD: on the cost of `input` tokens, whatever the cache does with
    /// them, and on the cost of a single output token.
    pub fn max_cost(&self, input: u64) -> (f64, f64) {
        let bounds_at = |at: Self| {
            let each = [at.cached_input, at.cache_write]
                .into_iter()
                .flatten()
                .fold(at.input, f64::max);
            (input as f64 * each / 1e6, at.output / 1e6)
        };
        // If the real input turns out shorter, the other prices apply.
        let long = bounds_at(self.prices_for_input(input));
        let short = bounds_at(self.prices_for_input(0));
        (long.0.max(short.0), long.1.max(short.1))
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cached_input += other.cached_input;
        self.cache_write += other.cache_write;
        self.output += other.output;
        self.total += other.total;
        self.incomplete |= other.incomplete;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cost_prices_each_class_of_tokens() {
        let price = Price {
            input: 3.0,
            cached_input: Some(0.3),
            cache_write: Some(3.75),
            output: 15.0,
            long: None,
        };
        let usage = Usage {
            input: 1_000_000,
            cached_input: 2_000_000,
            cache_write: 400_000,
            output: 100_000,
            reasoning: 50_000,
        };
        let cost = price.request_cost(usage);
        assert!(
            (cost.total - (3.0 + 0.6 + 1.5 + 1.5)).abs() < 1e-9,
            "{cost:?}"
        );
        assert_eq!(usage.all_input(), 3_400_000);
    }

    #[test]
    fn relative_cost_counts_full_price_input_tokens() {
        let usage = Usage {
            input: 100,
            cached_input: 1_000,
            cache_write: 400,
            output: 7,
            reasoning: 0,
        };
        for (cache, units) in [
            (CacheKind::Anthropic, 700.0),
            (CacheKind::OpenaiBreakpoints, 700.0),
            (CacheKind::Openai, 600.0),
            (CacheKind::Deepseek, 520.0),
            (CacheKind::None, 1_500.0),
        ] {
            let cost = Price::relative_to_input(cache).request_cost(usage).total;
            assert!((cost * 1e6 - units).abs() < 1e-6, "{cache:?}: {cost}");
        }
    }

    #[test]
    fn cost_uses_the_input_price_for_absent_cache_prices() {
        let price = Price {
            input: 2.0,
            cached_input: None,
            cache_write: None,
            output: 8.0,
            long: None,
        };
        let usage = Usage {
            cached_input: 500_000,
            cache_write: 500_000,
            ..Usage::default()
        };
        assert!((price.request_cost(usage).total - 2.0).abs() < 1e-9);
    }

    #[test]
    fn cost_sum_adds_known_costs_and_marks_missing_ones() {
        let one = |total| {
            Some(Cost {
                total,
                ..Cost::default()
            })
        };
        let sum = |start: CostSum, costs: &[Option<Cost>]| {
            let mut sum = start;
            for cost in costs {
                sum.add(*cost);
            }
            sum.total().map(|cost| (cost.total, cost.incomplete))
        };
        assert_eq!(sum(CostSum::zero(), &[]), Some((0.0, false)));
        assert_eq!(sum(CostSum::default(), &[]), None);
        assert_eq!(
            sum(CostSum::zero(), &[one(1.0), one(2.0)]),
            Some((3.0, false))
        );
        assert_eq!(sum(CostSum::zero(), &[one(1.0), None]), Some((1.0, true)));
        assert_eq!(
            sum(CostSum::default(), &[None, one(1.0)]),
            Some((1.0, true)),
            "in either order"
        );
        assert_eq!(sum(CostSum::zero(), &[None]), None, "nothing is known");
        let nested = Some(Cost {
            total: 1.0,
            incomplete: true,
            ..Cost::default()
        });
        assert_eq!(sum(CostSum::zero(), &[nested, one(1.0)]), Some((2.0, true)));
    }

    #[test]
    fn dearest_price_is_never_less_than_the_cost() {
        let long = LongPrice {
            above: 1_000,
            input: 0.5,
            cached_input: Some(9.0),
            cache_write: None,
            output: 1.0,
        };
        let price = Price {
            input: 2.0,
            cached_input: None,
            cache_write: Some(3.0),
            output: 8.0,
            long: Some(long),
        };
        let (input, output) = price.max_cost(2_000);
        let most = input + 500.0 * output;
        for input in [0, 600, 1_000, 1_001, 2_000] {
            for (cached_input, cache_write) in
                [(0, 0), (input / 2, input / 2), (input, 0), (0, input)]
            {
                let fresh = input - cached_input - cache_write;
                let usage = Usage {
                    input: fresh,
                    cached_input,
                    cache_write,
                    output: 500,
                    ..Usage::default()
                };
                assert!(price.request_cost(usage).total <= most, "{usage:?}");
            }
        }
    }

    #[test]
    fn cost_of_a_long_request_uses_the_long_prices() {
        let long = LongPrice {
            above: 100_000,
            input: 4.0,
            cached_input: None,
            cache_write: None,
            output: 12.0,
        };
        let price = Price {
            input: 2.0,
            cached_input: None,
            cache_write: None,
            output: 8.0,
            long: Some(long),
        };
        let cost = |cached_input| {
            price.request_cost(Usage {
                input: 50_000,
                cached_input,
                output: 1_000,
                ..Usage::default()
            })
        };
        assert!(
            (cost(50_000).total - (0.2 + 0.008)).abs() < 1e-9,
            "at the limit it is not above it"
        );
        assert!((cost(150_000).total - (0.8 + 0.012)).abs() < 1e-9);
    }
}
