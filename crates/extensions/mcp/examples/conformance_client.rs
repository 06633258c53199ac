//! The client of the official conformance suite: it does what a scenario wants with what haft has.
//!
//! `conformance_client URL`, with the scenario, the revision and further knowledge in the
//! environment, as the suite gives them. A visit to a page is made at once, as if a person had
//! agreed.
#![expect(
    clippy::print_stderr,
    reason = "what went wrong is for the suite's log"
)]

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_mcp::{
    Elicitor, ListingCache, McpError, Oauth, Protocol, ServerDefinition, ServerEndpoint,
    ServerHost, ServerOrigin, Servers, ToolFilter, ToolInfo, begin_login,
};
use haft_sandbox::{OwnProgram, Supervisor};
use haft_types::{Form, FormOutcome};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

/// How often a login is tried before it is given up.
const LOGINS: usize = 3;
/// The tool that takes a schema and compares it with the one it gave.
const ECHO: &str = "json_schema_echo";
/// The page that describes the client of the suite.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), Box<dyn std::error::Error>> {
    let url = std::env::args().next_back().unwrap_or_default();
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let scenario = variable("MCP_CONFORMANCE_SCENARIO");
    let context: Value =
        serde_json::from_str(&variable("MCP_CONFORMANCE_CONTEXT")).unwrap_or_default();
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let server = ServerDefinition {
        name: "suite".into(),
        origin: ServerOrigin::User,
        endpoint: ServerEndpoint::Http {
            url,
            headers: Vec::new(),
            bearer: None,
        },
        confinement: haft_mcp::ServerConfinement::Default,
        requested_reach: haft_mcp::ServerReach::default(),
        timeout: Duration::from_secs(20),
        startup_timeout: Duration::from_secs(20),
        protocol: match variable("MCP_CONFORMANCE_PROTOCOL_VERSION").as_str() {
            "2025-11-25" => Protocol::Previous,
            _ => Protocol::Current,
        },
        filter: ToolFilter::default(),
        permission: None,
        oauth: Oauth {
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            metadata_url: Some(METADATA.into()),
            scopes: Vec::new(),
        },
    };
    let state = tempfile::tempdir()?;
    let host = ServerHost {
        supervisor: Arc::new(Supervisor::new(OwnProgram::default())),
        environment: Arc::default(),
        writable: Vec::new(),
        folders: state.path().join("servers"),
        cache: ListingCache::new(state.path().join("lists")),
        tokens: state.path().join("tokens"),
        elicitor: Some(Arc::new(Defaults)),
        sandbox: None,
    };
    let tokens = host.tokens.clone();
    let client = Client {
        servers: Servers::new(vec![server.clone()], host),
        server,
        tokens,
    };
    let listing = client
        .with_login(async || {
            client
                .servers
                .current_listing("suite", &CancellationToken::new())
                .await
        })
        .await?;
    for (tool, arguments) in calls(&scenario, &context, &listing.tools) {
        let answer = client
            .with_login(async || client.call(&tool, arguments.clone()).await)
            .await;
        // What a scenario refuses on purpose is no failure of the client.
        if let Err(error @ McpError::Login { .. }) = answer {
            return Err(error.into());
        }
        if scenario == "auth/authorization-server-migration" {
            client
                .with_login(async || client.call(&tool, arguments.clone()).await)
                .await?;
        }
    }
    client.servers.close().await;
    Ok(())
}

/// The calls a scenario wants: those it names, or each tool once.
fn calls(scenario: &str, context: &Value, tools: &[ToolInfo]) -> Vec<(String, Map<String, Value>)> {
    if let Some(named) = context["toolCalls"].as_array() {
        let of = |call: &Value| {
            let arguments = call["arguments"].as_object().cloned().unwrap_or_default();
            Some((call["name"].as_str()?.to_owned(), arguments))
        };
        return named.iter().filter_map(of).collect();
    }
    if scenario == "initialize" || scenario == "json-schema-ref-no-deref" {
        return Vec::new();
    }
    // What was understood of another tool's schema.
    let other = tools
        .iter()
        .find(|tool| tool.name != ECHO)
        .map(|tool| tool.schema.clone());
    let arguments = |tool: &str| match tool {
        "add_numbers" => json!({"a": 5, "b": 3}),
        ECHO => json!({"schema": other}),
        _ => json!({}),
    };
    let called = tools
        .iter()
        .filter(|tool| scenario != "json-schema-2020-12-preservation" || tool.name == ECHO);
    called
        .map(|tool| {
            (
                tool.name.clone(),
                arguments(&tool.name)
                    .as_object()
                    .cloned()
                    .unwrap_or_default(),
            )
        })
        .collect()
}

struct Client {
    servers: Servers,
    server: ServerDefinition,
    tokens: std::path::PathBuf,
}

impl Client {
    async fn call(&self, tool: &str, arguments: Map<String, Value>) -> Result<(), McpError> {
        self.servers
            .call_tool(
                "suite",
                tool,
                arguments,
                Arc::new(|_| {}),
                &CancellationToken::new(),
            )
            .await
            .map(drop)
    }

    /// Does something, and logs in first where that is wanted, but not for ever.
    async fn with_login<T>(
        &self,
        mut work: impl AsyncFnMut() -> Result<T, McpError>,
    ) -> Result<T, McpError> {
        for _ in 0..LOGINS {
            match work().await {
                Err(McpError::Login { challenge, .. }) => {
                    let wrong = |reason| McpError::Start {
                        server: "suite".into(),
                        reason,
                    };
                    let login =
                        begin_login(&self.server, self.tokens.clone(), challenge.as_deref())
                            .await
                            .map_err(wrong)?;
                    let page = login.url().to_owned();
                    // The redirect leads back to where the login waits.
                    let visit = tokio::spawn(async move { reqwest::get(page).await.map(drop) });
                    login.finish().await.map_err(wrong)?;
                    visit.abort();
                }
                other => return other,
            }
        }
        work().await
    }
}

/// Answers with the defaults of every field.
struct Defaults;

#[async_trait]
impl Elicitor for Defaults {
    async fn fill_form(&self, form: Form) -> FormOutcome {
        FormOutcome::Accepted(
            form.fields
                .into_iter()
                .filter_map(|field| Some((field.name, field.default?)))
                .collect(),
        )
    }
}
