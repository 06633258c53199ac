//! The `[mcp_servers.NAME]` sections of the user's configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use haft_types::Decision;
use serde::{Deserialize, Serialize, Serializer};

/// A server in the user's configuration: either a program (`command`) or a server reached over HTTP
/// (`url`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerConfig {
    /// The name or path of the program to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the program, in addition to those of every child process.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "without_values"
    )]
    pub env: BTreeMap<String, String>,
    /// The working directory; `project` stands for the project's root. If absent, a server of the
    /// user whose entry names no file of the project starts in a private folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// The address of a server reached over HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The headers to send with every request to `url`.
    #[serde(
        skip_serializing_if = "BTreeMap::is_empty",
        serialize_with = "without_values"
    )]
    pub headers: BTreeMap<String, String>,
    /// The environment variable that holds the bearer token for `url`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer_token_env: Option<String>,
    pub enabled: bool,
    /// The confinement of the program: on, off, or on with access to more hosts and folders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<ServerSandbox>,
    /// The hosts that the confined program may reach. If absent, a server of the user that runs no
    /// code of the project reaches all hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<ServerNetwork>,
    /// The folders that the confined program may write, besides its private folder: absolute, below
    /// the home folder with `~/`, or `project`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub writable: Vec<PathBuf>,
    /// The maximum time that a call may take without any sign of progress, in seconds.
    pub timeout: u64,
    /// The time the server may take to start, in seconds.
    pub startup_timeout: u64,
    /// The revision of the protocol to use with the server.
    pub protocol: Protocol,
    /// The decision on calls that no permission rule covers; `ask` if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<Decision>,
    /// The filter that selects which of the server's tools are offered.
    #[serde(skip_serializing_if = "ToolFilter::is_open")]
    pub tools: ToolFilter,
    /// The identity of haft as an OAuth client of the server.
    #[serde(skip_serializing_if = "OauthConfig::is_default")]
    pub oauth: OauthConfig,
}

/// The identity of haft as an OAuth client. If empty, haft registers itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OauthConfig {
    /// The client id, if haft was registered with the authorization server manually.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The environment variable that holds the client secret of a manual registration.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_secret_env: Option<String>,
    /// The URL of a page that describes haft, for servers that accept such a URL as the client id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_metadata_url: Option<String>,
    /// The OAuth scopes to request. If empty, haft requests the scopes that the server names.
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
            network: None,
            writable: Vec::new(),
            timeout: 120,
            startup_timeout: 30,
            protocol: Protocol::default(),
            permission: None,
            tools: ToolFilter::default(),
            oauth: OauthConfig::default(),
        }
    }
}

/// The `sandbox` setting of a server: a switch, or the hosts and folders that the server may reach.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "`sandbox` is true, false, or a table of `network` and `writable`"
)]
pub enum ServerSandbox {
    /// True to confine the server in every permission mode; false, which only the user's
    /// configuration may contain, to never confine it.
    Switch(bool),
    /// The server is confined, but has access to these hosts and folders in addition to those of
    /// commands.
    With(ServerReach),
}

/// The `network` setting of a server: a switch for all hosts, or a list of hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "`network` is true, false, or a list of hosts")]
pub enum ServerNetwork {
    Switch(bool),
    Hosts(Vec<String>),
}

impl ServerNetwork {
    /// Returns the hosts as a list, in which `*` stands for all hosts.
    pub(crate) fn hosts(&self) -> Vec<String> {
        match self {
            Self::Switch(true) => vec![ALL_HOSTS.to_owned()],
            Self::Switch(false) => Vec::new(),
            Self::Hosts(hosts) => hosts.clone(),
        }
    }
}

/// The entry of a list of hosts that stands for all hosts.
pub(crate) const ALL_HOSTS: &str = "*";

/// The hosts and folders that a confined server may reach in addition to the project and to the
/// hosts and folders that commands may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServerReach {
    /// Hosts that the server may connect to.
    pub network: Vec<String>,
    /// Folders that the server may write: absolute, or below the home folder with `~/`.
    pub writable: Vec<PathBuf>,
    /// True if the declaration states no hosts, so that a server of the user may reach all hosts
    /// unless it runs code of the project.
    #[serde(skip)]
    pub uses_default_network: bool,
}

/// The revision of the protocol to use with a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// The newest revision that the server supports.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// The current revision, which has no handshake.
    #[serde(rename = "2026-07-28")]
    Current,
    /// The previous revision, which has a handshake.
    #[serde(rename = "2025-11-25")]
    Previous,
}

/// Selects which tools of a server are offered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolFilter {
    /// The names of the tools to offer, or patterns that end with `*`. If empty, all tools are
    /// offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// The names or patterns of tools that are not offered, even if `allow` matches them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}

impl ToolFilter {
    /// True if a tool of this name is offered. A `*` at the end of an entry matches any text.
    pub fn allows(&self, tool: &str) -> bool {
        let matches_entry = |list: &[String]| {
            list.iter().any(|entry| match entry.strip_suffix('*') {
                Some(beginning) => tool.starts_with(beginning),
                None => tool == entry,
            })
        };
        !matches_entry(&self.deny) && (self.allow.is_empty() || matches_entry(&self.allow))
    }

    fn is_open(&self) -> bool {
        *self == Self::default()
    }
}

/// Serializes a map with its values masked, because environment variables and headers contain
/// secrets.
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
    fn tool_filter_matches_names_and_prefixes_and_deny_wins() {
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
            assert_eq!(filter.allows(tool), offered, "{tool}");
        }
        assert!(ToolFilter::default().allows("anything"));
    }

    #[test]
    fn server_config_shows_no_environment_or_header_values() {
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
