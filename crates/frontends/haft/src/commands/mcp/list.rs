//! `haft mcp list`: prints the declared servers without starting them.

use haft_mcp::{DeclaredServers, ServerDefinition, ServerEndpoint, ServerOrigin};
use serde_json::{Value, json};

use crate::commands::mcp::McpListArgs;
use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::output::{self, TextTable};

/// The state of a server that is declared but disabled.
const DISABLED_STATE: &str = "switched off";
/// The state of a server whose declaration is invalid.
const BROKEN_STATE: &str = "cannot be used";

pub(super) fn run(haft: &Haft, args: &McpListArgs) -> anyhow::Result<ProcessExit> {
    let (mcp, disabled) = super::load_servers(haft, &args.common, args.cwd.as_deref())?;
    if args.json {
        let mut all: Vec<Value> = mcp
            .servers
            .iter()
            .map(|server| server_to_json(&mcp, server))
            .collect();
        all.extend(
            disabled
                .iter()
                .map(|name| json!({ "name": name, "enabled": false, "state": DISABLED_STATE })),
        );
        all.extend(mcp.problems.iter().map(|problem| {
            let message = format!("{}: {}", problem.place, problem.reason);
            json!({ "name": problem.server, "state": BROKEN_STATE, "problem": message })
        }));
        output::print_json(&Value::Array(all))?;
        return Ok(ProcessExit::Completed);
    }
    if mcp.servers.iter().next().is_none() && disabled.is_empty() && mcp.problems.is_empty() {
        output::print_text_line(text!("mcp-list-empty"))?;
        return Ok(ProcessExit::Completed);
    }
    let mut table = TextTable::new(&[
        text!("table-name"),
        text!("table-from"),
        text!("table-state"),
        text!("table-tools"),
        text!("table-reached-by"),
    ]);
    for server in mcp.servers.iter() {
        let tools = mcp
            .servers
            .known_listing(&server.name)
            .map_or("-".to_owned(), |listing| {
                listing
                    .tools
                    .iter()
                    .filter(|tool| server.filter.allows(&tool.name))
                    .count()
                    .to_string()
            });
        let from = output::localize_text(server.origin.name());
        let state = state_text(&mcp, server).to_owned();
        table.add_row(vec![
            server.name.clone(),
            from,
            state,
            tools,
            server.endpoint.to_string(),
        ]);
    }
    for name in disabled {
        table.add_row(vec![
            name,
            "-".into(),
            text!("mcp-state-off").into(),
            "-".into(),
            "-".into(),
        ]);
    }
    for problem in mcp.problems.iter().filter(|problem| problem.server != "*") {
        table.add_row(vec![
            problem.server.clone(),
            "-".into(),
            text!("mcp-state-broken").into(),
            "-".into(),
            "-".into(),
        ]);
    }
    output::print_text(&table.to_string())?;
    for problem in &mcp.problems {
        output::print_to_stderr(&format!("haft: {}", output::localize_text(problem)));
    }
    Ok(ProcessExit::Completed)
}

/// Returns the name of a server's known state for JSON. The server is not started.
fn state_name(mcp: &DeclaredServers, server: &ServerDefinition) -> &'static str {
    match (
        mcp.servers.known_listing(&server.name),
        mcp.servers.has_login(&server.name),
    ) {
        (Some(_), true) => "known, logged in",
        (Some(_), false) => "known",
        (None, true) => "logged in, not asked yet",
        (None, false) => "not asked yet",
    }
}

/// Returns a server's known state for people. The server is not started.
fn state_text(mcp: &DeclaredServers, server: &ServerDefinition) -> &'static str {
    match (
        mcp.servers.known_listing(&server.name),
        mcp.servers.has_login(&server.name),
    ) {
        (Some(_), true) => text!("mcp-state-known-logged-in"),
        (Some(_), false) => text!("mcp-state-known"),
        (None, true) => text!("mcp-state-logged-in"),
        (None, false) => text!("mcp-state-unknown"),
    }
}

/// Converts a server and its known state to JSON. Environments, headers and tokens are omitted,
/// because they contain keys.
pub(super) fn server_to_json(mcp: &DeclaredServers, server: &ServerDefinition) -> Value {
    let mut shown = json!({
        "name": server.name,
        "from": match server.origin { ServerOrigin::User => "user", ServerOrigin::Project => "project" },
        "enabled": true,
        "state": state_name(mcp, server),
        "timeout": server.timeout.as_secs(),
        "permission": server.permission.map_or("ask", haft_types::Decision::name),
    });
    match &server.endpoint {
        ServerEndpoint::Command {
            program, args, cwd, ..
        } => {
            shown["command"] = json!(program);
            shown["args"] = json!(args);
            shown["cwd"] = json!(cwd.display().to_string());
        }
        // Linked servers belong to the session of a client, so they are never listed here.
        ServerEndpoint::Linked(_) => {}
        ServerEndpoint::Http { url, .. } => {
            shown["url"] = json!(url);
            shown["logged_in"] = json!(mcp.servers.has_login(&server.name));
        }
    }
    if let Some(listing) = mcp.servers.known_listing(&server.name) {
        shown["program"] = json!(listing.program);
        shown["protocol"] = json!(listing.protocol);
        let offered = listing
            .tools
            .iter()
            .filter(|tool| server.filter.allows(&tool.name));
        shown["tools"] = offered
            .map(|tool| json!({ "name": tool.name, "description": tool.description }))
            .collect();
        shown["resources"] = json!(listing.resources);
        shown["prompts"] = json!(listing.prompts);
    }
    shown
}
