//! Who decides again when the arguments of a permitted call were changed.

use async_trait::async_trait;
use haft_types::Envelope;
use serde_json::Value;

use crate::{Tool, Workspace};

/// Decides on calls whose arguments a plugin has changed after they were permitted.
#[async_trait]
pub trait Guard: Send + Sync {
    /// Whether the call may run as it is now, in the folders it was given. The envelope is what the model reads if not.
    async fn permit(&self, tool: &dyn Tool, workspace: &Workspace, arguments: &Value) -> Result<(), Envelope>;
}
