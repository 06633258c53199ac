//! What a call shows while it runs.

/// Shows people what a call is doing; the model never reads it.
pub trait CallProgress: Send + Sync {
    /// Shows a short text. A caller says little and not often; what nobody can take in time is
    /// dropped.
    fn show(&self, text: String);
}
