//! Who decides again when the arguments of a permitted call were changed.

use async_trait::async_trait;
use haft_types::Envelope;
use serde_json::Value;

use crate::{Tool, ToolContext};

/// Decides on calls whose arguments a plugin has changed after they were permitted.
#[async_trait]
pub trait Guard: Send + Sync {
    /// Whether the call may run as it is now, in the folders of its context. The envelope is what
    /// the model reads if not.
    async fn permit(
        &self,
        tool: &dyn Tool,
        context: &ToolContext,
        arguments: &Value,
    ) -> Result<(), Envelope>;
}
