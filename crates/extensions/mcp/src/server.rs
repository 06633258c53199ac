//! A server that can be reached, and one that cannot.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haft_types::Decision;
use tokio::io::DuplexStream;

use crate::config::{Protocol, ServerReach, ToolFilter};

/// A server with everything that is needed to reach it.
#[derive(Clone, PartialEq, Eq)]
pub struct ServerDefinition {
    /// Its name.
    pub name: String,
    /// Who declared it.
    pub origin: ServerOrigin,
    /// How it is reached.
    pub reach: ServerEndpoint,
    /// Whether it runs in a sandbox, where it is a program.
    pub confinement: ServerConfinement,
    /// What it asks to reach from in there; what the user's own ask for is theirs.
    pub asks: ServerReach,
    /// How long a call may be silent.
    pub timeout: Duration,
    /// How long it may take to start.
    pub startup: Duration,
    /// Which revision of the protocol is spoken.
    pub protocol: Protocol,
    /// Which of its tools are offered.
    pub filter: ToolFilter,
    /// What becomes of its calls where no rule speaks.
    pub permission: Option<Decision>,
    /// How haft introduces itself where a login is wanted.
    pub oauth: Oauth,
}

/// How haft introduces itself to a server that wants a login.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Oauth {
    /// The id haft was registered under by hand.
    pub client_id: Option<String>,
    /// The secret that belongs to it.
    pub client_secret: Option<String>,
    /// A page that describes haft.
    pub metadata_url: Option<String>,
    /// What is asked for; what the server names when empty.
    pub scopes: Vec<String>,
}

/// Who declared a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerOrigin {
    /// The user, in the configuration.
    User,
    /// The project, in its `.mcp.json`.
    Project,
}

impl ServerOrigin {
    /// The word in lists.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
        }
    }
}

/// Whether a program runs in a sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerConfinement {
    /// It does, whatever the permission mode.
    Always,
    /// Nothing was said: one of a project does, one of the user where the folder is not trusted.
    Default,
    /// It does not; only the user can say so.
    Never,
}

impl ServerDefinition {
    /// The server of this name that the opener of the session brings.
    pub fn linked(name: &str, link: Arc<dyn ServerLink>) -> Self {
        Self {
            name: name.to_owned(),
            origin: ServerOrigin::User,
            reach: ServerEndpoint::Linked(LinkedServer(link)),
            confinement: ServerConfinement::Default,
            asks: ServerReach::default(),
            timeout: LINK_TIMEOUT,
            startup: LINK_STARTUP,
            protocol: Protocol::Previous,
            filter: ToolFilter::default(),
            permission: None,
            oauth: Oauth::default(),
        }
    }
}

/// How long a call of a linked server may be silent: what it does may wait for a person.
const LINK_TIMEOUT: Duration = Duration::from_hours(1);
/// How long it may take to answer at all.
const LINK_STARTUP: Duration = Duration::from_secs(30);

/// How a server is reached.
#[derive(Clone, PartialEq, Eq)]
pub enum ServerEndpoint {
    /// It is a program, spoken with over its standard input and output.
    Command {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// What it gets in its environment beside what every child gets.
        env: Vec<(String, String)>,
        /// The folder it runs in.
        cwd: PathBuf,
        /// True for a user's own server whose entry names no folder and nothing of the project.
        /// Unconfined, it starts in a private folder: many programs run code that they
        /// find in their working directory.
        starts_apart: bool,
    },
    /// It answers over HTTP.
    Http {
        /// Where.
        url: String,
        /// Headers of every request.
        headers: Vec<(String, String)>,
        /// Its bearer token.
        bearer: Option<String>,
    },
    /// Whoever opens the session speaks with it.
    Linked(LinkedServer),
}

/// Speaks with servers that only the opener of the session can reach.
pub trait ServerLink: Send + Sync {
    /// A connection to the server of this name: JSON-RPC messages, one a line. Dropping it ends it.
    fn connect(&self, server: &str) -> DuplexStream;
}

/// A server that is reached by a link.
#[derive(Clone)]
pub struct LinkedServer(pub Arc<dyn ServerLink>);

impl PartialEq for LinkedServer {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for LinkedServer {}

/// Never the environment, the headers or the token: they hold keys.
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
        write!(f, "{} ({}): {}", self.name, self.origin.name(), self.reach)
    }
}

/// A declaration that cannot be used, as text for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("MCP server `{server}` is not used: {place}: {reason}")]
pub struct ServerProblem {
    /// The server's name, empty when the whole file is meant.
    pub server: String,
    /// The file and the key.
    pub place: String,
    /// What is wrong and what to do.
    pub reason: String,
}
