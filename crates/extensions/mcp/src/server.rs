//! Definitions of servers that can be started or reached, and problems of declarations that cannot
//! be used.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_types::Decision;
use tokio::io::DuplexStream;

use crate::config::{Protocol, ServerReach, ToolFilter};

/// A declared server, with variables expanded and defaults filled in.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerDefinition {
    pub name: String,
    pub origin: ServerOrigin,
    pub endpoint: ServerEndpoint,
    /// The confinement of the server. Only applies to programs that haft starts.
    pub confinement: ServerConfinement,
    /// The hosts and folders to which the server's declaration requests access from inside the
    /// sandbox. Requests in the user's own configuration are always granted; those of a project
    /// only if they were granted when the project was trusted.
    pub requested_reach: ServerReach,
    /// The maximum time that a call may take without any sign of progress.
    pub timeout: Duration,
    /// The maximum time that the server may take to start.
    pub startup_timeout: Duration,
    /// The revision of the protocol to use with the server.
    pub protocol: Protocol,
    /// The filter that selects which of the server's tools are offered.
    pub filter: ToolFilter,
    /// The decision on calls that no permission rule covers; `ask` if absent.
    pub permission: Option<Decision>,
    /// The identity of haft as an OAuth client of the server.
    pub oauth: Oauth,
}

/// The identity of haft as an OAuth client, for servers that require a login.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Oauth {
    /// The client id, if haft was registered with the authorization server manually.
    pub client_id: Option<String>,
    /// The client secret, if haft was registered with the authorization server manually.
    pub client_secret: Option<String>,
    /// The URL of a page that describes haft, for servers that accept such a URL as the client id.
    pub metadata_url: Option<String>,
    /// The OAuth scopes to request. If empty, haft requests the scopes that the server names.
    pub scopes: Vec<String>,
}

/// The source of a server's declaration: the user or the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    /// The user's configuration.
    User,
    /// The project's `.mcp.json`.
    Project,
}

impl ServerOrigin {
    /// Returns the name of the origin for lists of servers: `user` or `project`.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// The resolved `sandbox` setting of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerConfinement {
    /// The server is confined in every permission mode.
    Always,
    /// The setting is absent. The server is confined outside of the mode `yolo`. A server of the
    /// user that runs no code of the project may run unconfined if there is no sandbox.
    Default,
    /// The server is never confined. Only the user's configuration can choose this case.
    Never,
}

impl ServerDefinition {
    /// Defines a server of the type `sdk`, which the session's client connects to.
    pub fn new_linked(name: &str, link: Arc<dyn ServerLink>) -> Self {
        Self {
            name: name.to_owned(),
            origin: ServerOrigin::User,
            endpoint: ServerEndpoint::Linked(LinkedServer(link)),
            confinement: ServerConfinement::Default,
            requested_reach: ServerReach::default(),
            timeout: LINK_TIMEOUT,
            startup_timeout: LINK_STARTUP_TIMEOUT,
            protocol: Protocol::Previous,
            filter: ToolFilter::default(),
            permission: None,
            oauth: Oauth::default(),
        }
    }
}

/// The maximum time that a call of a linked server may take without any message from the server.
/// The limit is long, because the call may wait for the user.
const LINK_TIMEOUT: Duration = Duration::from_hours(1);
/// The time limit for a linked server's answer to its first request.
const LINK_STARTUP_TIMEOUT: Duration = Duration::from_secs(30);

/// The way to reach a server: a program to start, a URL, or a link through the session's client.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerEndpoint {
    /// A program that haft starts and that communicates over standard input and output.
    Command {
        program: String,
        args: Vec<String>,
        /// Environment variables in addition to those of every child process.
        env: Vec<(String, String)>,
        /// The working directory in which the program is started.
        cwd: PathBuf,
        /// True for a user's own server whose entry names neither a folder nor a file of the
        /// project. The server starts in a private folder, because many programs run code that is
        /// in their working directory.
        starts_apart: bool,
    },
    /// A server that answers over HTTP.
    Http {
        url: String,
        /// The headers that are sent with every request.
        headers: Vec<(String, String)>,
        /// The bearer token for authorization, if one is configured.
        bearer: Option<String>,
    },
    /// A server that the session's client connects to.
    Linked(LinkedServer),
}

/// Connects to servers that only the session's client can reach.
pub trait ServerLink: Send + Sync {
    /// Connects to the server of this name. The stream carries JSON-RPC messages, one per line;
    /// dropping it ends the connection.
    fn connect(&self, server: &str) -> DuplexStream;
}

/// A server that only the session's client can reach, through a [`ServerLink`].
#[derive(Clone)]
pub struct LinkedServer(pub Arc<dyn ServerLink>);

impl PartialEq for LinkedServer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LinkedServer {}

/// Formats the endpoint without the environment, the headers, and the token, because they contain
/// secrets.
impl fmt::Display for ServerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command { program, args, .. } => {
                f.write_str(program)?;
                args.iter().try_for_each(|arg| write!(f, " {arg}"))
            }
            Self::Http { url, .. } => f.write_str(url),
            Self::Linked(_) => f.write_str("linked"),
        }
    }
}

impl fmt::Debug for ServerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Debug for ServerDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}): {}",
            self.name,
            self.origin.name(),
            self.endpoint
        )
    }
}

/// The reason why a server declaration cannot be used. Its `Display` text is for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server `{server}` is not used: {place}: {reason}")]
pub struct ServerProblem {
    /// The server's name, or `*` if the problem concerns the whole file.
    pub server: String,
    /// The file and the key of the declaration, as text.
    pub place: String,
    /// A description of the error, and of how to fix it.
    pub reason: String,
}
