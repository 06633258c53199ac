//! The permission check of calls whose arguments were changed after they were permitted.

use async_trait::async_trait;
use haft_types::Envelope;
use serde_json::Value;

use crate::{Tool, ToolContext};

/// Checks calls whose arguments a plugin has changed after they were permitted.
#[async_trait]
pub trait Guard: Send + Sync {
    /// Returns an error with the envelope for the model if the call may not run with its new
    /// arguments in the folders of its context.
    async fn permit(
        &self,
        tool: &dyn Tool,
        context: &ToolContext,
        arguments: &Value,
    ) -> Result<(), Envelope>;
}
