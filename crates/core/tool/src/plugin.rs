//! What looks over the shoulder of every call.

use async_trait::async_trait;
use serde_json::Value;

use crate::{ToolContext, ToolOutput};

/// Looks at calls before and after they run. Every method may be left as it is.
///
/// Plugins run in the order they were added. One that fails or panics makes the call an error
/// result; it never ends the turn.
#[async_trait]
pub trait Plugin: Send + Sync {
    /// The name it is switched on and off by.
    fn name(&self) -> &str;

    /// Looks at a call before it runs; it may change the arguments. An error keeps the call from
    /// running, and the model reads it.
    async fn before(
        &self,
        _tool: &str,
        _context: &ToolContext,
        _arguments: &mut Value,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Looks at a result that is not an error; it may change it.
    async fn after(
        &self,
        _tool: &str,
        _context: &ToolContext,
        _output: &mut ToolOutput,
    ) -> Result<(), String> {
        Ok(())
    }

    /// Looks at a result that is an error; it may change it.
    async fn on_error(
        &self,
        _tool: &str,
        _context: &ToolContext,
        _output: &mut ToolOutput,
    ) -> Result<(), String> {
        Ok(())
    }
}
