//! `haft mcp`: lists, adds, removes and tests MCP servers, logs in to them, and serves haft as an
//! MCP server.

mod add;
mod list;
mod live_test;
mod login;
#[cfg(feature = "acp")]
mod serve;

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use haft_mcp::DeclaredServers;
use haft_types::Decision;

use crate::cli::options::Common;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct McpArgs {
    #[command(subcommand)]
    pub(crate) command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// List the MCP servers of this project and yours, without starting them.
    List(McpListArgs),
    /// Add an MCP server to config.toml, and test it.
    ///
    /// A program: `haft mcp add NAME -- COMMAND ARGS…`. A service: `haft mcp add NAME --url URL`.
    Add(Box<McpAddArgs>),
    /// Remove an MCP server from config.toml.
    Remove(McpNameArgs),
    /// Start an MCP server, show its tools, prompts and resources, and cache the list.
    Test(McpTestArgs),
    /// Log in to an MCP server in the browser.
    Login(McpNameArgs),
    /// Serve haft as an MCP server, so that other agents can hand it tasks.
    ///
    /// Over standard input and output, or over HTTP with `--http`.
    #[cfg(feature = "acp")]
    Serve(Box<serve::McpServeArgs>),
}

#[derive(Debug, Default, Args)]
pub(crate) struct McpListArgs {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The project folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// The protocol used with a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum McpTransport {
    /// A program, over standard input and output.
    Stdio,
    /// A service, over HTTP.
    Http,
}

#[derive(Debug, Args)]
pub(crate) struct McpAddArgs {
    /// The server's name.
    pub(crate) name: String,
    /// The program and its arguments, after `--`.
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
    /// The URL of the service.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The transport; derived from the other arguments when absent. With `http` the URL may take
    /// the place of the command.
    #[arg(short, long)]
    pub(crate) transport: Option<McpTransport>,
    /// A variable of the program's environment, as `KEY=VALUE`.
    #[arg(short, long, value_name = "KEY=VALUE")]
    pub(crate) env: Vec<String>,
    /// A header of every request, as `Name: value`.
    #[arg(short = 'H', long, value_name = "NAME: VALUE")]
    pub(crate) header: Vec<String>,
    /// The environment variable that holds the bearer token.
    #[arg(long, value_name = "NAME")]
    pub(crate) bearer_token_env: Option<String>,
    /// The folder the program runs in; the project when absent.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Option<String>,
    /// End a call after this many seconds without output.
    #[arg(long, value_name = "SECONDS")]
    pub(crate) timeout: Option<u32>,
    /// The decision for this server's calls if no rule matches: allow, ask or deny.
    #[arg(long, value_name = "DECISION", value_parser = parse_decision)]
    pub(crate) permission: Option<Decision>,
    /// Only add it, without a test.
    #[arg(long)]
    pub(crate) no_test: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

fn parse_decision(text: &str) -> Result<Decision, String> {
    [Decision::Allow, Decision::Ask, Decision::Deny]
        .into_iter()
        .find(|decision| decision.name() == text)
        .ok_or_else(|| text!("mcp-bad-permission").to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct McpNameArgs {
    /// The server's name.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct McpTestArgs {
    /// The server's name; every server when absent.
    pub(crate) name: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The project folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, command: Option<McpCommand>) -> anyhow::Result<ProcessExit> {
    match command.unwrap_or_else(|| McpCommand::List(McpListArgs::default())) {
        McpCommand::List(args) => list::run(haft, &args),
        McpCommand::Add(args) => add::run(haft, &args),
        McpCommand::Remove(args) => add::remove_server(haft, &args.name),
        McpCommand::Test(args) => wiring::build_runtime()?.block_on(live_test::run(haft, &args)),
        McpCommand::Login(args) => wiring::build_runtime()?.block_on(login::run(haft, &args)),
        #[cfg(feature = "acp")]
        McpCommand::Serve(args) => serve::run(haft, *args),
    }
}

/// Loads the MCP servers of this project and of the user, and the names of the disabled servers.
fn load_servers(
    haft: &Haft,
    common: &Common,
    cwd: Option<&Path>,
) -> anyhow::Result<(DeclaredServers, Vec<String>)> {
    let settings = haft.load(common)?;
    Ok(DeclaredServers::open(
        &settings.places,
        &settings.config,
        &haft.project(cwd)?,
    )?)
}

/// Returns the server with this name. The error describes a problem with its declaration, or lists
/// the known names.
fn find_server<'a>(
    mcp: &'a DeclaredServers,
    name: &str,
) -> anyhow::Result<&'a haft_mcp::ServerDefinition> {
    if let Some(server) = mcp.servers.iter().find(|server| server.name == name) {
        return Ok(server);
    }
    if let Some(problem) = mcp.problems.iter().find(|problem| problem.server == name) {
        return Err(usage_error(problem.to_string()));
    }
    let names: Vec<_> = mcp
        .servers
        .iter()
        .map(|server| format!("`{}`", server.name))
        .collect();
    let known = if names.is_empty() {
        text!("mcp-no-servers").to_owned()
    } else {
        text!("mcp-there-are", names = crate::output::join_names(&names))
    };
    Err(usage_error(text!("mcp-unknown", name, known)))
}
