//! The host of sessions that a protocol drives: opens them with this user's configuration, lists
//! conversations, and lists the models, modes and commands to choose from.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;
use haft_agent::config::Config;
use haft_agent::{
    Agent, Approver, Contribution, ConversationChoice, Leftovers, OpenError, Places, Project,
    PromptSettings, RandomIds, RunPlan, Session, SetupError, TaskSettings, TrustList,
    find_knowledge_and_trust,
};
use haft_store::{ConversationRow, ConversationScope, Store, StoreError};
use haft_types::{ConversationId, IdSource as _, Message, PermissionMode, Timestamp};
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
    /// The settings of each run, such as its limits and the approver of its calls. By default,
    /// background tasks continue between turns.
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

/// The folders of a user and the configuration that was loaded from them.
#[derive(Clone)]
pub struct HostConfig {
    pub places: Places,
    pub config: Config,
}

/// The parts of the running program that a [`Host`] uses: the configuration sections and extensions
/// of its build, and its commands and sentences.
#[async_trait(?Send)]
pub trait Program: Send + Sync {
    /// Loads the configuration. The error is in the user's language.
    fn load_config(&self) -> Result<HostConfig, String>;

    /// Builds an agent with the extensions of the build and the parts of a client: its
    /// contribution, and MCP servers, each as JSON in the shape of `.mcp.json`.
    fn build_agent(&self, loaded: &HostConfig, client: Contribution, servers: Vec<String>)
    -> Agent;

    /// Returns the commands that are not files.
    fn built_in_commands(&self) -> Vec<OfferedCommand>;

    /// Expands the commands, server prompts and resources that a prompt mentions.
    async fn expand_prompt(
        &self,
        loaded: &HostConfig,
        prompt: WrittenPrompt<'_>,
    ) -> Result<String, String>;

    /// Adds allow rules to the user's configuration.
    fn save_rules(&self, places: &Places, rules: &[String]) -> Result<(), String>;

    /// Returns the sentence for users without a model.
    fn no_model_text(&self) -> String;

    /// Describes why a session cannot be opened, with advice.
    fn describe_error(&self, error: SetupError) -> String;
}

/// Opens sessions that another program drives, with this user's configuration.
pub struct Host {
    program: Box<dyn Program>,
    loaded: RwLock<Arc<HostConfig>>,
    /// True while `loaded` has defaults, because the user's configuration cannot be loaded.
    has_defaults: AtomicBool,
    model: Option<String>,
    mode: Option<PermissionMode>,
}

impl Host {
    /// Creates a host with the model and the mode that the command line names.
    pub fn new(
        program: Box<dyn Program>,
        loaded: HostConfig,
        model: Option<String>,
        mode: Option<PermissionMode>,
    ) -> Self {
        Self {
            program,
            loaded: RwLock::new(Arc::new(loaded)),
            has_defaults: AtomicBool::new(false),
            model,
            mode,
        }
    }

    /// Marks the configuration as defaults that stand in for one that cannot be loaded. Clients
    /// receive the error until it can be loaded.
    #[must_use]
    pub fn with_default_config(self) -> Self {
        self.has_defaults.store(true, Ordering::Relaxed);
        self
    }

    /// Returns the most recently loaded configuration.
    pub fn loaded(&self) -> Arc<HostConfig> {
        Arc::clone(&self.loaded.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reads the configuration again, for sessions that are opened later.
    pub(crate) fn reload_config(&self) -> Result<(), HostError> {
        let loaded = self.program.load_config().map_err(HostError::Failed)?;
        *self.loaded.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(loaded);
        self.has_defaults.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Reads the configuration if it has never been read without an error.
    pub(crate) fn require_config(&self) -> Result<(), HostError> {
        if self.has_defaults.load(Ordering::Relaxed) {
            self.reload_config()
        } else {
            Ok(())
        }
    }

    /// Returns the configured model, as `provider/model`.
    pub(crate) fn default_model(&self) -> Result<String, HostError> {
        let model = self
            .model
            .clone()
            .or_else(|| haft_agent::configured_model(&self.loaded().config));
        model.ok_or_else(|| HostError::NoModel(self.program.no_model_text()))
    }

    /// Returns the configured mode: the mode of sessions that name none, and the most permissive one
    /// that another program can choose.
    pub fn default_mode(&self) -> PermissionMode {
        self.mode
            .unwrap_or_else(|| self.loaded().config.permissions.mode)
    }

    /// Returns the models that can be used, as `provider/model`.
    pub fn available_models(&self) -> Vec<String> {
        let loaded = self.loaded();
        let usable = haft_agent::list_usable_models(&loaded.places.environment, &loaded.config);
        let usable = usable.unwrap_or_default();
        usable
            .into_iter()
            .map(|declared| declared.spec.full_name())
            .collect()
    }

    fn find_project(&self, cwd: &Path) -> Result<Project, HostError> {
        Project::find(&self.loaded().places.environment, Some(cwd)).map_err(to_host_error)
    }

    /// Returns true if the user trusts the project that contains `cwd`.
    pub(crate) fn is_trusted(&self, cwd: &Path) -> bool {
        let trust_file = self.loaded().places.trust_file();
        self.find_project(cwd).is_ok_and(|project| {
            TrustList::at_path(trust_file)
                .trust_state(&project.root)
                .is_ok_and(|state| state.is_trusted())
        })
    }

    fn open_store(&self) -> Result<Arc<dyn Store>, HostError> {
        let loaded = self.loaded();
        self.program
            .build_agent(&loaded, Contribution::default(), Vec::new())
            .open_store()
            .map_err(to_host_error)
    }

    fn build_plan(&self, loaded: &HostConfig, request: &OpenRequest) -> Result<RunPlan, HostError> {
        let project = self.find_project(&request.cwd)?;
        let model = request
            .model
            .clone()
            .map_or_else(|| self.default_model(), Ok)?;
        let roles = loaded.config.roles.read().map_err(to_host_error)?;
        Ok(RunPlan {
            prompt: PromptSettings {
                roles,
                ..PromptSettings::default()
            },
            mode: request.mode.unwrap_or_else(|| self.default_mode()),
            added_folders: request.added_folders.clone(),
            task: request.task.clone(),
            ..RunPlan::from_config(&loaded.config, model, project, request.which.clone())
        })
    }

    pub(crate) async fn open_session(&self, request: OpenRequest) -> Result<Session, HostError> {
        let loaded = self.loaded();
        let plan = self.build_plan(&loaded, &request)?;
        let agent = self
            .program
            .build_agent(&loaded, request.client, request.servers);
        loaded.places.log_configuration();
        haft_changes::clean_up_killed_merges(&loaded.places.worktrees_folder());
        Box::pin(agent.open(plan))
            .await
            .map_err(|error| match error {
                SetupError::Open(OpenError::Unknown(_)) => HostError::NotFound(error.to_string()),
                other => HostError::Failed(self.program.describe_error(other)),
            })
    }

    /// Returns the conversations of the project that contains `cwd`, or of all projects, newest
    /// first.
    pub(crate) async fn list_conversations(
        &self,
        cwd: Option<&Path>,
    ) -> Result<Vec<ListedConversation>, HostError> {
        let namespace = cwd
            .map(|cwd| self.find_project(cwd))
            .transpose()?
            .map(|project| project.namespace());
        let scope = namespace
            .as_deref()
            .map_or(ConversationScope::Everywhere, ConversationScope::Namespace);
        let store = self.open_store()?;
        let mut listed = store.list(scope).await.map_err(to_host_error)?;
        listed.sort_by_key(|one| std::cmp::Reverse(one.updated_at));
        let row = |one: ConversationRow| ListedConversation {
            id: one.id,
            folder: one.namespace.into(),
            name: one.name,
            updated_at: one.updated_at,
            messages: one.messages,
        };
        Ok(listed.into_iter().map(row).collect())
    }

    /// Returns the folder and the messages of a stored conversation without opening it.
    pub(crate) async fn read_conversation(
        &self,
        id: &ConversationId,
    ) -> Result<(PathBuf, Vec<Message>), HostError> {
        let store = self.open_store()?;
        let listed = store
            .list(ConversationScope::Everywhere)
            .await
            .map_err(to_host_error)?;
        let row = listed.into_iter().find(|one| one.id == *id);
        let row = row.ok_or_else(|| {
            HostError::NotFound(OpenError::Unknown(id.as_str().to_owned()).to_string())
        })?;
        Ok((
            row.namespace.into(),
            store.messages(id).await.map_err(to_host_error)?,
        ))
    }

    /// Moves a stored conversation to the trash. A missing conversation is not an error.
    pub(crate) async fn delete_conversation(&self, id: &ConversationId) -> Result<(), HostError> {
        match self.open_store()?.delete(id).await {
            Ok(()) | Err(StoreError::UnknownConversation { .. }) => Ok(()),
            Err(error) => Err(to_host_error(error)),
        }
    }

    /// Returns the environment variables of this process that commands must not inherit: all that
    /// are not in `given`.
    pub(crate) fn withheld_variables(&self, given: &[(String, String)]) -> Vec<String> {
        let loaded = self.loaded();
        let variables = loaded.places.environment.variables();
        variables
            .filter_map(|(name, _)| name.into_string().ok())
            .filter(|name| !given.iter().any(|(known, _)| known == name))
            .collect()
    }

    /// Returns the prompts that can be called in this folder, without starting any server.
    pub(crate) fn list_commands(&self, cwd: &Path) -> Vec<OfferedCommand> {
        let Ok(project) = self.find_project(cwd) else {
            return Vec::new();
        };
        let loaded = self.loaded();
        let Ok((paths, _)) = find_knowledge_and_trust(&loaded.places, &project) else {
            return Vec::new();
        };
        // Problems with a file are reported when it is called, and by `haft commands list`.
        let own = haft_project::commands::load_commands(&paths, &mut Vec::new());
        let agent = self
            .program
            .build_agent(&loaded, Contribution::default(), Vec::new());
        let of_servers = agent
            .prompt_sources(&project)
            .map(|sources| sources.prompts())
            .unwrap_or_default();
        let mut built_in = self.program.built_in_commands();
        built_in.retain(|command| own.get(&command.name).is_none());
        let own = own.items.into_iter().map(|one| OfferedCommand {
            name: one.name,
            description: one.description,
        });
        let of_servers = of_servers.into_iter().map(|one| OfferedCommand {
            name: one.name,
            description: one.description,
        });
        own.chain(built_in).chain(of_servers).collect()
    }

    /// Expands the commands, server prompts and resources that a prompt mentions.
    pub(crate) async fn expand_prompt(
        &self,
        prompt: WrittenPrompt<'_>,
    ) -> Result<String, HostError> {
        let called = prompt.text.starts_with('/');
        let mentions = prompt.text.contains('@');
        if !called && !mentions {
            return Ok(prompt.text);
        }
        let loaded = self.loaded();
        self.program
            .expand_prompt(&loaded, prompt)
            .await
            .map_err(HostError::Failed)
    }

    /// Adds allow rules to the user's configuration.
    pub(crate) fn save_rules(&self, rules: &[String]) -> Result<(), String> {
        self.program.save_rules(&self.loaded().places, rules)
    }
}

/// Returns an id for a new conversation.
pub(crate) fn new_conversation_id() -> ConversationId {
    ConversationId::from(RandomIds.new_uuid())
}

fn to_host_error(error: impl std::fmt::Display) -> HostError {
    HostError::Failed(error.to_string())
}
