//! Errors in options and requests written for Claude Code.

use haft_permission::RuleError;

/// An option or a request of a client that can't be obeyed.
#[derive(Debug, thiserror::Error)]
pub enum ClaudeError {
    /// `--settings` can't be read.
    #[error("`--settings`: {0}")]
    Settings(String),
    /// `--agents` can't be read, or declares an agent that can't be used.
    #[error("`--agents`: {0}")]
    Agents(String),
    /// `--session-id` is not a UUID.
    #[error("`--session-id`: {0}")]
    SessionId(uuid::Error),
    /// A file named on the command line can't be read.
    #[error("`{flag}`: cannot read {file}: {error}")]
    File {
        /// The flag that names the file.
        flag: &'static str,
        /// The file, as written.
        file: String,
        /// The cause.
        error: std::io::Error,
    },
    /// A rule that asks or denies can't be parsed, and neither can a wider one.
    #[error("{0}")]
    Rule(RuleError),
    /// The hooks a client declares for one hook point can't be read.
    #[error("the hooks of {point} cannot be read: {error}")]
    Hooks {
        /// The hook point, as written.
        point: String,
        /// The cause.
        error: serde_json::Error,
    },
    /// The matcher of a client's hook is not a regular expression.
    #[error("{0}")]
    Matcher(String),
}
