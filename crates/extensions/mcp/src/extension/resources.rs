//! Attaches resources of servers to a prompt that mentions them as `@server:scheme://path`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use haft_agent::PromptError;
use haft_text::{CutLimits, cut_lines, sanitize};
use tokio_util::sync::CancellationToken;

use crate::servers::Servers;

/// The limits of an attached resource's text. They equal the limits of a tool's output.
const LIMITS: CutLimits = CutLimits {
    lines: 2_000,
    bytes: 50 * 1024,
};

/// A mention of a server's resource in the user's text: the server's name and the resource's URI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResourceMention {
    server: String,
    uri: String,
}

/// Lists the resources of all servers with known listings, in the form in which prompts mention
/// them. Starts no server.
pub(super) fn list_resources(servers: &Servers) -> Vec<String> {
    let mut resources = Vec::new();
    for server in servers.iter() {
        let listing = servers.known_listing(&server.name).unwrap_or_default();
        let uris = listing.resources.iter().map(|resource| &resource.uri);
        resources.extend(uris.map(|uri| format!("{}:{uri}", server.name)));
    }
    resources
}

/// Returns the resources that `text` mentions, in order and without repetitions.
pub(super) fn find_mentions(text: &str, servers: &Servers) -> Vec<ResourceMention> {
    parse_mentions(text, &|name| {
        servers.iter().any(|server| server.name == name)
    })
}

fn parse_mentions(text: &str, is_server: &dyn Fn(&str) -> bool) -> Vec<ResourceMention> {
    let mut seen = BTreeSet::new();
    let words = text
        .split_whitespace()
        .filter_map(|word| word.trim_start_matches(['(', '"', '\'']).strip_prefix('@'));
    let parse_word = |word: &str| {
        let (server, uri) = word.split_once(':')?;
        // Punctuation at the end of a sentence is not part of the URI.
        let uri = uri.trim_end_matches(['.', ',', ';', '!', '?', ')', '"', '\'']);
        // A URI has a scheme.
        let named = uri
            .split_once(':')
            .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
        (named && is_server(server)).then(|| ResourceMention {
            server: server.to_owned(),
            uri: uri.to_owned(),
        })
    };
    words
        .filter_map(parse_word)
        .filter(|mention| seen.insert(mention.clone()))
        .collect()
}

/// Reads the mentioned resources and appends them to `text`. Starts their servers if needed.
pub(super) async fn attach_resources(
    text: &str,
    mentioned: &[ResourceMention],
    servers: &Servers,
) -> Result<String, PromptError> {
    let mut whole = text.to_owned();
    let cancel = CancellationToken::new();
    for ResourceMention { server, uri } in mentioned {
        let read = servers.read_resource(server, uri, &cancel).await;
        let answer = read.map_err(|error| PromptError::Resource {
            resource: format!("{server}:{uri}"),
            reason: error.to_string(),
        })?;
        let content = answer.joined_text();
        let cut = cut_lines(&sanitize(&content), LIMITS);
        // Writing to a String cannot fail.
        let _ = write!(
            whole,
            "\n\n<resource server=\"{server}\" uri=\"{}\">\n{}",
            sanitize(uri),
            cut.text.trim_end()
        );
        if cut.is_cut() {
            let _ = write!(
                whole,
                "\n[Of {} lines and {} bytes]",
                cut.total_lines, cut.total_bytes
            );
        }
        whole.push_str("\n</resource>");
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mentions_are_addresses_of_known_servers() {
        let found = |text: &str| {
            let all = parse_mentions(text, &|name| name == "gh" || name == "mem");
            all.into_iter()
                .map(|one| format!("{} {}", one.server, one.uri))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            found("Look at @gh:issue://123, and (@mem:mem:a)."),
            ["gh issue://123", "mem mem:a"]
        );
        assert_eq!(
            found("@gh:issue://1 @gh:issue://1"),
            ["gh issue://1"],
            "each once"
        );
        for text in [
            "@other:issue://1",
            "@gh",
            "@gh:readme",
            "me@gh:issue://1",
            "@src/main.rs:12",
            "gh:issue://1",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}
