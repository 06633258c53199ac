//! Errors of setting up an agent, one enum per operation. Each has a predicate for errors that the
//! user can fix in the arguments or the configuration.

use std::io;
use std::path::PathBuf;

use haft_context::ContextError;
use haft_engine::{OpenError, SchemaError};
use haft_model::{CatalogueError, ModelError};
use haft_permission::RulesError;
use haft_project::TrustError;
use haft_sandbox::HostError;
use haft_store::StoreError;

/// An error in the configuration, which the user can always fix.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration `{}`: {error}", file.display())]
    Unreadable { file: PathBuf, error: io::Error },
    /// The file cannot be written.
    #[error("cannot write `{}`: {error}", file.display())]
    Unwritable { file: PathBuf, error: io::Error },
    /// A value in the file is invalid.
    #[error("{}:{line}:{column}: {problem}", file.display())]
    InFile {
        file: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The column, from 1, in characters.
        column: usize,
        /// A description of the problem with the value.
        problem: String,
    },
    /// Several values in the file are invalid. Each has an error of its own.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<Self>),
    /// The value of an environment variable is invalid.
    #[error("environment variable `{name}`: {problem}")]
    InVariable {
        name: String,
        /// The problem with the value.
        problem: String,
    },
    /// A `--set` argument is invalid.
    #[error("`--set {set}`: {problem}")]
    InSet {
        /// The argument as the user wrote it.
        set: String,
        /// The problem with the argument.
        problem: String,
    },
    /// The text before the `=` of an assignment, such as a `--set` argument, is not a configuration
    /// key.
    #[error("`{0}` is not a configuration key")]
    NotAKey(String),
    /// A value of unknown origin is invalid.
    #[error("{0}")]
    Value(String),
    /// A permission rule cannot be parsed.
    #[error("{0}")]
    Rules(RulesError),
    /// The configuration cannot be written as TOML.
    #[error("{0}")]
    NotToml(toml::ser::Error),
}

/// The reason why a provider's key is not available. The user can always fix the problem.
#[derive(Debug, thiserror::Error)]
#[error("no key for provider `{provider}`: {problem}")]
pub struct KeyError {
    pub provider: String,
    /// The source of the key that was tried, and the reason why it failed.
    pub problem: String,
}

/// The reason why haft's folders or the project folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// None of the variables that locate haft's files is set.
    #[error(
        "neither `HAFT_HOME`, `{0}` nor `HOME` is set; set one so that haft knows where to keep its files"
    )]
    NoHome(&'static str),
    /// `HAFT_HOME` cannot be made absolute.
    #[error(transparent)]
    Relative(io::Error),
    /// The project folder cannot be read.
    #[error("cannot read the project folder `{}`: {error}", folder.display())]
    Project {
        /// The folder as the user wrote it.
        folder: PathBuf,
        error: io::Error,
    },
}

impl FolderError {
    /// True if the user can fix the error in the arguments or the environment.
    pub fn is_usage_error(&self) -> bool {
        match self {
            Self::NoHome(_) | Self::Project { .. } => true,
            Self::Relative(_) => false,
        }
    }
}

/// The reason why the sandbox of commands cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxSetupError {
    /// A path in the configuration is neither absolute nor below the home folder.
    #[error("`[sandbox] {key}` names `{}`; give an absolute path, or one that begins with `~/`", path.display())]
    Relative { key: &'static str, path: PathBuf },
    /// A writable path in the configuration does not exist.
    #[error("`[sandbox] writable` names `{}`: {error}", path.display())]
    Missing { path: PathBuf, error: io::Error },
    /// A host in the configuration is invalid.
    #[error("{0}")]
    Hosts(HostError),
    /// A folder or the proxy could not be created.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SandboxSetupError {
    /// True if the user can fix the error in the configuration.
    pub fn is_usage_error(&self) -> bool {
        match self {
            Self::Relative { .. } | Self::Missing { .. } | Self::Hosts(_) => true,
            Self::Io(_) => false,
        }
    }
}

/// The reason why an agent cannot be built or a session cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The project folder or one of haft's own folders cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The model's key is not available.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The model is unknown.
    #[error("{0}")]
    Model(CatalogueError),
    /// A model of a role is unknown.
    #[error("`model_roles.{role}`: {error}")]
    RoleModel {
        /// The key of the role.
        role: &'static str,
        error: CatalogueError,
    },
    /// The model cannot be used as it is declared.
    #[error("{0}")]
    Client(ModelError),
    #[error("no model is chosen; give one as `provider/model`")]
    NoModel,
    /// The policy of a trusted project cannot be read, so its prohibitions cannot be applied.
    #[error(
        "the project's own rules cannot be applied, so nothing is run: {0}; correct it, or revoke the trust in the folder"
    )]
    Policy(String),
    #[error("{0}")]
    Trust(TrustError),
    /// A prompt file in the configuration cannot be read.
    #[error("cannot read the prompt `{}`: {error}", file.display())]
    Prompt { file: PathBuf, error: io::Error },
    /// No agent has the name that the user chose for the role.
    #[error("there is no agent `{name}`; there are: {there}")]
    UnknownAgent {
        /// The name as the user wrote it.
        name: String,
        /// The names of the existing agents.
        there: String,
    },
    /// The agent file contains no role.
    #[error("the agent `{name}` has no role definition; write one in `{file}`")]
    NoRole {
        name: String,
        /// The path of the agent's file.
        file: String,
    },
    /// A conversation server is configured, but this build does not support it.
    #[error(
        "`store.url` names a server, but this haft was built without it; build it with `--features postgres`"
    )]
    NoServer,
    /// The schema of the final answer is invalid.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The sandbox cannot be set up.
    #[error(transparent)]
    Sandbox(#[from] SandboxSetupError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The conversation cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// A folder could not be created.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SetupError {
    /// True if the user can fix the error in the arguments or the configuration. For a wrong choice
    /// of a conversation, [`Self::is_choice_error`] is true instead.
    pub fn is_usage_error(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Key(_)
            | Self::Model(_)
            | Self::RoleModel { .. }
            | Self::Client(_)
            | Self::NoModel
            | Self::Policy(_)
            | Self::Trust(_)
            | Self::Prompt { .. }
            | Self::UnknownAgent { .. }
            | Self::NoRole { .. }
            | Self::NoServer
            | Self::Schema(_) => true,
            Self::Folder(error) => error.is_usage_error(),
            Self::Sandbox(error) => error.is_usage_error(),
            Self::Store(_) | Self::Open(_) | Self::Io(_) => false,
        }
    }

    /// True if the chosen conversation, tools or policy do not exist.
    pub fn is_choice_error(&self) -> bool {
        let Self::Open(error) = self else {
            return false;
        };
        match error {
            OpenError::NothingToContinue
            | OpenError::Unknown(_)
            | OpenError::Taken(_)
            | OpenError::Ambiguous { .. }
            | OpenError::UnknownTool(_)
            | OpenError::Context(ContextError::SafeZone(_)) => true,
            OpenError::Context(_) | OpenError::Store(_) => false,
        }
    }
}
