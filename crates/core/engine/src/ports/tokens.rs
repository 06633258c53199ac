//! Counts tokens for the session's current model.

use std::sync::Arc;

use haft_tool::TokenCount;
use haft_types::{ModelSpec, TokenCounter};

/// The session's token counter, corrected by the model's tokenizer factor.
pub(crate) struct ModelTokens {
    counter: Arc<dyn TokenCounter>,
    factor: f64,
    window: u32,
}

impl ModelTokens {
    pub(crate) fn new(counter: Arc<dyn TokenCounter>, model: &ModelSpec) -> Self {
        Self {
            counter,
            factor: model.tokenizer_factor,
            window: model.context_window,
        }
    }
}

impl TokenCount for ModelTokens {
    fn count(&self, text: &str) -> u64 {
        (f64::from(self.counter.text(text)) * self.factor).round() as u64
    }

    fn window(&self) -> u64 {
        u64::from(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words;

    impl TokenCounter for Words {
        fn text(&self, text: &str) -> u32 {
            text.split_whitespace().count() as u32
        }
    }

    #[test]
    fn the_factor_of_the_model_counts() {
        let tokens = ModelTokens {
            counter: Arc::new(Words),
            factor: 1.26,
            window: 8_000,
        };
        assert_eq!((tokens.count("a b c d e"), tokens.window()), (6, 8_000));
    }
}
