//! A session in a folder of its own, with a scripted model, a clock that is moved by hand and ids
//! in sequence.

use std::error::Error;
use std::sync::Arc;

use haft_context::Policy;
use haft_engine::hub::Hub;
use haft_engine::turn::TurnLimits;
use haft_engine::{
    ConversationChoice, DecisionState, KnowledgeSettings, Leftovers, MAIN_AGENT, ModelOpener,
    ModelServices, ProjectRules, PromptSettings, SafetySettings, Services, Session, SessionConfig,
    SessionFolders, SharedBudget, SharedServices, SideModels, TaskSettings, ToolHelp, ToolSettings,
};
use haft_model::{Catalogue, Client, O200k, RetryConfig};
use haft_permission::Permissions;
use haft_project::KnowledgePaths;
use haft_project::external::HelpCache;
use haft_project::library::Libraries;
use haft_sandbox::{OwnProgram, Supervisor};
use haft_store::{NewConversation, SqliteStore, Store, StoreConfig};
use haft_testkit::support::{FakeClock, SequentialIds};
use haft_testkit::{Script, ScriptedServer};
use haft_text::Masker;
use haft_tool::{NoChangeRecords, Workspace};
use haft_tools::Running;
use haft_types::{Api, Clock, ConversationId, IdSource, Message, PermissionMode};
use tempfile::TempDir;

/// The conversation of a desk.
pub(crate) const CONVERSATION: &str = "c";

/// Where sessions are opened.
pub(crate) struct Desk {
    /// The folder tools work in.
    pub(crate) folder: TempDir,
    pub(crate) server: ScriptedServer,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<FakeClock>,
    ids: Arc<dyn IdSource>,
}

impl Desk {
    /// A desk with a conversation that begins with these messages.
    pub(crate) async fn new(
        script: Script,
        messages: Vec<Message>,
    ) -> Result<Self, Box<dyn Error>> {
        let folder = tempfile::tempdir()?;
        let clock = Arc::new(FakeClock::default());
        if let Some(last) = messages.last() {
            let behind = last.created_at.duration_since(clock.now());
            clock.advance(behind.try_into().unwrap_or_default());
        }
        let file = folder.path().join("conversations.db");
        let told: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let store: Arc<dyn Store> =
            Arc::new(SqliteStore::open(&file, &StoreConfig::default(), told)?);
        let new = NewConversation {
            messages,
            ..NewConversation::new(ConversationId::new(CONVERSATION), "p")
        };
        store.create(new).await?;
        let server = ScriptedServer::start(script).await?;
        Ok(Self {
            folder,
            server,
            store,
            clock,
            ids: Arc::new(SequentialIds::starting_at(0x0100_0000)),
        })
    }

    /// Opens the conversation. `model` is what a `[models]` entry says of the model.
    pub(crate) async fn open(
        &self,
        policy: Policy,
        model: &str,
    ) -> Result<Session, Box<dyn Error>> {
        let url = self.server.base_url(Api::Anthropic);
        let providers = toml::from_str(&format!(
            "mock = {{ api = 'anthropic', base_url = '{url}' }}"
        ))?;
        let models = toml::from_str(&format!("'mock/m' = {{ {model} }}"))?;
        let declared = Catalogue::new(providers, models)?.resolve("mock/m")?;
        let spec = declared.spec.clone();
        let retry = RetryConfig {
            attempts: 1,
            ..RetryConfig::default()
        };
        let at = |name: &str| self.folder.path().join(name);
        let clock: Arc<dyn Clock> = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let supervisor = Arc::new(Supervisor::new(OwnProgram::open_running()?));
        let shared = SharedServices {
            store: Arc::clone(&self.store),
            changes: Arc::new(NoChangeRecords),
            copies: None,
            counter: Arc::new(O200k),
            clock,
            ids: Arc::clone(&self.ids),
            opener: ModelOpener::new(|name| Err(format!("there is no model `{name}`"))),
            hub: Arc::new(Hub::with_groups([])),
            budget: SharedBudget::default(),
        };
        let services = Services {
            shared: Arc::new(shared),
            models: ModelServices {
                client: Client::new(declared, None, retry)?,
                fallbacks: [].into(),
                summarizers: SideModels::default(),
                describers: SideModels::default(),
                titlers: SideModels::default(),
            },
            running: Arc::new(Running::new(
                supervisor,
                haft_tools::LimitsConfig::default(),
            )),
        };
        let root = self.folder.path().to_owned();
        let cwd = self.folder.path().to_owned();
        let spill = at("spill");
        let journal = at("journal");
        let config = SessionConfig {
            agent: MAIN_AGENT.to_owned(),
            model: spec,
            policy,
            prompt: PromptSettings {
                rules: ProjectRules::Exclude,
                ..PromptSettings::default()
            },
            folders: SessionFolders {
                workspace: Workspace {
                    root: root.clone(),
                    extra: Vec::new(),
                    cwd: cwd.clone(),
                    spill,
                    journal,
                },
                private: Vec::new(),
                worktrees: at("worktrees"),
            },
            knowledge: KnowledgeSettings {
                paths: KnowledgePaths {
                    root,
                    cwd,
                    trusted: false,
                    user: at("user"),
                    home: None,
                },
                libraries: Libraries::in_folder(at("libraries")),
                tool_help: ToolHelp::new(HelpCache::in_folder(at("help")), None),
                notes: "p".into(),
                agents: Vec::new(),
            },
            tools: ToolSettings {
                offered: vec!["read_file".into(), "recall".into()],
                ..ToolSettings::default()
            },
            safety: SafetySettings {
                masker: Masker::default(),
                permissions: Permissions {
                    mode: PermissionMode::Yolo,
                    ..Permissions::default()
                },
                shared: Arc::new(DecisionState::new(PermissionMode::Yolo)),
            },
            task: TaskSettings {
                limits: TurnLimits::default(),
                goal: false,
                answer: None,
                leftovers: Leftovers::Keep,
                approver: None,
                attach_port: None,
            },
            callbacks: Vec::new(),
            namespace: "p".into(),
            notices: Vec::new(),
        };
        Ok(Box::pin(Session::open(
            config,
            services,
            ConversationChoice::Named(CONVERSATION.into()),
        ))
        .await?)
    }
}
