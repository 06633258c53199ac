//! Errors in options and requests that were written for Claude Code.

use haft_permission::RuleError;

/// The reason why haft cannot follow an option or a request of a client.
#[derive(Debug, thiserror::Error)]
pub enum ClaudeError {
    /// The value of `--settings` cannot be read.
    #[error("`--settings`: {0}")]
    Settings(String),
    /// The value of `--agents` cannot be read, or declares an agent that cannot be used.
    #[error("`--agents`: {0}")]
    Agents(String),
    /// The value of `--session-id` is not a UUID.
    #[error("`--session-id`: {0}")]
    SessionId(uuid::Error),
    /// A file named on the command line cannot be read.
    #[error("`{flag}`: cannot read {file}: {error}")]
    File {
        /// The flag that names the file.
        flag: &'static str,
        /// The path of the file, as given.
        file: String,
        /// The error that occurred while reading the file.
        error: std::io::Error,
    },
    /// An ask or deny rule cannot be parsed, and there is no more general rule that could replace
    /// it.
    #[error("{0}")]
    Rule(RuleError),
    /// The hooks that a client declares for a hook point cannot be read.
    #[error("the hooks of {point} cannot be read: {error}")]
    Hooks {
        /// The name of the hook point, as given.
        point: String,
        /// The error that occurred while parsing the hooks.
        error: serde_json::Error,
    },
    /// The matcher of a client's hook is not a regular expression.
    #[error("{0}")]
    Matcher(String),
}
