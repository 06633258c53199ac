//! An agent that can open sessions: folders, configuration, extensions, clock and ids in one value.
//!
//! Everything except the folders and the model has a default. A program that needs more than the
//! methods of [`Agent`] changes the [`Config`] or the [`RunPlan`].

use crate::build_help_settings;
use crate::find_knowledge_and_trust;
use std::path::PathBuf;
use std::sync::Arc;

use haft_engine::turn::TurnLimits;
use haft_engine::{
    Approver, Callback, ConversationChoice, Notice, PromptSettings, RecordedRun, Services, Session,
    SessionConfig, TaskSettings, ToolHelp,
};
use haft_model::{Client, Declared, ModelConfig, ModelError, ProviderConfig, Secret};
use haft_project::external::HelpCache;
use haft_sandbox::Sandbox;
use haft_store::{Conversation, Store};
use haft_text::Masker;
use haft_tool::{CallObserver, ChangeRecords, NoChangeRecords, Tool};
use haft_tools::ProjectCopies;
use haft_types::{Clock, IdSource, Message, PermissionMode};

use crate::clock::{RandomIds, RecordedIds, WallClock};
use crate::config::Config;
use crate::error::SetupError;
use crate::extension::{Contribution, Extension};
use crate::own_programs::{configured_writable_folders, warn_of_replaceable_program};
use crate::places::Places;
use crate::plan::RunPlan;
use crate::project::Project;
use crate::prompts::PromptSources;
use crate::{cleanup, defaults_notice, help_sandbox, keys, models, sandbox, store, wiring};

/// Opens sessions. An agent contains everything that all of its sessions share.
#[derive(Clone)]
#[must_use]
pub struct Agent {
    pub(crate) places: Places,
    pub(crate) config: Config,
    pub(crate) extensions: Vec<Arc<dyn Extension>>,
    /// The tools, callbacks and other parts that the embedding program adds to each session.
    pub(crate) own: Contribution,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    /// The folder to work in; `None` for the working directory of the environment.
    project: Option<PathBuf>,
    /// The task settings that [`Self::plan`] copies into a plan.
    task: TaskSettings,
    pub(crate) masker_listener: Option<MaskerListener>,
    /// Opens models in place of the configured providers, for replays.
    pub(crate) model_source: Option<ModelSource>,
    pub(crate) changes: Arc<dyn ChangeRecords>,
    pub(crate) copies: Option<Arc<dyn ProjectCopies>>,
    attach_setup: Option<AttachSetup>,
}

/// A function that adds further front ends to the task settings of a session.
pub(crate) type AttachSetup = Arc<dyn Fn(&mut TaskSettings) + Send + Sync>;

/// A listener that is called with the masker of each session before the session is opened.
pub(crate) type MaskerListener = Arc<dyn Fn(&Masker) + Send + Sync>;

impl Agent {
    /// Creates an agent that uses `places` and `config`, with the real clock and random ids. Keys,
    /// proxies and other facts about the process come from the environment in `places`.
    pub fn new(places: Places, config: Config) -> Self {
        Self {
            places,
            config,
            extensions: Vec::new(),
            own: Contribution::default(),
            clock: Arc::new(WallClock),
            ids: Arc::new(RandomIds),
            project: None,
            task: TaskSettings::default(),
            masker_listener: None,
            model_source: None,
            changes: Arc::new(NoChangeRecords),
            copies: None,
            attach_setup: None,
        }
    }

    /// Sets the folder to work in, which must exist when a run is planned. Default: the working
    /// directory of the environment.
    pub fn project(self, folder: impl Into<PathBuf>) -> Self {
        Self {
            project: Some(folder.into()),
            ..self
        }
    }

    /// Sets the model, named as `provider/model`: a built-in model, or a model of a provider added
    /// by [`Self::with_provider`].
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.config.model = Some(name.into());
        self
    }

    /// Adds a provider of models to the built-in providers.
    pub fn with_provider(mut self, name: impl Into<String>, provider: ProviderConfig) -> Self {
        self.config.providers.insert(name.into(), provider);
        self
    }

    /// Declares the window, prices and cache of a model, named as `provider/model`.
    pub fn with_model_config(mut self, name: impl Into<String>, model: ModelConfig) -> Self {
        self.config.models.insert(name.into(), model);
        self
    }

    /// Sets the permission mode. Default: the mode of the configuration.
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.config.permissions.mode = mode;
        self
    }

    /// Sets the approver of tool calls. Without an approver, calls that need approval are refused.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.task.approver = Some(approver);
        self
    }

    /// Replaces the built-in role, which is that of a coding agent.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.config.roles.main = role.into();
        self
    }

    /// Sets the tools to offer, given as names, aliases, groups, profiles, `*` or `none`. Without
    /// this setting, the default set is offered.
    pub fn offer(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config.tools.offer = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the limits of a run. By default, a run has no limits.
    pub fn limits(mut self, limits: TurnLimits) -> Self {
        self.task.limits = limits;
        self
    }

    /// Adds a tool, after the built-in ones and those of extensions.
    pub fn with_tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.own.tools.push(tool);
        self
    }

    /// Adds a callback, which is called after the callbacks of extensions at each hook point.
    pub fn with_callback(mut self, callback: Arc<dyn Callback>) -> Self {
        self.own.callbacks.push(callback);
        self
    }

    /// Adds an observer, which sees every tool call before and after it runs.
    pub fn with_observer(mut self, observer: Arc<dyn CallObserver>) -> Self {
        self.own.observers.push(observer);
        self
    }

    /// Adds the tools, callbacks, observers and other parts that the embedding program contributes,
    /// as an extension would.
    pub fn with_contribution(mut self, own: Contribution) -> Self {
        self.own.append(own);
        self
    }

    /// Replaces the clock and the source of ids, for tests that compare whole requests.
    pub fn with_clock_and_ids(self, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        Self { clock, ids, ..self }
    }

    /// Adds an extension after the existing ones.
    pub fn with_extension(self, extension: Arc<dyn Extension>) -> Self {
        self.with_extensions([extension])
    }

    /// Adds extensions after the existing ones.
    pub fn with_extensions(
        mut self,
        extensions: impl IntoIterator<Item = Arc<dyn Extension>>,
    ) -> Self {
        self.extensions.extend(extensions);
        self
    }

    /// Sets a listener that receives the masker of each session before the session is opened. A log
    /// outside of the session needs it to mask secrets from files and extensions.
    pub fn with_masker_listener(self, listener: impl Fn(&Masker) + Send + Sync + 'static) -> Self {
        Self {
            masker_listener: Some(Arc::new(listener)),
            ..self
        }
    }

    /// Sets a function that is called with the task settings of each session before the session is
    /// opened. It can let further front ends attach to the session.
    pub fn with_attach_setup(
        self,
        set_up: impl Fn(&mut TaskSettings) + Send + Sync + 'static,
    ) -> Self {
        Self {
            attach_setup: Some(Arc::new(set_up)),
            ..self
        }
    }

    /// Sets the change records, in which the content of a file is saved before a tool call changes
    /// the file.
    pub fn with_change_records(self, changes: Arc<dyn ChangeRecords>) -> Self {
        Self { changes, ..self }
    }

    /// Sets the provider of project copies, for sub-agents that work in a copy.
    pub fn with_project_copies(self, copies: Arc<dyn ProjectCopies>) -> Self {
        Self {
            copies: Some(copies),
            ..self
        }
    }

    /// Returns the plan of a run in the conversation `which`, from the agent and its configuration.
    /// Callers may change the plan before opening it. Fails if the folder can't be read or the
    /// model is unknown. Opens and sends nothing.
    pub fn plan(&self, which: ConversationChoice) -> Result<RunPlan, SetupError> {
        let environment = &self.places.environment;
        let project = Project::find(environment, self.project.as_deref())?;
        let model = models::configured_model(&self.config).ok_or(SetupError::NoModel)?;
        models::resolve_model(environment, &self.config, &model)?;
        let plan = RunPlan::from_config(&self.config, model, project, which);
        Ok(RunPlan {
            prompt: PromptSettings {
                roles: self.config.roles.read()?,
                ..plan.prompt
            },
            task: self.task.clone(),
            ..plan
        })
    }

    /// Opens a new conversation with `task` as its title. The conversation is stored with its first
    /// message.
    pub async fn start(&self, task: &str) -> Result<Session, SetupError> {
        self.open(self.plan(ConversationChoice::New {
            title: task.to_owned(),
        })?)
        .await
    }

    /// Reopens the conversation with this id or name.
    pub async fn resume(&self, name: &str) -> Result<Session, SetupError> {
        self.open(self.plan(ConversationChoice::Named(name.to_owned()))?)
            .await
    }

    /// Opens the store of the user's conversations, for work without a session.
    pub fn open_store(&self) -> Result<Arc<dyn Store>, SetupError> {
        store::open_store(&self.places, &self.config, &self.extensions)
    }

    /// Opens the prompts and resources of the extensions, without starting a server.
    pub fn prompt_sources(&self, project: &Project) -> Result<PromptSources, SetupError> {
        PromptSources::collect_sources(&self.extensions, &self.places, &self.config, project)
    }

    /// Opens the session of a run.
    pub async fn open(&self, mut plan: RunPlan) -> Result<Session, SetupError> {
        if let Some(set_up) = &self.attach_setup {
            set_up(&mut plan.task);
        }
        let (session, services, which) = Box::pin(self.prepare_session(plan)).await?;
        Ok(Box::pin(Session::open(session, services, which)).await?)
    }

    /// Prepares the arguments of [`Session::open`], for callers that change them before opening the
    /// session.
    pub async fn prepare_session(
        &self,
        mut plan: RunPlan,
    ) -> Result<(SessionConfig, Services, ConversationChoice), SetupError> {
        // Preparing the masker in a thread takes less time than opening the store, which waits for
        // the disk.
        drop(std::thread::Builder::new().spawn(Masker::prepare_tables));
        let agent = self.with_project_restrictions(&mut plan, false)?;
        let Self { places, config, .. } = &*agent;
        places.restrict_access();
        cleanup::remove_old_outputs(
            &places.spill_folder(),
            WallClock.now().into(),
            config.limits.spill_days,
        );
        help_sandbox::remove_old_help(places);
        let store = store::open_store_with_backups(places, config, &agent.extensions)?;
        let which = plan.which.clone();
        let (declared, key, replaced) = agent.resolve_usable_model(&mut plan)?;
        if plan.task.limits.needs_price() && declared.spec.price.is_none() {
            return Err(SetupError::Client(ModelError::NoPrice(
                declared.spec.full_name(),
            )));
        }
        let projects = std::iter::once(&plan.project.root)
            .chain(&plan.added_folders)
            .cloned()
            .collect();
        let sandbox = agent.set_up_sandbox(&plan, projects).await?;
        let replaceable = warn_of_replaceable_program(&places.environment, &sandbox);
        let asking = build_help_settings(places, config, &plan.project);
        let (mut session, services) =
            wiring::prepare_session(&agent, plan, store, sandbox, declared, key)?;
        session.knowledge.tool_help =
            ToolHelp::new(HelpCache::in_folder(places.tool_help_folder()), asking);
        let removed = config.model_roles.sets_prune.then(|| Notice {
            code: "model_role",
            message:
                "`model_roles.prune` was removed because it never had an effect: delete the key"
                    .to_owned(),
            failed: false,
        });
        session.notices.extend(removed);
        session.notices.extend(
            replaced
                .into_iter()
                .chain(replaceable)
                .chain(defaults_notice::take_due_notices(places, config)),
        );
        session.notices.splice(
            0..0,
            wiring::recover_interrupted_changes(&session.folders.workspace.journal),
        );
        Ok((session, services, which))
    }

    /// Resolves the model of a plan and the key of that model. If the model cannot be used, returns
    /// the fallback model and a notice with the reason.
    fn resolve_usable_model(
        &self,
        plan: &mut RunPlan,
    ) -> Result<(Declared, Option<Secret>, Option<Notice>), SetupError> {
        let with_key = |name: &str| {
            let declared = models::resolve_model(&self.places.environment, &self.config, name)?;
            let key = self.find_model_key(&declared)?;
            Ok((declared, key))
        };
        let (error, fallback) = match (with_key(&plan.model), plan.fallback_model.take()) {
            (Ok((declared, key)), _) => return Ok((declared, key, None)),
            (Err(error), None) => return Err(error),
            (Err(error), Some(other)) => (error, other),
        };
        let message = format!(
            "the agent runs on `{fallback}`: `{}` cannot be used ({error})",
            plan.model
        );
        plan.model = fallback;
        let (declared, key) = with_key(&plan.model)?;
        Ok((
            declared,
            key,
            Some(Notice {
                code: "agent_model",
                message,
                failed: false,
            }),
        ))
    }

    /// Prepares the arguments of [`Session::open`] for the replay of a recorded run. Conversations
    /// are stored in `store`, models are opened by `replay.models` instead of their providers, and
    /// no hook runs.
    pub async fn prepare_replay(
        &self,
        mut plan: RunPlan,
        store: Arc<dyn Store>,
        replay: ReplaySetup,
    ) -> Result<(SessionConfig, Services), SetupError> {
        let trusted = replay.trusted;
        let mut agent = self.with_project_restrictions(&mut plan, trusted)?;
        agent.clock = Arc::clone(&replay.recorded) as _;
        agent.ids = Arc::new(RecordedIds(Arc::clone(&replay.recorded)));
        agent.model_source = Some(replay.models);
        let projects = match &replay.copy {
            Some(copy) => vec![copy.clone()],
            None => vec![plan.project.root.clone()],
        };
        let sandbox = agent.set_up_sandbox(&plan, projects).await?;
        let project = plan.project.clone();
        let (mut session, services) =
            wiring::prepare_session(&agent, plan, store, sandbox, replay.declared, None)?;
        session.callbacks.clear();
        session.notices.clear();
        session.knowledge.paths.trusted |= trusted;
        session.tools.replayed = Some(replay.recorded);
        if let Some(environment) = replay.environment {
            session.prompt.environment = environment;
        }
        if let Some(copy) = replay.copy {
            let workspace = &mut session.folders.workspace;
            let inner = project.cwd.strip_prefix(&project.root);
            workspace.cwd = inner.map_or_else(|_| copy.clone(), |inner| copy.join(inner));
            workspace.root = copy;
            workspace.spill.clone_from(&replay.outputs);
            workspace.journal = replay.outputs.join("journal");
        }
        Ok((session, services))
    }

    async fn set_up_sandbox(
        &self,
        plan: &RunPlan,
        projects: Vec<PathBuf>,
    ) -> Result<Sandbox, SetupError> {
        let confined = wiring::hide_denied_reads(&self.places, &self.config, plan)?;
        Ok(sandbox::set_up_sandbox(&self.places, &confined, plan.mode, projects).await?)
    }

    /// Opens a conversation that consists of these messages, to inspect the request that would be
    /// sent next.
    pub async fn open_for_inspection(
        &self,
        mut plan: RunPlan,
        store: Arc<dyn Store>,
        (conversation, messages): (Conversation, Vec<Message>),
        mode: InspectionMode,
    ) -> Result<Session, SetupError> {
        let agent = self.with_project_restrictions(&mut plan, mode == InspectionMode::AsTrusted)?;
        let declared =
            models::resolve_model(&agent.places.environment, &agent.config, &plan.model)?;
        let key = match mode {
            InspectionMode::ReadOnly | InspectionMode::AsTrusted => None,
            // Without a key, requests are sent without authentication.
            InspectionMode::WithModel => agent.find_model_key(&declared).unwrap_or_default(),
        };
        let sandbox = Sandbox::disabled("nothing is run");
        let (mut session, services) =
            wiring::prepare_session(&agent, plan, store, sandbox, declared, key)?;
        session.knowledge.paths.trusted |= mode == InspectionMode::AsTrusted;
        Ok(Box::pin(Session::open_read_only(
            session,
            services,
            conversation,
            messages,
        ))
        .await?)
    }

    /// Returns a copy of the agent with the restrictions that extensions apply to this run. A
    /// trusted project may restrict the run, regardless of the caller.
    fn with_project_restrictions(
        &self,
        plan: &mut RunPlan,
        as_trusted: bool,
    ) -> Result<Box<Self>, SetupError> {
        let mut agent = Box::new(self.clone());
        if as_trusted
            || find_knowledge_and_trust(&self.places, &plan.project)?
                .1
                .is_trusted()
        {
            for extension in &self.extensions {
                extension.restrict_run(&self.places.environment, &mut agent.config, plan)?;
            }
        }
        let environment = agent.places.environment.clone();
        let configured = configured_writable_folders(&environment, &agent.config.sandbox);
        agent.places.environment = environment.with_writable_folders(
            std::iter::once(plan.project.root.clone())
                .chain(plan.added_folders.iter().cloned())
                .chain(configured),
        );
        Ok(agent)
    }

    fn find_model_key(&self, declared: &Declared) -> Result<Option<Secret>, SetupError> {
        Ok(keys::find_key(
            &self.places.environment,
            &declared.spec.provider,
            &declared.provider,
        )?)
    }
}

/// Opens the model with this name, as `provider/model`. An error is shown to the user.
pub type ModelSource = Arc<dyn Fn(&str) -> Result<Client, String> + Send + Sync>;

/// The parts of a replay that differ from other sessions.
pub struct ReplaySetup {
    /// The record, which supplies times, ids and results.
    pub recorded: Arc<RecordedRun>,
    /// The model with which the run begins, as it was declared then.
    pub declared: Declared,
    /// Opens the models of the run.
    pub models: ModelSource,
    /// The description of the machine of the run; `None` for this machine.
    pub environment: Option<haft_context::Environment>,
    /// True if the project's rules, instructions and agents are loaded as if it were trusted.
    pub trusted: bool,
    /// The copy of the project in which calls run again; `None` if results come from the record.
    pub copy: Option<PathBuf>,
    /// The folder for outputs of calls that run in a copy.
    pub outputs: PathBuf,
}

/// The access that a session opened for inspection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InspectionMode {
    /// The session only reads files, and needs no key.
    ReadOnly,
    /// Like [`Self::ReadOnly`], but the project's rules, instructions and agents are loaded as if
    /// the project were trusted. The project's hooks, tools and servers are not loaded.
    AsTrusted,
    /// The session may send requests to a model.
    WithModel,
}

#[cfg(test)]
mod tests {
    use haft_types::Api;

    use super::*;
    use crate::environment::HostEnvironment;

    fn agent(folder: &std::path::Path) -> Agent {
        let places = Places::under_home(&folder.join("home"), HostEnvironment::default());
        Agent::new(places, Config::default())
            .with_provider(
                "mock",
                ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:9/v1"),
            )
            .project(folder)
    }

    fn poem() -> ConversationChoice {
        ConversationChoice::New {
            title: "a poem".into(),
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let agent = || agent(folder.path());
        let problem = |agent: Agent| agent.plan(poem()).err().unwrap().to_string();
        assert!(problem(agent()).contains("no model is chosen"));
        assert!(problem(agent().model("nobody/x")).contains("nobody"));
        let nowhere = Places::from_environment(HostEnvironment::default()).unwrap_err();
        assert!(nowhere.to_string().contains("HAFT_HOME"));
        assert!(
            problem(agent().model("mock/x").project(folder.path().join("gone")))
                .contains("project folder")
        );
        agent().model("mock/x").plan(poem()).unwrap();
    }

    #[test]
    fn a_plan_takes_what_the_agent_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let limits = TurnLimits {
            turns: Some(3),
            ..TurnLimits::default()
        };
        let agent = agent(folder.path())
            .model("mock/x")
            .permission_mode(PermissionMode::Plan)
            .role("You are a poet.")
            .offer(["none"])
            .limits(limits);
        let plan = agent.plan(poem()).unwrap();
        assert_eq!(
            (plan.model.as_str(), plan.mode, plan.task.limits),
            ("mock/x", PermissionMode::Plan, limits)
        );
        assert_eq!(
            (plan.prompt.roles.main.as_deref(), plan.tools.offered),
            (Some("You are a poet."), vec!["none".to_owned()])
        );
        assert_eq!(plan.project.cwd, folder.path().canonicalize().unwrap());
    }
}
