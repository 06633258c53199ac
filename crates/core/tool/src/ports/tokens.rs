//! Token counts for tools.

/// Counts tokens for the model of a conversation.
pub trait TokenCount: Send + Sync {
    /// Estimates the tokens of a text.
    fn count(&self, text: &str) -> u64;

    /// Returns the size of the model's context window in tokens.
    fn window(&self) -> u64;
}
