//! From counted tokens to the model's own.
//!
//! Every message is counted once, in tokens of one tokenizer, whatever model is asked. Limits are
//! therefore brought down to counted tokens before anything is compared with them, and totals are
//! brought up to the model's when they are told.

use haft_types::ModelSpec;

/// How many tokens of a model one counted token stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale(f64);

impl Scale {
    /// The model's factor. One that is no positive number is taken as 1.
    pub(crate) fn of(model: &ModelSpec) -> Self {
        Self::new(model.tokenizer_factor)
    }

    /// This factor; the same holds of one that makes no sense.
    pub(crate) fn new(factor: f64) -> Self {
        Self(if factor.is_finite() && factor > 0.0 {
            factor
        } else {
            1.0
        })
    }

    /// The model's tokens for a counted total.
    pub(crate) fn up(self, counted: u64) -> u64 {
        (counted as f64 * self.0).round() as u64
    }

    /// The most counted tokens that fit into so many of the model's.
    pub(crate) fn down(self, tokens: u64) -> u64 {
        // A total is rounded when it is told; what is let through here must not be told as too
        // much.
        let mut counted = (tokens as f64 / self.0) as u64;
        while self.up(counted) > tokens {
            counted -= 1;
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scale(factor: f64) -> Scale {
        Scale::of(&ModelSpec {
            tokenizer_factor: factor,
            ..crate::testing::model()
        })
    }

    #[test]
    fn nonsense_is_taken_as_one() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(scale(factor), scale(1.0));
        }
    }

    proptest! {
        #[test]
        fn what_fits_going_down_fits_going_up(factor in 0.3_f64..4.0, tokens in 0_u64..3_000_000) {
            let scale = scale(factor);
            let counted = scale.down(tokens);
            prop_assert!(scale.up(counted) <= tokens);
            prop_assert!(scale.up(counted + 2) >= tokens, "nothing is given away");
        }
    }
}
