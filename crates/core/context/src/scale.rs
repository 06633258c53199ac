//! Converts counted tokens to the model's own tokens and back.
//!
//! Every message is counted once, with one tokenizer for all models. Limits are therefore converted
//! to counted tokens before anything is compared with them, and totals are converted to the model's
//! tokens before they are reported.

use haft_types::ModelSpec;

/// The ratio of the model's own token count to haft's count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale(f64);

impl Scale {
    /// Returns the scale for the model's tokenizer factor. The factor is 1 if the model's value is
    /// not a positive number.
    pub(crate) fn for_model(model: &ModelSpec) -> Self {
        Self::new(model.tokenizer_factor)
    }

    /// Creates a scale with this factor, or with 1 if `factor` is not a positive number.
    pub(crate) fn new(factor: f64) -> Self {
        Self(if factor.is_finite() && factor > 0.0 {
            factor
        } else {
            1.0
        })
    }

    /// Converts a number of tokens in haft's count to the model's own tokens.
    pub(crate) fn to_model_tokens(self, counted: u64) -> u64 {
        (counted as f64 * self.0).round() as u64
    }

    /// Returns the maximum number of tokens, in haft's count, that take at most `tokens` of the
    /// model's own tokens.
    pub(crate) fn to_counted_tokens(self, tokens: u64) -> u64 {
        // Totals are rounded when they are reported; a total that is allowed here must not be
        // reported as too large.
        let mut counted = (tokens as f64 / self.0) as u64;
        while self.to_model_tokens(counted) > tokens {
            counted -= 1;
        }
        counted
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn scale_with_factor(factor: f64) -> Scale {
        Scale::for_model(&ModelSpec {
            tokenizer_factor: factor,
            ..crate::testing::model()
        })
    }

    #[test]
    fn scale_treats_invalid_factors_as_one() {
        for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(scale_with_factor(factor), scale_with_factor(1.0));
        }
    }

    proptest! {
        #[test]
        fn scale_down_and_up_never_exceed_the_tokens(factor in 0.3_f64..4.0, tokens in 0_u64..3_000_000) {
            let scale = scale_with_factor(factor);
            let counted = scale.to_counted_tokens(tokens);
            prop_assert!(scale.to_model_tokens(counted) <= tokens);
            prop_assert!(scale.to_model_tokens(counted + 2) >= tokens, "nothing is given away");
        }
    }
}
