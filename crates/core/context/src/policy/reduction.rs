//! Chooses how much is cleared and compressed, depending on the model's cache.
//!
//! Compression waits for a moment when the prefix is sent anew anyway. A cache that outlives the
//! user's pauses offers no such moment, so clearing much and early is cheaper there; elsewhere
//! clearing can wait until the request is large. The values are based on the measurements in
//! `docs/context-lab.md`.

use std::time::Duration;

use haft_types::ModelSpec;

use super::{Compress, Policy};
use crate::reduce::safe_zone::SafeZone;

/// A cache that lives at least this long outlives nearly all pauses between two inputs.
const OUTLIVES_PAUSES: Duration = Duration::from_mins(30);

/// The treatment of old results: four settings that only make sense together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reduction {
    /// Tokens above which a request is pruned.
    pub safe_zone: SafeZone,
    /// Share of the safe zone that pruning stops at.
    pub prune_to: f64,
    /// Newest cleanable messages that pruning leaves alone.
    pub prune_keep: u32,
    /// The time at which tool results are compressed.
    pub compress: Compress,
}

impl Default for Reduction {
    fn default() -> Self {
        Self {
            safe_zone: SafeZone::default(),
            prune_to: 0.5,
            prune_keep: 6,
            compress: Compress::default(),
        }
    }
}

/// The reason for the values of those [`Reduction`] settings that the user did not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReductionReason {
    /// One of the four is set, so the others keep their plain defaults.
    OneIsSet,
    /// The model has prices, and its cache lives for 30 minutes or longer.
    LongCache,
    /// The model has prices, and its cache lives for less than 30 minutes.
    ShortCache,
    /// The prices of the model are unknown.
    NoPrice,
    /// The plain safe zone is already smaller than the one chosen for prices and cache.
    SmallWindow,
}

impl Reduction {
    /// Chooses the cheapest settings that keep everything needed, if the model has prices and its
    /// window is large enough to choose.
    fn for_model(model: &ModelSpec, usable: u32) -> (Self, ReductionReason) {
        let usual = Self::default();
        let tokens = |thousands: u64| SafeZone::Tokens(thousands * 1_024);
        let (chosen, reason) = if model
            .cache
            .life()
            .is_some_and(|life| life >= OUTLIVES_PAUSES)
        {
            let chosen = Self {
                safe_zone: tokens(48),
                prune_to: 0.1,
                prune_keep: 3,
                compress: Compress::Never,
            };
            (chosen, ReductionReason::LongCache)
        } else {
            (
                Self {
                    safe_zone: tokens(128),
                    prune_to: 0.3,
                    ..usual
                },
                ReductionReason::ShortCache,
            )
        };
        let size = |reduction: Self| reduction.safe_zone.tokens(model.context_window, usable);
        match (model.price, size(chosen), size(usual)) {
            (Some(_), Ok(chosen_size), Ok(usual_size)) if chosen_size < usual_size => {
                (chosen, reason)
            }
            (Some(_), ..) => (usual, ReductionReason::SmallWindow),
            (None, ..) => (usual, ReductionReason::NoPrice),
        }
    }
}

impl Policy {
    /// Returns the treatment of old results in requests to this model. If the user sets one of the
    /// four settings, the others keep their plain defaults.
    pub fn reduction(&self, model: &ModelSpec) -> Reduction {
        self.reduction_and_reason(model).0
    }

    /// Like [`Self::reduction`], with the reason for the values that are not set.
    pub fn reduction_and_reason(&self, model: &ModelSpec) -> (Reduction, ReductionReason) {
        let Self {
            safe_zone,
            prune_to,
            prune_keep,
            compress,
            ..
        } = *self;
        let is_set =
            safe_zone.is_some() || prune_to.is_some() || prune_keep.is_some() || compress.is_some();
        let (unset, reason) = if is_set {
            (Reduction::default(), ReductionReason::OneIsSet)
        } else {
            Reduction::for_model(model, self.usable_window(model))
        };
        let reduction = Reduction {
            safe_zone: safe_zone.unwrap_or(unset.safe_zone),
            prune_to: prune_to.unwrap_or(unset.prune_to),
            prune_keep: prune_keep.unwrap_or(unset.prune_keep),
            compress: compress.unwrap_or(unset.compress),
        };
        (reduction, reason)
    }

    /// Returns a copy with all settings filled in that depend on the model.
    #[must_use]
    pub fn for_model(&self, model: &ModelSpec) -> Self {
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

#[cfg(test)]
mod tests {
    use haft_types::{CacheRule, Price};

    use super::*;
    use crate::testing::model;

    fn with(ttl: &str, window: u32, price: Option<Price>) -> ModelSpec {
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
    fn the_cache_decides_unless_the_user_does() {
        let price = Some(Price {
            input: 1.0,
            cached_input: Some(0.1),
            cache_write: None,
            output: 5.0,
            long: None,
        });
        let chosen = |policy: &Policy, model: &ModelSpec| {
            let Reduction {
                safe_zone,
                prune_to,
                prune_keep,
                compress,
            } = policy.reduction(model);
            (safe_zone.to_string(), prune_to, prune_keep, compress)
        };
        let usual = ("0.8".to_owned(), 0.5, 6, Compress::WhenFree);
        let unset = Policy::default();
        assert_eq!(
            chosen(&unset, &with("5m", 200_000, price)),
            ("131072".into(), 0.3, 6, Compress::WhenFree)
        );
        assert_eq!(
            chosen(&unset, &with("30m", 200_000, price)),
            ("49152".into(), 0.1, 3, Compress::Never)
        );
        assert_eq!(
            chosen(&unset, &with("1h", 1_000_000, price)),
            ("49152".into(), 0.1, 3, Compress::Never)
        );
        assert_eq!(
            chosen(&unset, &with("5m", 200_000, None)),
            usual,
            "nothing is known of what it costs"
        );
        assert_eq!(
            chosen(&unset, &with("5m", 160_000, price)),
            usual,
            "0.8 of this window comes first"
        );
        assert_eq!(
            chosen(&unset, &with("1h", 32_000, price)),
            usual,
            "and of this one"
        );
        let set = [
            Policy {
                safe_zone: Some(SafeZone::default()),
                ..Policy::default()
            },
            Policy {
                prune_to: Some(0.5),
                ..Policy::default()
            },
            Policy {
                prune_keep: Some(6),
                ..Policy::default()
            },
            Policy {
                compress: Some(Compress::WhenFree),
                ..Policy::default()
            },
        ];
        for policy in set {
            assert_eq!(
                chosen(&policy, &with("1h", 200_000, price)),
                usual,
                "one is set: {policy:?}"
            );
        }
    }

    #[test]
    fn what_depends_on_the_model_is_part_of_the_hash() {
        let price = Some(Price {
            input: 1.0,
            cached_input: Some(0.1),
            cache_write: None,
            output: 5.0,
            long: None,
        });
        let hash = |ttl: &str| {
            Policy::default()
                .for_model(&with(ttl, 200_000, price))
                .hash()
        };
        assert!(hash("5m") == hash("10m") && hash("5m") != hash("1h"));
    }
}
