//! The `[mcp_servers.NAME]` sections of the user's configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use haft_types::Decision;
use serde::{Deserialize, Serialize, Serializer};

/// One server as the user declares it: `command` for a program that is started, `url` for one that
/// runs elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// What it gets in its environment beside what every child gets.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "without_values"
    )]
    pub env: BTreeMap<String, String>,
    /// The folder it runs in, `project` for the project. Absent, a server of the user's own that
    /// names nothing of the project starts in a private folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Where it answers over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of every request to it.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "without_values"
    )]
    pub headers: BTreeMap<String, String>,
    /// The variable that holds its bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_env: Option<String>,
    /// Whether it is used.
    pub enabled: bool,
    /// Whether the program runs in the sandbox that commands run in, and what it may reach beside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<ServerSandbox>,
    /// Seconds a call may be silent.
    pub timeout: u64,
    /// Seconds it may take to start.
    pub startup_timeout: u64,
    /// Which revision of the protocol is spoken.
    pub protocol: Protocol,
    /// What becomes of its calls where no rule speaks; asked when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Decision>,
    /// Which of its tools are offered.
    #[serde(skip_serializing_if = "ToolFilter::is_open")]
    pub tools: ToolFilter,
    /// How haft introduces itself where a login is wanted.
    #[serde(skip_serializing_if = "OauthConfig::is_default")]
    pub oauth: OauthConfig,
}

/// How haft introduces itself to a server that wants a login. Without a word of it haft registers
/// itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OauthConfig {
    /// The id haft was registered under by hand.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The variable that holds the secret that belongs to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
    /// A page that describes haft, for servers that take its address for an id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<String>,
    /// What is asked for; what the server names when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
}

impl OauthConfig {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            command: None,
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            bearer_token_env: None,
            enabled: true,
            sandbox: None,
            timeout: 120,
            startup_timeout: 30,
            protocol: Protocol::default(),
            permission: None,
            tools: ToolFilter::default(),
            oauth: OauthConfig::default(),
        }
    }
}

/// What `sandbox` says of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`sandbox` is true, false, or a table of `network` and `writable`"
)]
pub enum ServerSandbox {
    /// That it runs in one, or that it does not.
    Switch(bool),
    /// That it does, and may reach this.
    With(ServerReach),
}

/// What a confined server may reach beside the project and what commands reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerReach {
    /// Hosts.
    pub network: Vec<String>,
    /// Folders it may write: absolute, or below the home folder with `~/`.
    pub writable: Vec<PathBuf>,
}

/// Which revision of the protocol is spoken with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// The newest one the server knows.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// The current one, without a handshake.
    #[serde(rename = "2026-07-28")]
    Current,
    /// The one before, with a handshake.
    #[serde(rename = "2025-11-25")]
    Previous,
}

/// Which tools of a server are offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilter {
    /// Only these; all when empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// None of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// Whether a tool of this name is offered. A `*` at the end of an entry stands for any further
    /// letters.
    pub fn admits(&self, tool: &str) -> bool {
        let names = |list: &[String]| {
            list.iter().any(|entry| match entry.strip_suffix('*') {
                Some(beginning) => tool.starts_with(beginning),
                None => tool == entry,
            })
        };
        !names(&self.deny) && (self.allow.is_empty() || names(&self.allow))
    }

    fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// Environments and headers hold keys, which are never shown.
fn without_values<S: Serializer>(
    map: &BTreeMap<String, String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(map.keys().map(|name| (name, "[masked]")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_takes_names_and_beginnings_and_deny_wins() {
        let filter = ToolFilter {
            allow: vec!["read_*".into(), "list".into()],
            deny: vec!["read_secret".into(), "x*".into()],
        };
        for (tool, offered) in [
            ("read_file", true),
            ("list", true),
            ("lists", false),
            ("read_secret", false),
        ] {
            assert_eq!(filter.admits(tool), offered, "{tool}");
        }
        assert!(ToolFilter::default().admits("anything"));
    }

    #[test]
    fn no_value_of_an_environment_or_header_is_shown() {
        let config = ServerConfig {
            env: [("API_KEY".into(), "s3cret".into())].into(),
            headers: [("Authorization".into(), "Bearer s3cret".into())].into(),
            ..ServerConfig::default()
        };
        let shown = serde_json::to_string(&config).unwrap();
        assert!(
            shown.contains("API_KEY") && !shown.contains("s3cret"),
            "{shown}"
        );
    }
}
