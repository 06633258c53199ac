//! Estimates token counts for the model of a conversation.

use std::sync::Arc;

use haft_types::TokenCounter;

/// Counts tokens for the model of a conversation: the session's counter, scaled by the factor of the
/// model's tokenizer.
pub struct ModelTokens {
    counter: Arc<dyn TokenCounter>,
    factor: f64,
    window: u32,
}

impl ModelTokens {
    /// Creates the counter of a model from the factor of its tokenizer and its context window.
    pub fn new(counter: Arc<dyn TokenCounter>, factor: f64, window: u32) -> Self {
        Self {
            counter,
            factor,
            window,
        }
    }

    /// Returns the estimated number of tokens that a text has for the model.
    pub fn count(&self, text: &str) -> u64 {
        (f64::from(self.counter.count_text(text)) * self.factor).round() as u64
    }

    /// Returns the size of the model's context window, in tokens.
    pub fn window(&self) -> u64 {
        u64::from(self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Words;

    impl TokenCounter for Words {
        fn count_text(&self, text: &str) -> u32 {
            text.split_whitespace().count() as u32
        }
    }

    #[test]
    fn the_factor_of_the_model_counts() {
        let tokens = ModelTokens::new(Arc::new(Words), 1.26, 8_000);
        assert_eq!((tokens.count("a b c d e"), tokens.window()), (6, 8_000));
    }
}
