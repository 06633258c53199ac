//! `tool_search`: finds tools of servers, with their arguments.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use haft_text::{Limits, cut_lines, sanitise};
use haft_tool::{Access, Group, Intent, Manual, Tool, ToolContext, ToolOutput, parse_arguments, schema_of};
use haft_types::{Envelope, ToolSpec};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::document::describe;
use crate::listing::Listing;
use crate::scope::Scope;
use crate::search::{score, words};
use crate::server::Server;
use crate::servers::Servers;
use crate::use_mcp_tool;

const NAME: &str = "tool_search";
/// How many tools are shown with their arguments.
const SHOWN: usize = 5;
/// How many further ones are named.
const NAMED: usize = 50;
/// How long servers of which nothing is known are waited for when none of them is named.
const PATIENCE: Duration = Duration::from_secs(10);

static MANUAL: Manual = Manual::of(Group::Others);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// What the tool should do, in words.
    query: String,
    /// Only tools of this server.
    server_name: Option<String>,
}

/// The tool.
pub struct ToolSearch {
    spec: ToolSpec,
    servers: Arc<Servers>,
    scope: Scope,
}

impl ToolSearch {
    /// Finds tools of these servers.
    pub fn new(servers: Arc<Servers>) -> Self {
        Self::within(Scope::default(), servers)
    }

    fn within(scope: Scope, servers: Arc<Servers>) -> Self {
        let description = include_str!("tool_search/prompt.md").trim_end().to_owned();
        let spec = ToolSpec { name: NAME.into(), description, parameters: schema_of::<Parameters>() };
        Self { spec, servers, scope }
    }

    /// The servers of which something can be found. No other one is started.
    fn reached(&self) -> impl Iterator<Item = &Server> {
        self.servers.iter().filter(|server| self.scope.reaches(&server.name))
    }

    /// What a server offers: as it is known, or else from its own mouth.
    async fn listing(
        &self,
        server: &Server,
        wait: Wait,
        context: &ToolContext,
    ) -> (String, Result<Arc<Listing>, String>) {
        let name = server.name.clone();
        if let Some(known) = self.servers.known(&name) {
            return (name, Ok(known));
        }
        let asked = self.servers.listing(&name, &context.cancel);
        let listing = match wait {
            Wait::AsItTakes => asked.await.map_err(|error| error.to_string()),
            Wait::AMoment => match tokio::time::timeout(PATIENCE, asked).await {
                Ok(listing) => listing.map_err(|error| error.to_string()),
                Err(_elapsed) => Err(format!("`{name}` has not started yet; name it as `server_name` to wait for it")),
            },
        };
        (name, listing)
    }
}

/// How long a server is waited for.
#[derive(Clone, Copy)]
enum Wait {
    AsItTakes,
    AMoment,
}

#[async_trait]
impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn manual(&self) -> &Manual {
        &MANUAL
    }

    fn narrowed(&self, names: &[String]) -> Option<Arc<dyn Tool>> {
        let scope = self.scope.narrowed(names, &self.servers.names())?;
        Some(Arc::new(Self::within(scope, Arc::clone(&self.servers))))
    }

    fn narrowed_with(&self) -> Option<&str> {
        Some(use_mcp_tool::NAME)
    }

    fn access(&self) -> Access {
        Access::Read
    }

    fn intent(&self, _arguments: &Value) -> Intent {
        Intent::Nothing
    }

    async fn call(&self, context: &ToolContext, arguments: Value) -> ToolOutput {
        let Parameters { query, server_name } = match parse_arguments(NAME, arguments) {
            Ok(parameters) => parameters,
            Err(error) => return Envelope::failure("invalid_arguments", error.to_string()).into(),
        };
        let server_name = server_name.filter(|name| !name.trim().is_empty());
        let wanted: Vec<_> =
            self.reached().filter(|server| server_name.as_ref().is_none_or(|name| *name == server.name)).collect();
        if let (Some(name), []) = (&server_name, wanted.as_slice()) {
            let known: Vec<_> = self.reached().map(|server| format!("`{}`", server.name)).collect();
            let message = format!("there is no MCP server `{name}`; there are {}", known.join(", "));
            return Envelope::failure("unknown_server", message).into();
        }
        let wait = if server_name.is_some() { Wait::AsItTakes } else { Wait::AMoment };
        let listings = join_all(wanted.iter().map(|server| self.listing(server, wait, context))).await;
        let words = words(&query);
        let mut found = Vec::new();
        let mut failed = Vec::new();
        for (server, (name, listing)) in wanted.iter().zip(listings) {
            match listing {
                Ok(listing) => {
                    let offered = listing.tools.iter().filter(|tool| self.scope.offers(server, &tool.name));
                    found.extend(offered.map(|tool| (score(&name, tool, &words), name.clone(), tool.clone())));
                }
                Err(reason) => failed.push(sanitise(&reason).into_owned()),
            }
        }
        let all = found.len();
        found.retain(|(score, ..)| *score > 0);
        // The best first; of equals the first stays first.
        found.sort_by_key(|(score, ..)| std::cmp::Reverse(*score));
        let mut text = match found.len() {
            0 => format!("None of {all} tools fits."),
            some => format!("{some} of {all} tools fit:"),
        };
        for (_, server, tool) in found.iter().take(SHOWN) {
            let _ = write!(text, "\n\nServer `{server}`\n{}", describe(tool));
        }
        let further: Vec<_> = found.iter().skip(SHOWN).collect();
        if !further.is_empty() {
            let names: Vec<_> =
                further.iter().take(NAMED).map(|(_, server, tool)| format!("{server}/{}", tool.name)).collect();
            let rest = further.len().saturating_sub(NAMED);
            let rest = if rest == 0 { String::new() } else { format!(" and {rest} more") };
            let _ = write!(text, "\n\nAlso: {}{rest}", sanitise(&names.join(", ")));
        }
        for reason in &failed {
            let _ = write!(text, "\n[{reason}]");
        }
        let limits = Limits { lines: context.limits.lines, bytes: context.limits.bytes };
        let shown: Vec<_> =
            found.iter().take(SHOWN).map(|(_, server, tool)| json!({ "server": server, "tool": tool.name })).collect();
        Envelope::success(cut_lines(&text, limits).text)
            .with_data(json!({ "query": query, "found": shown, "total": found.len() }))
            .into()
    }
}
