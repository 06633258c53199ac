//! What a model is told of the servers before it uses one.
//!
//! Invariant: the text depends on nothing but what servers were last known to offer and the tokens
//! it may have, so that the same knowledge gives the same bytes. What servers say of themselves is
//! sanitised and cut.

use std::fmt::Write as _;

use haft_tool::{ToolDetail, shorten};
use haft_types::ToolSpec;

use crate::listing::{ResourceInfo, ServerListing, ToolInfo};
use crate::output::{AnswerContent, ServerAnswer};
use crate::scope::ToolScope;
use crate::servers::Servers;

/// The longest description of a resource, in characters.
const DESCRIPTION: usize = 1_000;
/// The longest instructions of a server, in characters.
const INSTRUCTIONS: usize = 800;

/// The tool under which resources are read, of every server that has some and no tool of that name.
pub(crate) const READ_RESOURCE: &str = "read_resource";
/// How many resources are named beside the tools.
const RESOURCES: usize = 10;

/// What a model is told of the servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerDocument {
    /// The text of the section about them.
    pub text: String,
    /// Whether the arguments of tools are left for `tool_search` to tell.
    pub deferred: bool,
}

impl ServerDocument {
    /// Tells as much as fits into this many tokens: every tool with its arguments, else their
    /// names, else how many.
    pub fn of(servers: &Servers, budget: usize, count: &dyn Fn(&str) -> usize) -> Self {
        Self::within(&ToolScope::default(), servers, budget, count)
    }

    /// The same of what is within a scope.
    pub(crate) fn within(
        scope: &ToolScope,
        servers: &Servers,
        budget: usize,
        count: &dyn Fn(&str) -> usize,
    ) -> Self {
        let (detail, text) =
            ToolDetail::fitting(budget, count, |detail| text(servers, scope, detail));
        Self {
            text,
            deferred: detail != ToolDetail::Whole,
        }
    }
}

fn text(servers: &Servers, scope: &ToolScope, detail: ToolDetail) -> String {
    let mut text = match scope.told() {
        None => "Servers and their tools:".to_owned(),
        Some(only) => format!("Servers and their tools, of which you can use only {only}:"),
    };
    for server in servers.iter().filter(|server| scope.reaches(&server.name)) {
        let name = &server.name;
        let _ = write!(text, "\n\n## {name}\n");
        let Some(listing) = servers.known(name) else {
            text.push_str(
                "Its tools are not known yet: `tool_search` with this `server_name` lists them.",
            );
            continue;
        };
        let offered = listing
            .tools
            .iter()
            .filter(|tool| scope.offers(server, &tool.name));
        let offered: Vec<_> = offered.map(ToolInfo::spec).collect();
        tell(&mut text, &listing, &offered, detail);
        if scope.offers(server, READ_RESOURCE) {
            tell_resources(&mut text, &listing, detail);
        }
    }
    text
}

/// That there are resources, and which, if they are few.
fn tell_resources(text: &mut String, listing: &ServerListing, detail: ToolDetail) {
    let all = &listing.resources;
    if all.is_empty() || listing.tools.iter().any(|tool| tool.name == READ_RESOURCE) {
        return;
    }
    match detail {
        ToolDetail::Whole if all.len() <= RESOURCES => {
            let named: Vec<_> = all
                .iter()
                .map(|one| format!("`{}` ({})", one.uri, one.name))
                .collect();
            let named = shorten(&named.join(", "), DESCRIPTION);
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

/// All resources, as an answer of the server.
pub(crate) fn resources(listing: &ServerListing) -> ServerAnswer {
    let line = |one: &ResourceInfo| {
        let of = if one.media_type.is_empty() {
            String::new()
        } else {
            format!(", {}", one.media_type)
        };
        format!(
            "`{}` ({}{of}): {}",
            one.uri,
            one.name,
            shorten(&one.description, DESCRIPTION)
        )
    };
    let lines: Vec<_> = listing.resources.iter().map(line).collect();
    ServerAnswer {
        content: vec![AnswerContent::Text(lines.join("\n"))],
        ..ServerAnswer::default()
    }
}

fn tell(text: &mut String, listing: &ServerListing, offered: &[ToolSpec], detail: ToolDetail) {
    let instructions = shorten(&listing.instructions, INSTRUCTIONS);
    if detail != ToolDetail::Counts && !instructions.is_empty() {
        let _ = writeln!(text, "{instructions}");
    }
    text.push_str(&if offered.is_empty() {
        "It has no tools.".to_owned()
    } else {
        detail.list(offered)
    });
}
