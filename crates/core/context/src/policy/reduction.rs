//! Chooses how much is cleared and compressed, depending on the model's cache.
//!
//! Compression waits for a moment when the prefix is sent anew anyway. A cache that outlives the
//! user's pauses offers few such moments, so nothing is compressed there, and clearing more and
//! earlier is cheaper; elsewhere clearing can wait until the request is large. The values are based
//! on the measurements in `docs/context-lab.md`, which count tokens as haft does: for a model that
//! makes more of them, the zones are larger by its tokenizer factor.

use std::time::Duration;

use haft_types::{ContentHash, ModelSpec};

use super::{Compress, Policy};
use crate::reduce::safe_zone::{MIN_TOKENS, SafeZone, SafeZoneError};
use crate::scale::Scale;

/// The minimum lifetime of a cache that outlives nearly all pauses between two inputs.
const LONG_CACHE_LIFETIME: Duration = Duration::from_mins(30);
/// The minimum window, in tokens, of a model that is assumed to be hosted even if its prices are
/// unknown.
const HOSTED_WINDOW: u32 = 200_000;
/// The upper limit of the default safe zone, as a fraction of the input size at which a model's
/// long-input prices begin.
const BELOW_LONG_PRICE: f64 = 0.9;

/// The share at which clearing stops in a zone that the window keeps small. A lower share leaves
/// too little text in view: more edits would be blind.
const SMALL_WINDOW_SHARE: f64 = 0.7;

/// The treatment of old results: four settings that only make sense together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// The safe zone: requests with more tokens are pruned.
    pub safe_zone: SafeZone,
    /// The share of the safe zone to which pruning reduces a request.
    pub prune_to: f64,
    /// The number of newest results that pruning never clears.
    pub prune_keep: u32,
    /// The time at which tool results are compressed.
    pub compress: Compress,
}

impl Default for Reduction {
    fn default() -> Self {
        Self {
            safe_zone: SafeZone::default(),
            prune_to: 0.3,
            prune_keep: 6,
            compress: Compress::default(),
        }
    }
}

/// The reason for haft's choice of those [`Reduction`] settings that the user did not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionReason {
    /// The model has prices, and its cache lives for 30 minutes or longer.
    LongCache,
    /// The model has prices, and its cache lives for less than 30 minutes.
    ShortCache,
    /// The prices of the model are unknown, and its window is small.
    NoPrice,
    /// The prices of the model are unknown, and its window is that of a hosted model.
    LargeWindow,
    /// The prices of the model rise above a certain input size, which limits the safe zone.
    LongPrice,
    /// The default safe zone is already smaller than the one chosen for the model's prices and
    /// cache.
    SmallWindow,
}

impl Reduction {
    /// Chooses the cheapest settings that still keep everything needed in view. Returns the default
    /// settings if the model's window is too small for a choice.
    fn for_model(model: &ModelSpec, usable: u32) -> (Self, ReductionReason) {
        let usual = Self::default();
        let outlives_pauses = model
            .cache
            .entry_lifetime()
            .is_some_and(|life| life >= LONG_CACHE_LIFETIME);
        let (thousands, prune_to, compress, reason) = match model.price {
            Some(_) if outlives_pauses => (100, 0.1, Compress::Never, ReductionReason::LongCache),
            Some(_) => (128, 0.3, Compress::WhenFree, ReductionReason::ShortCache),
            None if model.context_window >= HOSTED_WINDOW => {
                (128, 0.3, Compress::WhenFree, ReductionReason::LargeWindow)
            }
            None => return (usual, ReductionReason::NoPrice),
        };
        let tokens = Scale::for_model(model).to_model_tokens(thousands * 1_024);
        let usual_tokens = usual.safe_zone.to_tokens(model.context_window, usable);
        let (chosen, reason, tokens) = match usual_tokens {
            Ok(usual_tokens) if tokens < usual_tokens => {
                let safe_zone = SafeZone::Tokens(tokens);
                let chosen = Self {
                    safe_zone,
                    prune_to,
                    compress,
                    ..usual
                };
                (chosen, reason, tokens)
            }
            Ok(usual_tokens) if model.price.is_some() => {
                let small = Self {
                    prune_to: SMALL_WINDOW_SHARE,
                    ..usual
                };
                (small, ReductionReason::SmallWindow, usual_tokens)
            }
            Ok(usual_tokens) => (usual, ReductionReason::SmallWindow, usual_tokens),
            Err(_) => return (usual, ReductionReason::SmallWindow),
        };
        let dearer_above = model.price.and_then(|price| price.long);
        let limit = dearer_above.map(|long| (BELOW_LONG_PRICE * long.above as f64) as u64);
        match limit.map(|limit| limit.max(MIN_TOKENS)) {
            Some(limit) if limit < tokens => {
                let safe_zone = SafeZone::Tokens(limit);
                let limited = Self {
                    safe_zone,
                    ..chosen
                };
                (limited, ReductionReason::LongPrice)
            }
            _ => (chosen, reason),
        }
    }
}

impl Policy {
    /// Returns the settings for old results in requests to this model. Each of the four settings
    /// depends on the model unless the user sets it.
    pub fn reduction(&self, model: &ModelSpec) -> Reduction {
        self.reduction_and_reason(model).0
    }

    /// Like [`Self::reduction`], but also returns the reason for the values that the user did not
    /// set.
    pub fn reduction_and_reason(&self, model: &ModelSpec) -> (Reduction, ReductionReason) {
        let Self {
            safe_zone,
            prune_to,
            prune_keep,
            compress,
            ..
        } = *self;
        let (unset, reason) = Reduction::for_model(model, self.usable_window(model));
        let reduction = Reduction {
            safe_zone: safe_zone.unwrap_or(unset.safe_zone),
            prune_to: prune_to.unwrap_or(unset.prune_to),
            prune_keep: prune_keep.unwrap_or(unset.prune_keep),
            compress: compress.unwrap_or(unset.compress),
        };
        (reduction, reason)
    }

    /// Returns the safe zone in haft's count of tokens, ignoring the model's tokenizer factor. The
    /// factor is corrected as replies arrive; decisions and hashes must not change with it.
    pub(crate) fn nominal_zone(&self, model: &ModelSpec) -> Result<u64, SafeZoneError> {
        self.safe_zone_tokens(&remove_tokenizer_factor(model))
    }

    /// Returns the hash of the settings for this model. The hash does not depend on the model's
    /// tokenizer factor.
    pub fn hash_for(&self, model: &ModelSpec) -> ContentHash {
        self.resolve_for_model(&remove_tokenizer_factor(model))
            .hash()
    }

    /// Returns a copy in which the settings that depend on the model are set to their values for
    /// `model`.
    #[must_use]
    pub fn resolve_for_model(&self, model: &ModelSpec) -> Self {
        let Reduction {
            safe_zone,
            prune_to,
            prune_keep,
            compress,
        } = self.reduction(model);
        Self {
            safe_zone: Some(safe_zone),
            prune_to: Some(prune_to),
            prune_keep: Some(prune_keep),
            compress: Some(compress),
            ..self.clone()
        }
    }
}

fn remove_tokenizer_factor(model: &ModelSpec) -> ModelSpec {
    ModelSpec {
        tokenizer_factor: 1.0,
        ..model.clone()
    }
}

#[cfg(test)]
mod tests {
    use haft_types::{CacheRule, Price};

    use super::*;
    use crate::testing::model;

    const PRICE: Option<Price> = Some(Price {
        input: 1.0,
        cached_input: Some(0.1),
        cache_write: None,
        output: 5.0,
        long: None,
    });

    fn model_with(ttl: &str, window: u32, price: Option<Price>) -> ModelSpec {
        let cache = CacheRule {
            ttl: ttl.into(),
            ..CacheRule::default()
        };
        ModelSpec {
            context_window: window,
            max_output_tokens: Some(8_192),
            price,
            cache,
            ..model()
        }
    }

    #[test]
    fn reduction_follows_the_cache_unless_configured() {
        let price = PRICE;
        let chosen = |policy: &Policy, model: &ModelSpec| {
            let Reduction {
                safe_zone,
                prune_to,
                prune_keep,
                compress,
            } = policy.reduction(model);
            (safe_zone.to_string(), prune_to, prune_keep, compress)
        };
        let usual = ("0.8".to_owned(), 0.3, 6, Compress::WhenFree);
        let short = ("131072".to_owned(), 0.3, 6, Compress::WhenFree);
        let long = ("102400".to_owned(), 0.1, 6, Compress::Never);
        let small = ("0.8".to_owned(), 0.7, 6, Compress::WhenFree);
        let unset = Policy::default();
        assert_eq!(chosen(&unset, &model_with("5m", 200_000, price)), short);
        assert_eq!(chosen(&unset, &model_with("30m", 200_000, price)), long);
        assert_eq!(chosen(&unset, &model_with("1h", 1_000_000, price)), long);
        assert_eq!(
            chosen(&unset, &model_with("1h", 200_000, None)),
            short,
            "a hosted model whose prices are unknown"
        );
        assert_eq!(
            chosen(&unset, &model_with("5m", 160_000, None)),
            usual,
            "nothing is known of what it costs"
        );
        assert_eq!(
            chosen(&unset, &model_with("5m", 160_000, price)),
            small,
            "0.8 of this window comes first"
        );
        assert_eq!(
            chosen(&unset, &model_with("1h", 32_000, price)),
            small,
            "and of this one"
        );
    }

    #[test]
    fn reduction_key_changes_no_other_default() {
        let model = model_with("1h", 400_000, PRICE);
        let default = Policy::default().reduction(&model);
        let zone = SafeZone::Share(0.5);
        let with_zone = Policy {
            safe_zone: Some(zone),
            ..Policy::default()
        };
        let expected = Reduction {
            safe_zone: zone,
            ..default
        };
        assert_eq!(with_zone.reduction(&model), expected);
        let with_share = Policy {
            prune_to: Some(0.7),
            ..Policy::default()
        };
        let expected = Reduction {
            prune_to: 0.7,
            ..default
        };
        assert_eq!(with_share.reduction(&model), expected);
        let keeps_three = Policy {
            prune_keep: Some(3),
            ..Policy::default()
        };
        let expected = Reduction {
            prune_keep: 3,
            ..default
        };
        assert_eq!(keeps_three.reduction(&model), expected);
        let compressed = Policy {
            compress: Some(Compress::RoundEnd),
            ..Policy::default()
        };
        let expected = Reduction {
            compress: Compress::RoundEnd,
            ..default
        };
        assert_eq!(compressed.reduction(&model), expected);
    }

    #[test]
    fn default_zones_follow_the_tokenizer_and_stay_below_a_rising_price() {
        let long = |above| {
            PRICE.map(|price| Price {
                long: Some(haft_types::LongPrice {
                    above,
                    input: 5.0,
                    cached_input: None,
                    cache_write: None,
                    output: 5.0,
                }),
                ..price
            })
        };
        let chosen = |policy: &Policy, factor: f64, price| {
            let model = ModelSpec {
                tokenizer_factor: factor,
                ..model_with("5m", 1_000_000, price)
            };
            let (reduction, reason) = policy.reduction_and_reason(&model);
            (reduction.safe_zone.to_string(), reason)
        };
        let unset = Policy::default();
        let scaled = ("196608".to_owned(), ReductionReason::ShortCache);
        assert_eq!(chosen(&unset, 1.5, PRICE), scaled);
        let limited = ("90000".to_owned(), ReductionReason::LongPrice);
        assert_eq!(chosen(&unset, 1.5, long(100_000)), limited);
        assert_eq!(chosen(&unset, 1.5, long(300_000)), scaled);
        let set = Policy {
            safe_zone: Some(SafeZone::Tokens(120_000)),
            ..Policy::default()
        };
        assert_eq!(chosen(&set, 1.5, long(100_000)).0, "120000", "as written");
        let plain = |factor| {
            let model = ModelSpec {
                tokenizer_factor: factor,
                ..model_with("5m", 1_000_000, PRICE)
            };
            (unset.nominal_zone(&model), unset.hash_for(&model))
        };
        assert_eq!(plain(1.0), plain(1.4), "replies correct the factor");
    }

    #[test]
    fn hash_for_depends_on_the_model() {
        let price = PRICE;
        let hash = |ttl: &str| Policy::default().hash_for(&model_with(ttl, 200_000, price));
        assert!(hash("5m") == hash("10m") && hash("5m") != hash("1h"));
    }
}
