//! Resources of servers that a prompt mentions, as `@server:scheme://path`: they are read and
//! attached.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use haft_mcp::Servers;
use haft_text::{CutLimits, cut_lines, sanitise};
use tokio_util::sync::CancellationToken;

use super::Mcp;
use crate::exit::usage_error;

/// What is attached of one resource, as of any tool's output.
const LIMITS: CutLimits = CutLimits {
    lines: 2_000,
    bytes: 50 * 1024,
};

/// A resource of a server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ResourceMention {
    server: String,
    uri: String,
}

/// The resources of all servers as they are mentioned, as far as they are known; nothing is
/// started.
pub(super) fn known(servers: &Servers) -> Vec<String> {
    let of = |name: &str| {
        let listing = servers.known(name).unwrap_or_default();
        listing
            .resources
            .iter()
            .map(|resource| format!("{name}:{}", resource.uri))
            .collect::<Vec<_>>()
    };
    servers.iter().flat_map(|server| of(&server.name)).collect()
}

/// The resources a text mentions, in order, each once.
pub(super) fn mentioned(text: &str, mcp: &Mcp) -> Vec<ResourceMention> {
    mentions(text, &|name| {
        mcp.servers.iter().any(|server| server.name == name)
    })
}

fn mentions(text: &str, is_server: &dyn Fn(&str) -> bool) -> Vec<ResourceMention> {
    let mut seen = BTreeSet::new();
    let words = text
        .split_whitespace()
        .filter_map(|word| word.trim_start_matches(['(', '"', '\'']).strip_prefix('@'));
    let of = |word: &str| {
        let (server, uri) = word.split_once(':')?;
        // What ends a sentence is no part of an address.
        let uri = uri.trim_end_matches(['.', ',', ';', '!', '?', ')', '"', '\'']);
        // An address names its scheme.
        let named = uri
            .split_once(':')
            .is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty());
        (named && is_server(server)).then(|| ResourceMention {
            server: server.to_owned(),
            uri: uri.to_owned(),
        })
    };
    words
        .filter_map(of)
        .filter(|mention| seen.insert(mention.clone()))
        .collect()
}

/// The text with the resources behind it. Their servers are started.
pub(super) async fn attach(
    text: &str,
    mentioned: &[ResourceMention],
    mcp: &Mcp,
) -> anyhow::Result<String> {
    let mut whole = text.to_owned();
    let cancel = CancellationToken::new();
    for ResourceMention { server, uri } in mentioned {
        let read = mcp.servers.read(server, uri, &cancel).await;
        let answer =
            read.map_err(|error| usage_error(format!("cannot read `@{server}:{uri}`: {error}")))?;
        let content = answer.text();
        let cut = cut_lines(&sanitise(&content), LIMITS);
        // Writing to a String cannot fail.
        let _ = write!(
            whole,
            "\n\n<resource server=\"{server}\" uri=\"{}\">\n{}",
            sanitise(uri),
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
    fn only_addresses_of_known_servers_are_mentions() {
        let found = |text: &str| {
            let all = mentions(text, &|name| name == "gh" || name == "mem");
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
