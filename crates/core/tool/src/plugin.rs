//! Plugins, which inspect every call before and after it runs.

use async_trait::async_trait;
use serde_json::Value;

use crate::{ToolContext, ToolOutput};

/// Inspects calls before and after they run. Every method has a default that does nothing.
///
/// Plugins run in the order they were added. A plugin that fails or panics turns the call into an
/// error result; it never ends the turn.
#[async_trait]
pub trait Plugin: Send + Sync {
    /// Returns the name under which the plugin is enabled and disabled.
    fn name(&self) -> &str;

    /// Inspects a call before it runs, and may change its arguments. An error prevents the call,
    /// and the model reads the error.
    async fn before(
        &self,
        _tool: &str,
        _context: &ToolContext,
        _arguments: &mut Value,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Inspects a result that is not an error, and may change it.
    async fn after(
        &self,
        _tool: &str,
        _context: &ToolContext,
        _output: &mut ToolOutput,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Inspects an error result, and may change it.
    async fn on_error(
        &self,
        _tool: &str,
        _context: &ToolContext,
        _output: &mut ToolOutput,
    ) -> Result<(), String> {
        Ok(())
    }
}
