//! The set of servers and tools that may be listed and called.
//!
//! Tools are chosen by the names that permission rules use: `mcp__server__tool`,
//! `mcp__server__get_*`, `mcp__server` and `mcp__server__*` for all tools of a server, `mcp__*` for
//! all servers. Resources are read through a tool, so they are available only if the scope includes
//! that tool.
//!
//! Invariant: a scope that is derived from another one never includes more than that one.

use std::fmt;

use crate::error::McpError;
use crate::server::ServerDefinition;

/// The prefix of all names that choose tools of MCP servers.
const PREFIX: &str = "mcp__";
/// The separator between the server's name and the tool's name.
const SEPARATOR: &str = "__";

/// The servers and tools that may be listed and called. `None` includes everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolScope(Option<Vec<ScopePart>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ScopePart {
    server: String,
    pattern: ToolPattern,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ToolPattern {
    All,
    /// Includes all tools whose names begin with this text.
    Prefix(String),
    One(String),
}

impl ToolScope {
    /// Restricts the scope to the tools that `names` match. Returns `None` if one of the names
    /// matches nothing.
    pub(crate) fn restrict_to(&self, names: &[String], servers: &[&str]) -> Option<Self> {
        let mut all = Vec::new();
        for name in names {
            let before = all.len();
            for part in parse_parts(name, servers) {
                match &self.0 {
                    None => all.push(part),
                    Some(limits) => {
                        all.extend(limits.iter().filter_map(|limit| limit.intersect(&part)));
                    }
                }
            }
            if all.len() == before {
                return None;
            }
        }
        // Sorted, because the order of the names doesn't matter.
        all.sort();
        all.dedup();
        Some(Self(Some(all)))
    }

    /// True if the scope includes at least one tool of `server`.
    pub(crate) fn has_server(&self, server: &str) -> bool {
        self.0
            .as_ref()
            .is_none_or(|parts| parts.iter().any(|part| part.server == server))
    }

    /// True if the scope includes the tool and the server's configured filter allows it.
    pub(crate) fn offers_tool(&self, server: &ServerDefinition, tool: &str) -> bool {
        server.filter.allows(tool) && self.includes_tool(&server.name, tool)
    }

    /// Returns an error that lists the scope if the scope doesn't include the tool.
    pub(crate) fn check_tool(&self, server: &str, tool: &str) -> Result<(), McpError> {
        match self.describe() {
            Some(only) if !self.includes_tool(server, tool) => Err(McpError::NotOffered {
                name: format!("{PREFIX}{server}{SEPARATOR}{tool}"),
                only,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// Describes the scope as text, or returns `None` if it includes everything.
    pub(crate) fn describe(&self) -> Option<String> {
        let parts: Vec<_> = self
            .0
            .as_ref()?
            .iter()
            .map(|part| format!("`{part}`"))
            .collect();
        Some(parts.join(", "))
    }

    fn includes_tool(&self, server: &str, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|parts| {
            parts
                .iter()
                .any(|part| part.server == server && part.pattern.matches_tool(tool))
        })
    }
}

impl ScopePart {
    /// Returns the part that includes only the tools that both `self` and `other` include, or
    /// `None` if there are none.
    fn intersect(&self, other: &Self) -> Option<Self> {
        let tools =
            (self.server == other.server).then(|| self.pattern.intersect(&other.pattern))??;
        Some(Self {
            server: self.server.clone(),
            pattern: tools,
        })
    }
}

/// Formats a part of a scope in the notation of permission rules, such as `mcp__server__*`.
impl fmt::Display for ScopePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            server,
            pattern: tools,
        } = self;
        match tools {
            ToolPattern::All => write!(f, "{PREFIX}{server}{SEPARATOR}*"),
            ToolPattern::Prefix(beginning) => write!(f, "{PREFIX}{server}{SEPARATOR}{beginning}*"),
            ToolPattern::One(tool) => write!(f, "{PREFIX}{server}{SEPARATOR}{tool}"),
        }
    }
}

impl ToolPattern {
    fn matches_tool(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Prefix(beginning) => tool.starts_with(beginning.as_str()),
            Self::One(name) => tool == name,
        }
    }

    /// Returns the pattern that matches only the tools that both `self` and `other` match, or
    /// `None` if there are none.
    fn intersect(&self, other: &Self) -> Option<Self> {
        let narrower = match (self, other) {
            (Self::All, narrower) | (narrower, Self::All) => return Some(narrower.clone()),
            (Self::One(name), wider) | (wider, Self::One(name)) => {
                return wider.matches_tool(name).then(|| Self::One(name.clone()));
            }
            (Self::Prefix(one), Self::Prefix(other)) if one.starts_with(other.as_str()) => one,
            (Self::Prefix(one), Self::Prefix(other)) if other.starts_with(one.as_str()) => other,
            (Self::Prefix(_), Self::Prefix(_)) => return None,
        };
        Some(Self::Prefix(narrower.clone()))
    }
}

/// Splits a name such as `mcp__server__tool` into the server and the tool. Returns `None` if the
/// name does not belong to a tool of `server`.
pub(crate) fn split_server_tool<'a>(name: &'a str, server: &'a str) -> Option<(&'a str, &'a str)> {
    let tool = name
        .strip_prefix(PREFIX)?
        .strip_prefix(server)?
        .strip_prefix(SEPARATOR)?;
    (!tool.is_empty()).then_some((server, tool))
}

/// Parses `name` as a scope part for each server in `servers` that it can refer to. An ambiguous
/// name yields one part per server.
fn parse_parts(name: &str, servers: &[&str]) -> Vec<ScopePart> {
    let parse_for_server = |server: &&str| {
        let rest = name.strip_prefix(PREFIX)?;
        let tools = if rest == "*" || rest == *server {
            ToolPattern::All
        } else {
            parse_tool_pattern(split_server_tool(name, server)?.1)?
        };
        Some(ScopePart {
            server: (*server).to_owned(),
            pattern: tools,
        })
    };
    servers.iter().filter_map(parse_for_server).collect()
}

/// Parses a tool name or a pattern. A `*` is allowed only at the end and matches any text.
fn parse_tool_pattern(named: &str) -> Option<ToolPattern> {
    match named.strip_suffix('*') {
        Some("") => Some(ToolPattern::All),
        Some(beginning) => {
            (!beginning.contains('*')).then(|| ToolPattern::Prefix(beginning.to_owned()))
        }
        None => (!named.contains('*')).then(|| ToolPattern::One(named.to_owned())),
    }
}

#[cfg(test)]
mod tests;
