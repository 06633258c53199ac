//! haft for other programs: an agent for editors over the Agent Client Protocol, and a server of tasks for other agents over MCP.
//!
//! The binary is behind [`Host`]: it opens sessions and knows what can be chosen.

mod host;
mod mcp_server;

pub use host::{Host, HostError, ListedConversation, OfferedCommand, OpenRequest, WrittenPrompt};
pub use mcp_server::{HttpAccess, TaskServer};

/// Speaks the Agent Client Protocol with whoever is behind these streams, until the input ends.
pub async fn serve(
    _host: std::sync::Arc<dyn Host>,
    _input: impl tokio::io::AsyncRead + Send + Unpin + 'static,
    _output: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
) -> std::io::Result<()> {
    Ok(())
}
