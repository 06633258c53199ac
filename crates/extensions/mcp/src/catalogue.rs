//! Offers the servers' tools to `tool_search`.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_tool::{SourceWait, ToolCatalogue};
use haft_types::ToolSpec;
use tokio_util::sync::CancellationToken;

use crate::listing::ToolInfo;
use crate::scope::ToolScope;
use crate::servers::Servers;
use crate::use_mcp_tool;

/// The maximum time for which a search that names no server waits for a server with an unknown
/// listing.
const SHORT_WAIT: Duration = Duration::from_secs(10);

/// The tools of MCP servers that a model can search for, limited to a scope.
pub struct ServerCatalogue {
    servers: Arc<Servers>,
    scope: ToolScope,
}

impl ServerCatalogue {
    /// Creates a catalogue of all tools of `servers`.
    pub fn new(servers: Arc<Servers>) -> Self {
        Self {
            servers,
            scope: ToolScope::default(),
        }
    }
}

#[async_trait]
impl ToolCatalogue for ServerCatalogue {
    fn guide(&self) -> &'static str {
        include_str!("catalogue/prompt.md")
    }

    fn source_noun(&self) -> &'static str {
        "MCP server"
    }

    /// Lists the servers that have tools in the scope. Only these servers may be started by a
    /// search.
    fn sources(&self) -> Vec<String> {
        let names = self.servers.server_names().into_iter();
        names
            .filter(|name| self.scope.has_server(name))
            .map(str::to_owned)
            .collect()
    }

    fn heading(&self, source: &str) -> String {
        format!("Server `{source}`")
    }

    /// Lists the tools of a server, starting the server if its listing is unknown.
    async fn list_tools(
        &self,
        source: &str,
        patience: SourceWait,
        cancel: &CancellationToken,
    ) -> Result<Vec<ToolSpec>, String> {
        let listing = if let Some(known) = self.servers.known_listing(source) {
            Ok(known)
        } else {
            let asked = self.servers.current_listing(source, cancel);
            match patience {
                SourceWait::Full => asked.await,
                SourceWait::Short => tokio::time::timeout(SHORT_WAIT, asked).await.map_err(|_elapsed| {
                    format!("`{source}` has not started yet; name it as `server_name` to wait for it")
                })?,
            }
        };
        let listing = listing.map_err(|error| error.to_string())?;
        let Some(server) = self.servers.iter().find(|server| server.name == source) else {
            return Ok(Vec::new());
        };
        let offered = listing
            .tools
            .iter()
            .filter(|tool| self.scope.offers_tool(server, &tool.name));
        Ok(offered.map(ToolInfo::to_tool_spec).collect())
    }

    fn calling_tool(&self) -> Option<&str> {
        Some(use_mcp_tool::NAME)
    }

    fn narrow_to(&self, names: &[String]) -> Option<Arc<dyn ToolCatalogue>> {
        let scope = self
            .scope
            .restrict_to(names, &self.servers.server_names())?;
        Some(Arc::new(Self {
            servers: Arc::clone(&self.servers),
            scope,
        }))
    }
}
