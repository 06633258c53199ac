//! Which tools of which servers may be listed and called.
//!
//! Tools of servers are chosen by the names rules know them by: `mcp__server__tool`,
//! `mcp__server__get_*`, `mcp__server` and `mcp__server__*` for all of a server, `mcp__*` for all
//! servers. Resources are read by a tool like any other, so a name that is not that tool's does not
//! give them.
//!
//! Invariant: a scope made from another one never has more than that one.

use std::fmt;

use crate::error::McpError;
use crate::server::ServerDefinition;

/// How the names begin.
const PREFIX: &str = "mcp__";
/// What is between the server and the tool.
const BETWEEN: &str = "__";

/// What may be listed and called: everything, or the parts named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ToolScope(Option<Vec<ScopePart>>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ScopePart {
    server: String,
    tools: Tools,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Tools {
    All,
    /// Those whose names begin so.
    Beginning(String),
    One(String),
}

impl ToolScope {
    /// What these names stand for, as far as it is within this scope; none where one of them stands
    /// for nothing.
    pub(crate) fn narrowed(&self, names: &[String], servers: &[&str]) -> Option<Self> {
        let mut all = Vec::new();
        for name in names {
            let before = all.len();
            for part in parts(name, servers) {
                match &self.0 {
                    None => all.push(part),
                    Some(limits) => all.extend(limits.iter().filter_map(|limit| limit.and(&part))),
                }
            }
            if all.len() == before {
                return None;
            }
        }
        // The same names in another order are the same scope.
        all.sort();
        all.dedup();
        Some(Self(Some(all)))
    }

    /// Whether there is anything of a server in it.
    pub(crate) fn reaches(&self, server: &str) -> bool {
        self.0
            .as_ref()
            .is_none_or(|parts| parts.iter().any(|part| part.server == server))
    }

    /// Whether a tool is in it, and the configuration offers it too.
    pub(crate) fn offers(&self, server: &ServerDefinition, tool: &str) -> bool {
        server.filter.admits(tool) && self.admits(&server.name, tool)
    }

    /// An error that says what is in it, unless this tool is.
    pub(crate) fn check(&self, server: &str, tool: &str) -> Result<(), McpError> {
        match self.told() {
            Some(only) if !self.admits(server, tool) => Err(McpError::NotOffered {
                name: format!("{PREFIX}{server}{BETWEEN}{tool}"),
                only,
            }),
            Some(_) | None => Ok(()),
        }
    }

    /// What is in it, as text; none where that is everything.
    pub(crate) fn told(&self) -> Option<String> {
        let parts: Vec<_> = self
            .0
            .as_ref()?
            .iter()
            .map(|part| format!("`{part}`"))
            .collect();
        Some(parts.join(", "))
    }

    fn admits(&self, server: &str, tool: &str) -> bool {
        self.0.as_ref().is_none_or(|parts| {
            parts
                .iter()
                .any(|part| part.server == server && part.tools.admit(tool))
        })
    }
}

impl ScopePart {
    /// What is in both.
    fn and(&self, other: &Self) -> Option<Self> {
        let tools = (self.server == other.server).then(|| self.tools.and(&other.tools))??;
        Some(Self {
            server: self.server.clone(),
            tools,
        })
    }
}

/// The name it is chosen by.
impl fmt::Display for ScopePart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, tools } = self;
        match tools {
            Tools::All => write!(f, "{PREFIX}{server}{BETWEEN}*"),
            Tools::Beginning(beginning) => write!(f, "{PREFIX}{server}{BETWEEN}{beginning}*"),
            Tools::One(tool) => write!(f, "{PREFIX}{server}{BETWEEN}{tool}"),
        }
    }
}

impl Tools {
    fn admit(&self, tool: &str) -> bool {
        match self {
            Self::All => true,
            Self::Beginning(beginning) => tool.starts_with(beginning.as_str()),
            Self::One(name) => tool == name,
        }
    }

    /// What is in both.
    fn and(&self, other: &Self) -> Option<Self> {
        let narrower = match (self, other) {
            (Self::All, narrower) | (narrower, Self::All) => return Some(narrower.clone()),
            (Self::One(name), wider) | (wider, Self::One(name)) => {
                return wider.admit(name).then(|| Self::One(name.clone()));
            }
            (Self::Beginning(one), Self::Beginning(other)) if one.starts_with(other.as_str()) => {
                one
            }
            (Self::Beginning(one), Self::Beginning(other)) if other.starts_with(one.as_str()) => {
                other
            }
            (Self::Beginning(_), Self::Beginning(_)) => return None,
        };
        Some(Self::Beginning(narrower.clone()))
    }
}

/// The server and the tool of it a name such as `mcp__server__tool` stands for, if it is one of
/// this server.
pub(crate) fn tool_of<'a>(name: &'a str, server: &'a str) -> Option<(&'a str, &'a str)> {
    let tool = name
        .strip_prefix(PREFIX)?
        .strip_prefix(server)?
        .strip_prefix(BETWEEN)?;
    (!tool.is_empty()).then_some((server, tool))
}

/// What a name stands for, among these servers. A name that can be read in two ways stands for
/// both.
fn parts(name: &str, servers: &[&str]) -> Vec<ScopePart> {
    let of = |server: &&str| {
        let rest = name.strip_prefix(PREFIX)?;
        let tools = if rest == "*" || rest == *server {
            Tools::All
        } else {
            tools(tool_of(name, server)?.1)?
        };
        Some(ScopePart {
            server: (*server).to_owned(),
            tools,
        })
    };
    servers.iter().filter_map(of).collect()
}

/// A `*` stands for any further letters, and only at the end.
fn tools(named: &str) -> Option<Tools> {
    match named.strip_suffix('*') {
        Some("") => Some(Tools::All),
        Some(beginning) => {
            (!beginning.contains('*')).then(|| Tools::Beginning(beginning.to_owned()))
        }
        None => (!named.contains('*')).then(|| Tools::One(named.to_owned())),
    }
}

#[cfg(test)]
mod tests;
