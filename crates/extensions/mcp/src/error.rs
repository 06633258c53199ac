//! The errors of using an MCP server.

/// The reason why an MCP server could not be used. Its text is for the model and the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    #[error("there is no MCP server `{name}`; there {known}")]
    UnknownServer {
        /// The unknown name, as the caller wrote it.
        name: String,
        /// The end of the error message, which lists the existing servers.
        known: String,
    },
    /// The server has no tool of this name, or the configuration excludes the tool.
    #[error("the MCP server `{server}` has no tool `{tool}`{hint}")]
    UnknownTool {
        server: String,
        /// The unknown tool, as the caller named it.
        tool: String,
        /// The end of the error message: the list of the server's tools, or another hint.
        hint: String,
    },
    /// The tool is not among the tools chosen for this session or agent.
    #[error(
        "`{name}` is not among the tools you were given; of MCP servers you can use only {only}"
    )]
    NotOffered {
        /// The full name of the tool, as `mcp__server__tool`.
        name: String,
        /// A text that lists the tools of MCP servers that can be used.
        only: String,
    },
    /// The server could not be started or reached.
    #[error("the MCP server `{server}` could not be started: {reason}")]
    Start {
        server: String,
        /// The endpoint that was tried, and the error that occurred.
        reason: String,
    },
    /// The server requires a login.
    #[error(
        "the MCP server `{server}` wants a login; the user can log in with `haft mcp login {server}`"
    )]
    Login {
        server: String,
        /// The `WWW-Authenticate` header of the server's refusal, which is needed to begin a login.
        challenge: Option<String>,
    },
    /// The server was started too often and is not started again for a while.
    #[error(
        "the MCP server `{server}` was started {starts} times in a few minutes and is left alone for another {seconds} s; go another way"
    )]
    Resting {
        server: String,
        /// The number of recent starts.
        starts: usize,
        /// The number of seconds until the server may be started again.
        seconds: u64,
    },
    /// The server's last starts all failed, and the server is not started again for a while.
    #[error(
        "the MCP server `{server}` could not be started {failures} times in a row and is left alone for another {seconds} s; go another way"
    )]
    Failing {
        server: String,
        /// The number of failed starts in a row.
        failures: usize,
        /// The number of seconds until the server may be started again.
        seconds: u64,
    },
    /// The server sent nothing for the duration of its timeout.
    #[error(
        "the MCP server `{server}` said nothing for {seconds} s, and the call was given up; whether it took effect is not known"
    )]
    Silent {
        server: String,
        /// The timeout that elapsed, in seconds.
        seconds: u64,
    },
    /// The connection to the server ended during a call.
    #[error(
        "the MCP server `{server}` ended in the middle of the call; whether it took effect is not known{said}"
    )]
    Gone {
        server: String,
        /// The end of the server's error output, to be appended to the message.
        said: String,
    },
    /// The server answered the request with an error.
    #[error("the MCP server `{server}` refused: {message}")]
    Refused {
        server: String,
        /// The error message that the server sent.
        message: String,
    },
    /// The user canceled the call.
    #[error("the call was cancelled by the user")]
    Cancelled,
}

impl McpError {
    /// Returns the error code for the tool result. Codes never change.
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
