//! `haft mcp serve`: accepts tasks from other agents as an MCP server, over standard input and
//! output or HTTP.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use haft_acp::{HttpAccess, TaskServer};
use haft_agent::HostEnvironment;
use haft_types::PermissionMode;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::cli::options::Common;
use crate::commands::acp::{build_host, warn_at_terminal};
use crate::commands::run;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::{output, wiring};

/// The environment variable with the token that clients over HTTP must send.
const TOKEN_VARIABLE: &str = "HAFT_MCP_TOKEN";

#[derive(Debug, Args)]
pub(crate) struct McpServeArgs {
    /// Serve over HTTP at this address, a free port of 127.0.0.1 when absent. The bearer token is
    /// read from `HAFT_MCP_TOKEN`, or made and printed.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "127.0.0.1:0")]
    pub(crate) http: Option<SocketAddr>,

    /// The model of tasks that name none, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The permission mode of tasks that name none, and the most permissive one that a task can
    /// have: plan, ask, accept-edits or auto.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// The project folder of tasks that name none.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) common: Common,
}

pub(super) fn run(haft: &Haft, args: McpServeArgs) -> anyhow::Result<ProcessExit> {
    if args.permission_mode == Some(PermissionMode::Yolo) {
        return Err(usage_error(text!("mcp-serve-yolo")));
    }
    let cwd = haft.project(args.cwd.as_deref())?.cwd;
    let host = build_host(haft, args.common, args.model, args.permission_mode)?;
    let server = TaskServer {
        host: Arc::new(host),
        cwd,
    };
    wiring::build_runtime()?.block_on(async {
        let stop = CancellationToken::new();
        run::cancel_on_signals(&stop);
        if let Some(address) = args.http {
            let access = bind_http(haft.environment(), address).await?;
            server.serve_http(access, stop.cancelled()).await?;
        } else {
            warn_at_terminal("mcp serve");
            Box::pin(server.serve(tokio::io::stdin(), tokio::io::stdout(), stop.cancelled()))
                .await?;
        }
        Ok(ProcessExit::Completed)
    })
}

async fn bind_http(
    environment: &HostEnvironment,
    address: SocketAddr,
) -> anyhow::Result<HttpAccess> {
    if address.ip().is_unspecified() {
        return Err(usage_error(text!("mcp-serve-unspecified", address)));
    }
    let listener = tokio::net::TcpListener::bind(address).await;
    let listener =
        listener.map_err(|error| usage_error(text!("mcp-serve-cannot-listen", address, error)))?;
    let given = environment.trimmed_variable(TOKEN_VARIABLE);
    let token = given
        .clone()
        .unwrap_or_else(|| format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()));
    if given.is_none() {
        output::print_to_stderr(&text!("mcp-serve-token", token = token.as_str()));
    }
    if !address.ip().is_loopback() {
        output::print_to_stderr(&format!("haft: {}", text!("mcp-serve-open", address)));
    }
    let access = HttpAccess::new(listener, token)?;
    output::print_text(&format!("{}\n", access.url()))?;
    Ok(access)
}
