//! What the binary does for whoever drives it over a protocol: it opens sessions, lists
//! conversations, and knows what can be chosen.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{Approver, Contribution, Leftovers, Session, TaskSettings, Which};
use haft_types::{ConversationId, Message, PermissionMode, Timestamp};
use tokio_util::sync::CancellationToken;

/// Something that could not be done, in a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostError {
    /// Nobody has chosen a model yet.
    #[error("{0}")]
    NoModel(String),
    /// There is no such conversation.
    #[error("{0}")]
    NotFound(String),
    /// Anything else.
    #[error("{0}")]
    Failed(String),
}

/// What a session is opened with.
#[derive(Clone)]
pub struct OpenRequest {
    /// The folder it works in.
    pub cwd: PathBuf,
    /// Folders beside the project that it may use.
    pub added_folders: Vec<PathBuf>,
    /// The conversation.
    pub which: Which,
    /// Another model than the configured one, as `provider/model`.
    pub model: Option<String>,
    /// Another mode than the configured one.
    pub mode: Option<PermissionMode>,
    /// MCP servers for this session alone, each as JSON in the shape of `.mcp.json`.
    pub servers: Vec<String>,
    /// The observers of the client, and the files that its user has open and not saved.
    pub client: Contribution,
    /// The limits of a run and the approver of its calls. By default, background tasks go on
    /// between turns.
    pub task: TaskSettings,
}

impl OpenRequest {
    /// As configured, in this folder.
    pub fn new(cwd: PathBuf, which: Which) -> Self {
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

/// A conversation of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedConversation {
    /// Its id.
    pub id: ConversationId,
    /// The folder of its project.
    pub folder: PathBuf,
    /// Its name.
    pub name: String,
    /// When something was last said in it.
    pub updated_at: Timestamp,
    /// How many messages it has.
    pub messages: u64,
}

/// A prompt that is called by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedCommand {
    /// The name, without the slash.
    pub name: String,
    /// What it does.
    pub description: String,
}

/// A prompt as its user wrote it, to be made into what the model reads.
pub struct WrittenPrompt<'a> {
    /// The folder of its session.
    pub cwd: &'a Path,
    /// What was written.
    pub text: String,
    /// How much may happen without asking.
    pub mode: PermissionMode,
    /// Who is asked where it runs a command line.
    pub approver: Option<Arc<dyn Approver>>,
    /// Fires when nobody waits for it any more.
    pub cancel: CancellationToken,
}

/// The binary, as far as a protocol needs it.
#[async_trait(?Send)]
pub trait Host: Send + Sync {
    /// The version of haft.
    fn version(&self) -> &'static str;

    /// Reads the configuration again, for sessions that are yet to be opened.
    fn reload(&self) -> Result<(), HostError>;

    /// The model that is configured, as `provider/model`.
    fn model(&self) -> Result<String, HostError>;

    /// The mode that is configured.
    fn mode(&self) -> PermissionMode;

    /// The models that can be used, as `provider/model`.
    fn models(&self) -> Vec<String>;

    /// An id for a conversation that is yet to be opened.
    fn fresh_id(&self) -> ConversationId;

    /// Opens a session.
    async fn open(&self, request: OpenRequest) -> Result<Session, HostError>;

    /// The conversations of the project around this folder, or of all, the newest first.
    async fn list(&self, cwd: Option<&Path>) -> Result<Vec<ListedConversation>, HostError>;

    /// The folder and the messages of a stored conversation; it is not opened.
    async fn stored(&self, id: &ConversationId) -> Result<(PathBuf, Vec<Message>), HostError>;

    /// Puts a stored conversation into the trash; one that is not there is gone already.
    async fn delete(&self, id: &ConversationId) -> Result<(), HostError>;

    /// The shell that command lines run under, with `-c`.
    fn shell(&self) -> &'static str;

    /// The variables of this process that commands do not get, given those that they get.
    fn withheld_variables(&self, given: &[(String, String)]) -> Vec<String>;

    /// The prompts that can be called in this folder; nothing is started.
    fn commands(&self, cwd: &Path) -> Vec<OfferedCommand>;

    /// The prompt with what it calls put in its place: a command, a prompt of a server, resources.
    async fn in_full(&self, prompt: WrittenPrompt<'_>) -> Result<String, HostError>;

    /// Whether the last turn of a session was cut off before its end.
    fn is_cut_off(&self, session: &Session) -> bool;

    /// Writes rules that allow where the user can read them.
    fn remember(&self, rules: &[String]) -> Result<(), String>;
}
