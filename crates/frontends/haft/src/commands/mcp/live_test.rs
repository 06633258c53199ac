//! `haft mcp test`: starts MCP servers and shows what they offer, such as tools and prompts.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_mcp::{DeclaredServers, McpError, ServerDefinition, ServerListing};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::list;
use crate::commands::mcp::McpTestArgs;
use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::output;

pub(super) async fn run(haft: &Haft, args: &McpTestArgs) -> anyhow::Result<ProcessExit> {
    let (mcp, _) = super::load_servers(haft, &args.common, args.cwd.as_deref())?;
    let wanted: Vec<&ServerDefinition> = match &args.name {
        Some(name) => vec![super::find_server(&mcp, name)?],
        None => mcp.servers.iter().collect(),
    };
    let cancel = CancellationToken::new();
    let names: Vec<_> = wanted.iter().map(|server| server.name.as_str()).collect();
    let answers = mcp.servers.refetch_listings(&names, &cancel).await;
    let failed = answers.iter().any(Result::is_err);
    let tested: Vec<_> = wanted.into_iter().zip(answers).collect();
    if args.json {
        let all: Vec<_> = tested
            .iter()
            .map(|(server, answer)| test_to_json(&mcp, server, answer))
            .collect();
        output::print_json(&Value::Array(all))?;
    } else {
        let text: String = tested
            .iter()
            .map(|(server, answer)| test_to_text(server, answer))
            .collect();
        output::print_text(&text)?;
        mcp.problems
            .iter()
            .for_each(|problem| output::print_to_stderr(&format!("haft: {problem}")));
    }
    mcp.servers.close().await;
    Ok(if failed {
        ProcessExit::Failed
    } else {
        ProcessExit::Completed
    })
}

fn test_to_json(
    mcp: &DeclaredServers,
    server: &ServerDefinition,
    answer: &Result<Arc<ServerListing>, McpError>,
) -> Value {
    let mut shown = list::server_to_json(mcp, server);
    shown["ok"] = answer.is_ok().into();
    if let Err(error) = answer {
        shown["error"] = json!({ "code": error.code(), "message": error.to_string() });
    }
    shown
}

pub(super) fn test_to_text(
    server: &ServerDefinition,
    answer: &Result<Arc<ServerListing>, McpError>,
) -> String {
    let listing = match answer {
        Ok(listing) => listing,
        Err(error) => return format!("{}: {}\n", server.name, output::localize_text(error)),
    };
    let program = if listing.program.is_empty() {
        text!("mcp-unnamed")
    } else {
        &listing.program
    };
    let mut text = format!(
        "{}\n",
        text!(
            "mcp-test-heading",
            server = server.name,
            program,
            protocol = listing.protocol
        )
    );
    for tool in listing
        .tools
        .iter()
        .filter(|tool| server.filter.allows(&tool.name))
    {
        let about = tool
            .description
            .lines()
            .find(|line| !line.trim().is_empty())
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "  {}  {}",
            tool.name,
            haft_text::truncate_to_width(about.trim(), 80)
        );
    }
    if !listing.resources.is_empty() {
        let _ = writeln!(
            text,
            "  {}",
            text!("mcp-resources", count = listing.resources.len())
        );
    }
    if !listing.prompts.is_empty() {
        let _ = writeln!(
            text,
            "  {}",
            text!("mcp-prompts", count = listing.prompts.len())
        );
    }
    text
}
