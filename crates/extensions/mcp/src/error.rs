//! Why something of a server could not be used.

/// Something of a server could not be used. The message is for the model and for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// No server has this name.
    #[error("there is no MCP server `{name}`; there {known}")]
    UnknownServer {
        /// What was given.
        name: String,
        /// Those there are, as text.
        known: String,
    },
    /// The server has no such tool, or it is not offered.
    #[error("the MCP server `{server}` has no tool `{tool}`{hint}")]
    UnknownTool {
        /// The server.
        server: String,
        /// What was given.
        tool: String,
        /// What to do.
        hint: String,
    },
    /// The choice of tools does not have it.
    #[error(
        "`{name}` is not among the tools you were given; of MCP servers you can use only {only}"
    )]
    NotOffered {
        /// What was given, as `mcp__server__tool`.
        name: String,
        /// What there is, as text.
        only: String,
    },
    /// It could not be started or reached.
    #[error("the MCP server `{server}` could not be started: {reason}")]
    Start {
        /// The server.
        server: String,
        /// What was tried and what came of it.
        reason: String,
    },
    /// It wants to know who asks.
    #[error(
        "the MCP server `{server}` wants a login; the user can log in with `haft mcp login {server}`"
    )]
    Login {
        /// The server.
        server: String,
        /// What it said with its refusal, from which a login begins.
        challenge: Option<String>,
    },
    /// It failed too often.
    #[error(
        "the MCP server `{server}` was started {starts} times in a few minutes and is left alone for another {seconds} s; go another way"
    )]
    Resting {
        /// The server.
        server: String,
        /// How often it was started.
        starts: usize,
        /// For how long it is left alone.
        seconds: u64,
    },
    /// It could not be started several times in a row and is not tried for a while.
    #[error(
        "the MCP server `{server}` could not be started {failures} times in a row and is left alone for another {seconds} s; go another way"
    )]
    Failing {
        /// The server.
        server: String,
        /// How often.
        failures: usize,
        /// For how long it is left alone.
        seconds: u64,
    },
    /// It said nothing for too long.
    #[error(
        "the MCP server `{server}` said nothing for {seconds} s, and the call was given up; whether it took effect is not known"
    )]
    Silent {
        /// The server.
        server: String,
        /// How long.
        seconds: u64,
    },
    /// It is gone.
    #[error(
        "the MCP server `{server}` ended in the middle of the call; whether it took effect is not known{said}"
    )]
    Gone {
        /// The server.
        server: String,
        /// The end of its output.
        said: String,
    },
    /// It answered with an error.
    #[error("the MCP server `{server}` refused: {message}")]
    Refused {
        /// The server.
        server: String,
        /// What it said.
        message: String,
    },
    /// The user cancelled.
    #[error("the call was cancelled by the user")]
    Cancelled,
}

impl McpError {
    /// A stable name for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnknownServer { .. } => "unknown_server",
            Self::UnknownTool { .. } => "unknown_tool",
            Self::NotOffered { .. } => "not_offered",
            Self::Start { .. } => "server_start",
            Self::Login { .. } => "login_required",
            Self::Resting { .. } | Self::Failing { .. } => "server_resting",
            Self::Silent { .. } => "timeout",
            Self::Gone { .. } => "server_gone",
            Self::Refused { .. } => "server_error",
            Self::Cancelled => "cancelled",
        }
    }
}
