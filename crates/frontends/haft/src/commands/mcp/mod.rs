//! `haft mcp`: the MCP servers there are, and what they offer.

mod add;
mod list;
mod login;
mod test;

use std::path::Path;

use crate::cli::{Common, McpCommand, McpListArgs};
use crate::exit::{Exit, mistake};
use crate::wiring;
use crate::wiring::mcp::Mcp;

pub(super) fn run(command: Option<McpCommand>) -> anyhow::Result<Exit> {
    match command.unwrap_or_else(|| McpCommand::List(McpListArgs::default())) {
        McpCommand::List(args) => list::run(&args),
        McpCommand::Add(args) => add::run(&args),
        McpCommand::Remove(args) => add::remove(&args.name),
        McpCommand::Test(args) => wiring::runtime()?.block_on(test::run(&args)),
        McpCommand::Login(args) => wiring::runtime()?.block_on(login::run(&args)),
    }
}

/// The servers of this project and the user, and the names of those that are switched off.
fn servers(common: &Common, cwd: Option<&Path>) -> anyhow::Result<(Mcp, Vec<String>)> {
    let (places, loaded) = super::configuration(common)?;
    Mcp::open(&places, &loaded.config, &wiring::project(cwd)?)
}

/// The server of this name, or an error that names the others.
fn named<'a>(mcp: &'a Mcp, name: &str) -> anyhow::Result<&'a haft_mcp::Server> {
    if let Some(server) = mcp.servers.iter().find(|server| server.name == name) {
        return Ok(server);
    }
    if let Some(problem) = mcp.problems.iter().find(|problem| problem.server == name) {
        return Err(mistake(problem.to_string()));
    }
    let names: Vec<_> = mcp.servers.iter().map(|server| format!("`{}`", server.name)).collect();
    let known =
        if names.is_empty() { "there are none yet".to_owned() } else { format!("there are {}", names.join(", ")) };
    Err(mistake(format!("there is no MCP server `{name}`; {known}")))
}
