//! Progress messages of a running call.

/// Shows the progress of a call to people; the model never sees it.
pub trait CallProgress: Send + Sync {
    /// Shows a short text. Call it rarely; messages that cannot be displayed in time are dropped.
    fn show(&self, text: String);
}
