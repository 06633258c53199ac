//! The interface to the binary for front ends that are driven over a protocol: it opens sessions,
//! lists conversations, and lists the models, modes and commands to choose from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{Approver, Contribution, ConversationChoice, Leftovers, Session, TaskSettings};
use haft_types::{ConversationId, Message, PermissionMode, Timestamp};
use tokio_util::sync::CancellationToken;

/// The reason why an operation of the host failed, with a message for users.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// No model is configured yet.
    #[error("{0}")]
    NoModel(String),
    /// The conversation does not exist.
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Failed(String),
}

/// The settings with which a session is opened.
#[derive(Clone)]
pub struct OpenRequest {
    /// The session's working folder.
    pub cwd: PathBuf,
    /// Folders outside the project that the session may use.
    pub added_folders: Vec<PathBuf>,
    /// The conversation to open or create.
    pub which: ConversationChoice,
    /// The model that replaces the configured one, as `provider/model`.
    pub model: Option<String>,
    /// The permission mode that replaces the configured one.
    pub mode: Option<PermissionMode>,
    /// The MCP servers for this session alone, each as JSON in the format of `.mcp.json`.
    pub servers: Vec<String>,
    /// The contribution of the client to the session: observers, and access to files that the
    /// client's user has changed but not saved.
    pub client: Contribution,
    /// The limits of each run, and the approver of its calls. By default, background tasks continue
    /// between turns.
    pub task: TaskSettings,
}

impl OpenRequest {
    /// Returns a request for a session with the configured settings.
    pub fn new(cwd: PathBuf, which: ConversationChoice) -> Self {
        Self {
            cwd,
            added_folders: Vec::new(),
            which,
            model: None,
            mode: None,
            servers: Vec::new(),
            client: Contribution::default(),
            task: TaskSettings {
                leftovers: Leftovers::Keep,
                ..TaskSettings::default()
            },
        }
    }
}

/// An entry in a list of stored conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedConversation {
    pub id: ConversationId,
    /// The folder of the conversation's project.
    pub folder: PathBuf,
    pub name: String,
    /// The time of the conversation's newest message.
    pub updated_at: Timestamp,
    /// The number of messages in the conversation.
    pub messages: u64,
}

/// A prompt that users can call by name, such as a command or a prompt of an MCP server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedCommand {
    /// The name of the command, without the slash.
    pub name: String,
    pub description: String,
}

/// A prompt as the user typed it, before commands, mentions and inline command lines are expanded.
pub struct WrittenPrompt<'a> {
    /// The working folder of the session.
    pub cwd: &'a Path,
    /// The text of the prompt, as the user typed it.
    pub text: String,
    /// The permission mode in which inline command lines run.
    pub mode: PermissionMode,
    /// The approver that is asked before inline command lines run, if they need an approval.
    pub approver: Option<Arc<dyn Approver>>,
    /// The token with which the expansion is canceled.
    pub cancel: CancellationToken,
}

/// The operations that a protocol front end needs from the program, such as opening sessions.
#[async_trait(?Send)]
pub trait Host: Send + Sync {
    fn version(&self) -> &'static str;

    /// Reads the configuration again. The new settings apply to sessions that are opened
    /// afterwards.
    fn reload_config(&self) -> Result<(), HostError>;

    /// Returns the configured model, as `provider/model`.
    fn default_model(&self) -> Result<String, HostError>;

    fn default_mode(&self) -> PermissionMode;

    /// Returns the names of the models that can be used, as `provider/model`.
    fn available_models(&self) -> Vec<String>;

    /// Returns an unused id for a conversation that is about to be created.
    fn new_conversation_id(&self) -> ConversationId;

    async fn open_session(&self, request: OpenRequest) -> Result<Session, HostError>;

    /// Returns the conversations of the project that contains `cwd`, or of all projects, newest
    /// first.
    async fn list_conversations(
        &self,
        cwd: Option<&Path>,
    ) -> Result<Vec<ListedConversation>, HostError>;

    /// Returns the folder and the messages of a stored conversation without opening it.
    async fn read_conversation(
        &self,
        id: &ConversationId,
    ) -> Result<(PathBuf, Vec<Message>), HostError>;

    /// Moves a stored conversation to the trash. A missing conversation is not an error.
    async fn delete_conversation(&self, id: &ConversationId) -> Result<(), HostError>;

    /// Returns the name of the shell that executes command lines, which are passed to it with `-c`.
    fn shell(&self) -> &'static str;

    /// Returns the names of the environment variables of this process that commands must not
    /// inherit, which are those that `given` does not contain.
    fn withheld_variables(&self, given: &[(String, String)]) -> Vec<String>;

    /// Returns the commands and prompts that can be called in the folder `cwd`. Starts no MCP
    /// server.
    fn list_commands(&self, cwd: &Path) -> Vec<OfferedCommand>;

    /// Replaces the commands, server prompts and resources that a prompt mentions by their content.
    async fn expand_prompt(&self, prompt: WrittenPrompt<'_>) -> Result<String, HostError>;

    /// True if the session's last turn was interrupted.
    fn was_interrupted(&self, session: &Session) -> bool;

    /// Adds allow rules to the user's configuration.
    fn save_rules(&self, rules: &[String]) -> Result<(), String>;
}
