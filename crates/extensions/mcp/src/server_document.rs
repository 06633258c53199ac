//! Describes the servers and their tools for the model, before it uses them.
//!
//! Invariant: the text depends only on the known listings and the token budget, so that it is
//! byte-identical from session to session. Text that comes from servers is sanitized and cut.

use std::fmt::Write as _;

use haft_tool::{ToolDetail, sanitize_and_truncate};
use haft_types::ToolSpec;

use crate::listing::{ResourceInfo, ServerListing, ToolInfo};
use crate::output::{AnswerContent, ServerAnswer};
use crate::scope::ToolScope;
use crate::servers::Servers;

/// The maximum length of a resource's description, and of a line that lists resources, in
/// characters.
const MAX_DESCRIPTION_CHARS: usize = 1_000;
/// The length limit of a server's instructions, in characters.
const MAX_INSTRUCTIONS_CHARS: usize = 800;

/// The name of the built-in tool that reads resources. Each server with resources offers it, unless
/// the server has its own tool of this name.
pub(crate) const READ_RESOURCE: &str = "read_resource";
/// The maximum number of resources of a server that are listed with its tools. If there are more,
/// only their number is given.
const MAX_LISTED_RESOURCES: usize = 10;

/// A description of all servers and their tools, as a prompt section for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDocument {
    /// The text of the prompt section about MCP servers.
    pub text: String,
    /// True if the text omits arguments, so that the model has to look them up with `tool_search`.
    pub deferred: bool,
}

impl ServerDocument {
    /// Describes the servers in at most `budget` tokens, as completely as possible: every tool with
    /// its arguments, only the names of the tools, or only the number of tools.
    pub fn new(servers: &Servers, budget: usize, count: &dyn Fn(&str) -> usize) -> Self {
        Self::new_in_scope(&ToolScope::default(), servers, budget, count)
    }

    /// Like [`Self::new`], but describes only the tools in `scope`.
    pub(crate) fn new_in_scope(
        scope: &ToolScope,
        servers: &Servers,
        budget: usize,
        count: &dyn Fn(&str) -> usize,
    ) -> Self {
        let (detail, text) = ToolDetail::fit_to_budget(budget, count, |detail| {
            describe_servers(servers, scope, detail)
        });
        Self {
            text,
            deferred: detail != ToolDetail::Whole,
        }
    }
}

fn describe_servers(servers: &Servers, scope: &ToolScope, detail: ToolDetail) -> String {
    let mut text = match scope.describe() {
        None => "Servers and their tools:".to_owned(),
        Some(only) => format!("Servers and their tools, of which you can use only {only}:"),
    };
    for server in servers
        .iter()
        .filter(|server| scope.has_server(&server.name))
    {
        let name = &server.name;
        let _ = write!(text, "\n\n## {name}\n");
        let Some(listing) = servers.known_listing(name) else {
            text.push_str(
                "Its tools are not known yet: `tool_search` with this `server_name` lists them.",
            );
            continue;
        };
        let offered = listing
            .tools
            .iter()
            .filter(|tool| scope.offers_tool(server, &tool.name));
        let offered: Vec<_> = offered.map(ToolInfo::to_tool_spec).collect();
        push_tools(&mut text, &listing, &offered, detail);
        if scope.offers_tool(server, READ_RESOURCE) {
            push_resources(&mut text, &listing, detail);
        }
    }
    text
}

/// Appends the line about a server's resources to `text`. Lists them by name if there are at most
/// [`MAX_LISTED_RESOURCES`].
fn push_resources(text: &mut String, listing: &ServerListing, detail: ToolDetail) {
    let all = &listing.resources;
    if all.is_empty() || listing.tools.iter().any(|tool| tool.name == READ_RESOURCE) {
        return;
    }
    match detail {
        ToolDetail::Whole if all.len() <= MAX_LISTED_RESOURCES => {
            let named: Vec<_> = all
                .iter()
                .map(|one| format!("`{}` ({})", one.uri, one.name))
                .collect();
            let named = sanitize_and_truncate(&named.join(", "), MAX_DESCRIPTION_CHARS);
            let _ = write!(
                text,
                "\n- `{READ_RESOURCE}`: reads a resource: {named}\n  arguments: {{\"uri\": …}}"
            );
        }
        ToolDetail::Whole | ToolDetail::Names | ToolDetail::Counts => {
            let count = all.len();
            let _ = write!(
                text,
                "\n- `{READ_RESOURCE}`: {count} resources; without a `uri` it lists them"
            );
        }
    }
}

/// Lists all resources of a server, in the form of an answer from that server.
pub(crate) fn list_resources(listing: &ServerListing) -> ServerAnswer {
    let line = |one: &ResourceInfo| {
        let media_type = if one.media_type.is_empty() {
            String::new()
        } else {
            format!(", {}", one.media_type)
        };
        format!(
            "`{}` ({}{media_type}): {}",
            one.uri,
            one.name,
            sanitize_and_truncate(&one.description, MAX_DESCRIPTION_CHARS)
        )
    };
    let lines: Vec<_> = listing.resources.iter().map(line).collect();
    ServerAnswer {
        content: vec![AnswerContent::Text(lines.join("\n"))],
        ..ServerAnswer::default()
    }
}

fn push_tools(
    text: &mut String,
    listing: &ServerListing,
    offered: &[ToolSpec],
    detail: ToolDetail,
) {
    let instructions = sanitize_and_truncate(&listing.instructions, MAX_INSTRUCTIONS_CHARS);
    if detail != ToolDetail::Counts && !instructions.is_empty() {
        let _ = writeln!(text, "{instructions}");
    }
    text.push_str(&if offered.is_empty() {
        "It has no tools.".to_owned()
    } else {
        detail.list_tools(offered)
    });
}
