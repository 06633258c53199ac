//! How many tokens a text has.

/// Counts tokens for the model of a conversation.
pub trait TokenCount: Send + Sync {
    /// The tokens of a text, as an estimate.
    fn count(&self, text: &str) -> u64;

    /// The tokens that fit into the model's context window.
    fn window(&self) -> u64;
}
