//! Observers of tool calls.

use async_trait::async_trait;
use serde_json::Value;

use crate::{ToolContext, ToolOutput};

/// Observes calls directly before and after they run. Observers run after a call is permitted, so
/// they cannot change the call's arguments; hooks can, because they run before permission.
///
/// Observers run in the order in which they were added. An observer that fails or panics turns the
/// result of the call into an error; it never ends the turn.
#[async_trait]
pub trait CallObserver: Send + Sync {
    /// Returns the name of the observer, for error messages to the model.
    fn name(&self) -> &str;

    /// Observes a call before it runs. An error prevents the call, and is sent to the model as its
    /// result.
    async fn before(
        &self,
        _tool: &str,
        _context: &ToolContext,
        _arguments: &Value,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Observes the result of a call, which may be an error result, and may change it. An error
    /// replaces the result for the model, but the file changes that the call reports are kept.
    async fn after(
        &self,
        _tool: &str,
        _context: &ToolContext,
        _output: &mut ToolOutput,
    ) -> Result<(), String> {
        Ok(())
    }
}
