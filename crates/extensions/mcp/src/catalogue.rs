//! The tools of servers as `tool_search` finds them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_tool::{Patience, ToolCatalogue};
use haft_types::ToolSpec;
use tokio_util::sync::CancellationToken;

use crate::listing::ToolInfo;
use crate::scope::ToolScope;
use crate::servers::Servers;
use crate::use_mcp_tool;

/// How long servers of which nothing is known are waited for when none of them is named.
const SHORT_WAIT: Duration = Duration::from_secs(10);

/// What servers offer, within a scope.
pub struct ServerCatalogue {
    servers: Arc<Servers>,
    scope: ToolScope,
}

impl ServerCatalogue {
    /// Everything these servers offer.
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

    /// The servers of which something can be found. No other one is started.
    fn sources(&self) -> Vec<String> {
        let names = self.servers.names().into_iter();
        names
            .filter(|name| self.scope.reaches(name))
            .map(str::to_owned)
            .collect()
    }

    fn heading(&self, source: &str) -> String {
        format!("Server `{source}`")
    }

    /// What a server offers: as it is known, or else from its own mouth.
    async fn tools(
        &self,
        source: &str,
        patience: Patience,
        cancel: &CancellationToken,
    ) -> Result<Vec<ToolSpec>, String> {
        let listing = if let Some(known) = self.servers.known(source) {
            Ok(known)
        } else {
            let asked = self.servers.listing(source, cancel);
            match patience {
                Patience::Full => asked.await,
                Patience::Short => tokio::time::timeout(SHORT_WAIT, asked).await.map_err(|_elapsed| {
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
            .filter(|tool| self.scope.offers(server, &tool.name));
        Ok(offered.map(ToolInfo::spec).collect())
    }

    fn called_by(&self) -> Option<&str> {
        Some(use_mcp_tool::NAME)
    }

    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn ToolCatalogue>> {
        let scope = self.scope.narrowed(names, &self.servers.names())?;
        Some(Arc::new(Self {
            servers: Arc::clone(&self.servers),
            scope,
        }))
    }
}
