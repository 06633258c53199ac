//! Why an agent cannot be set up, one enum per operation. Each can say whether its user can mend it
//! in how the program was called or configured.

use std::io;
use std::path::PathBuf;

use haft_context::ContextError;
use haft_engine::{OpenError, SchemaError};
use haft_model::{CatalogueError, ModelError};
use haft_permission::RulesError;
use haft_project::TrustError;
use haft_sandbox::HostError;
use haft_store::StoreError;

/// What is wrong with the configuration. Always for the user to mend.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read the configuration `{}`: {error}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The file cannot be written.
    #[error("cannot write `{}`: {error}", file.display())]
    Unwritable {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A value of the file does not fit, with its line and column.
    #[error("{}:{line}:{column}: {problem}", file.display())]
    InFile {
        /// The file.
        file: PathBuf,
        /// Counted from one.
        line: usize,
        /// Counted from one, in characters.
        column: usize,
        /// What is wrong there.
        problem: String,
    },
    /// Several values of the file do not fit, one line each.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<Self>),
    /// A value of an environment variable does not fit.
    #[error("environment variable `{name}`: {problem}")]
    InVariable {
        /// Its name.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A `KEY=VALUE` does not fit.
    #[error("`--set {set}`: {problem}")]
    InSet {
        /// As it was given.
        set: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Something that is no key was given a value.
    #[error("`{0}` is not a configuration key")]
    NotAKey(String),
    /// A value does not fit, and nobody knows where it came from.
    #[error("{0}")]
    Value(String),
    /// A permission rule cannot be read.
    #[error("{0}")]
    Rules(RulesError),
    /// The configuration cannot be written as TOML.
    #[error("{0}")]
    NotToml(toml::ser::Error),
}

/// Why a provider's key is not at hand. Always for the user to mend.
#[derive(Debug, thiserror::Error)]
#[error("no key for provider `{provider}`: {problem}")]
pub struct KeyError {
    /// The provider.
    pub provider: String,
    /// Where was looked, and what was found there.
    pub problem: String,
}

/// Why folders of haft's own or of the project cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Nothing says where haft keeps its files.
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
        /// As it was given.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
}

impl FolderError {
    /// Whether the user can mend it in how the program was called.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::NoHome(_) | Self::Project { .. } => true,
            Self::Relative(_) => false,
        }
    }
}

/// Why the sandbox of commands cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum SandboxSetupError {
    /// A path of the configuration is neither absolute nor below home.
    #[error("`[sandbox] {key}` names `{}`; give an absolute path, or one that begins with `~/`", path.display())]
    Relative {
        /// The key.
        key: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A path that is to be writable is not there.
    #[error("`[sandbox] writable` names `{}`: {error}", path.display())]
    Missing {
        /// The path.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A host of the configuration cannot be one.
    #[error("{0}")]
    Hosts(HostError),
    /// A folder or the proxy could not be made.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SandboxSetupError {
    /// Whether the user can mend it in the configuration.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Relative { .. } | Self::Missing { .. } | Self::Hosts(_) => true,
            Self::Io(_) => false,
        }
    }
}

/// Why an agent cannot be made, or a session not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The model's key is not at hand.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The model is not known.
    #[error("{0}")]
    Model(CatalogueError),
    /// The model cannot be asked as it is declared.
    #[error("{0}")]
    Client(ModelError),
    /// No model was chosen.
    #[error("no model is chosen; give one as `provider/model`")]
    NoModel,
    /// What a trusted project forbids cannot be read, so nobody knows what it is.
    #[error(
        "the project's own rules cannot be applied, so nothing is run: {0}; correct it, or revoke the trust in the folder"
    )]
    Policy(String),
    /// The list of trusted folders cannot be read.
    #[error("{0}")]
    Trust(TrustError),
    /// A prompt of the configuration cannot be read.
    #[error("cannot read the prompt `{}`: {error}", file.display())]
    Prompt {
        /// Its file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// There is no agent of this name to take the role of.
    #[error("there is no agent `{name}`; there are: {there}")]
    UnknownAgent {
        /// The name.
        name: String,
        /// Those there are.
        there: String,
    },
    /// The agent has no role to take.
    #[error("the agent `{name}` has no role definition; write one in `{file}`")]
    NoRole {
        /// Its name.
        name: String,
        /// Its file.
        file: String,
    },
    /// A server of conversations is configured, and nothing in this build speaks to it.
    #[error(
        "`store.url` names a server, but this haft was built without it; build it with `--features postgres`"
    )]
    NoServer,
    /// What the final answer must look like is no schema.
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
    /// A folder could not be made.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SetupError {
    /// Whether the user can mend it in how the program was called or configured. What is wrong with
    /// the choice of a conversation is told by [`Self::is_choice`].
    pub fn is_usage(&self) -> bool {
        match self {
            Self::Config(_)
            | Self::Key(_)
            | Self::Model(_)
            | Self::Client(_)
            | Self::NoModel
            | Self::Policy(_)
            | Self::Trust(_)
            | Self::Prompt { .. }
            | Self::UnknownAgent { .. }
            | Self::NoRole { .. }
            | Self::NoServer
            | Self::Schema(_) => true,
            Self::Folder(error) => error.is_usage(),
            Self::Sandbox(error) => error.is_usage(),
            Self::Store(_) | Self::Open(_) | Self::Io(_) => false,
        }
    }

    /// Whether the conversation, the tools or the policy that were chosen are not there.
    pub fn is_choice(&self) -> bool {
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
