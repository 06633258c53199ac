//! [`Agent`], which opens sessions: folders, configuration, extensions, clock and ids in one value.

use std::sync::Arc;

use haft_engine::turn::TurnLimits;
use haft_engine::{
    Approver, Callback, Notice, Roles, Services, Session, SessionConfig, ToolHelp, Which,
};
use haft_model::{Declared, ModelError, Secret};
use haft_project::external::HelpCache;
use haft_sandbox::Sandbox;
use haft_store::{Conversation, Store};
use haft_text::Masker;
use haft_tool::{ChangeRecords, Plugin, Tool, Unrecorded};
use haft_tools::ProjectCopies;
use haft_types::{Clock, IdSource, Message};

use crate::builder::{AgentBuilder, model_of};
use crate::clock::{RandomIds, WallClock};
use crate::config::Config;
use crate::error::SetupError;
use crate::extension::Extension;
use crate::places::Places;
use crate::plan::RunPlan;
use crate::project::Project;
use crate::{defaults_notice, keys, knowledge, models, sandbox, spill, store, tool_help, wiring};

/// Opens sessions. Holds everything that all sessions share.
#[derive(Clone)]
pub struct Agent {
    pub(crate) places: Places,
    pub(crate) config: Config,
    pub(crate) extensions: Vec<Arc<dyn Extension>>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) callbacks: Vec<Arc<dyn Callback>>,
    pub(crate) plugins: Vec<Arc<dyn Plugin>>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    /// The project of runs that name none.
    pub(crate) project: Option<Project>,
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) limits: TurnLimits,
    pub(crate) on_masker: Option<MaskerListener>,
    pub(crate) changes: Arc<dyn ChangeRecords>,
    pub(crate) copies: Option<Arc<dyn ProjectCopies>>,
}

/// Called with the masker of each session before the session is opened.
pub(crate) type MaskerListener = Arc<dyn Fn(&Masker) + Send + Sync>;

impl Agent {
    /// Creates an agent with the system clock and random ids.
    pub fn new(places: Places, config: Config) -> Self {
        Self {
            places,
            config,
            extensions: Vec::new(),
            tools: Vec::new(),
            callbacks: Vec::new(),
            plugins: Vec::new(),
            clock: Arc::new(WallClock),
            ids: Arc::new(RandomIds),
            project: None,
            approver: None,
            limits: TurnLimits::default(),
            on_masker: None,
            changes: Arc::new(Unrecorded),
            copies: None,
        }
    }

    /// Builds an agent from single settings; see [`AgentBuilder`].
    pub fn builder() -> AgentBuilder {
        AgentBuilder::default()
    }

    /// Adds extensions after the existing ones.
    #[must_use]
    pub fn with_extensions(
        mut self,
        extensions: impl IntoIterator<Item = Arc<dyn Extension>>,
    ) -> Self {
        self.extensions.extend(extensions);
        self
    }

    /// Sets a listener that receives the masker of each session before the session is opened. A log
    /// outside of the session needs it to mask secrets from files and extensions.
    #[must_use]
    pub fn on_masker(self, tell: impl Fn(&Masker) + Send + Sync + 'static) -> Self {
        Self {
            on_masker: Some(Arc::new(tell)),
            ..self
        }
    }

    /// Sets the record of changes. The content of a file is saved there before a call changes it.
    #[must_use]
    pub fn with_change_records(self, changes: Arc<dyn ChangeRecords>) -> Self {
        Self { changes, ..self }
    }

    /// Sets the provider of project copies, for sub-agents that work in a copy.
    #[must_use]
    pub fn with_project_copies(self, copies: Arc<dyn ProjectCopies>) -> Self {
        Self {
            copies: Some(copies),
            ..self
        }
    }

    /// Creates the plan of a run from the builder's settings and the configuration. The caller may
    /// change its fields before opening it.
    pub fn plan(&self, which: Which) -> Result<RunPlan, SetupError> {
        let project = match &self.project {
            Some(project) => project.clone(),
            None => Project::find(&self.places.environment, None)?,
        };
        let roles = Roles {
            main: self.config.roles.read_main()?,
            system_prompt: self.config.roles.read_system_prompt()?,
            ..Roles::default()
        };
        let plan = RunPlan::of_config(&self.config, model_of(&self.config)?, project, which);
        Ok(RunPlan {
            roles,
            approver: self.approver.clone(),
            limits: self.limits,
            ..plan
        })
    }

    /// Opens a new conversation with `task` as its title. The conversation is stored with its first
    /// message.
    pub async fn start(&self, task: &str) -> Result<Session, SetupError> {
        self.open(self.plan(Which::New {
            title: task.to_owned(),
        })?)
        .await
    }

    /// Reopens the conversation with this id or name.
    pub async fn resume(&self, name: &str) -> Result<Session, SetupError> {
        self.open(self.plan(Which::Named(name.to_owned()))?).await
    }

    /// Opens the session of a run.
    pub async fn open(&self, plan: RunPlan) -> Result<Session, SetupError> {
        let (session, services, which) = Box::pin(self.prepare(plan)).await?;
        Ok(Box::pin(Session::open(session, services, which)).await?)
    }

    /// Prepares the arguments of [`Session::open`], for callers that change them before opening the
    /// session.
    pub async fn prepare(
        &self,
        mut plan: RunPlan,
    ) -> Result<(SessionConfig, Services, Which), SetupError> {
        // Preparing the masker in a thread takes less time than opening the store, which waits for
        // the disk.
        drop(std::thread::Builder::new().spawn(Masker::prepare));
        let agent = self.tightened(&mut plan, false)?;
        let Self { places, config, .. } = &*agent;
        places.tighten();
        spill::sweep(
            &places.spill(),
            WallClock.now().into(),
            config.limits.spill_days,
        );
        tool_help::sweep(places);
        let store = store::open_store_with_backups(places, config, &agent.extensions)?;
        let which = plan.which.clone();
        let (declared, key, replaced) = agent.usable_model(&mut plan)?;
        if plan.limits.needs_price() && declared.spec.price.is_none() {
            return Err(SetupError::Client(ModelError::NoPrice(
                declared.spec.full_name(),
            )));
        }
        let projects = std::iter::once(&plan.project.root)
            .chain(&plan.added_folders)
            .cloned()
            .collect();
        let confined = wiring::with_denied_reads(places, config, &plan)?;
        let sandbox = sandbox::set_up_sandbox(places, &confined, plan.mode, projects).await?;
        let asking = tool_help(places, config, &plan.project);
        let (mut session, services) = wiring::prepare(&agent, plan, store, sandbox, declared, key)?;
        session.knowledge.tool_help = ToolHelp::new(HelpCache::at(places.tool_help()), asking);
        session
            .notices
            .extend(config.unasked_roles().map(|role| Notice {
                code: "model_role",
                message: format!(
                    "`model_roles.{}` is set, but nothing in this build asks it",
                    role.name()
                ),
                failed: false,
            }));
        session.notices.extend(
            replaced
                .into_iter()
                .chain(defaults_notice::take(places, config)),
        );
        session
            .notices
            .splice(0..0, wiring::recovered(&session.folders.workspace.journal));
        Ok((session, services, which))
    }

    /// Resolves the model of a plan and its key. If the model cannot be used, returns the fallback
    /// model and a notice with the reason.
    fn usable_model(
        &self,
        plan: &mut RunPlan,
    ) -> Result<(Declared, Option<Secret>, Option<Notice>), SetupError> {
        let with_key = |name: &str| {
            let declared = models::declared_model(&self.places.environment, &self.config, name)?;
            let key = self.key(&declared)?;
            Ok((declared, key))
        };
        let (error, other) = match (with_key(&plan.model), plan.otherwise.take()) {
            (Ok((declared, key)), _) => return Ok((declared, key, None)),
            (Err(error), None) => return Err(error),
            (Err(error), Some(other)) => (error, other),
        };
        let message = format!(
            "the agent runs on `{other}`: `{}` cannot be used ({error})",
            plan.model
        );
        plan.model = other;
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

    /// Opens a conversation with these messages for inspecting the next request.
    pub async fn look(
        &self,
        mut plan: RunPlan,
        store: Arc<dyn Store>,
        (conversation, messages): (Conversation, Vec<Message>),
        look: Look,
    ) -> Result<Session, SetupError> {
        let agent = self.tightened(&mut plan, look == Look::AsTrusted)?;
        let declared =
            models::declared_model(&agent.places.environment, &agent.config, &plan.model)?;
        let key = match look {
            Look::Only | Look::AsTrusted => None,
            // Without a key, requests are sent without authentication.
            Look::MayAsk => agent.key(&declared).unwrap_or_default(),
        };
        let sandbox = Sandbox::off("nothing is run");
        let (mut session, services) = wiring::prepare(&agent, plan, store, sandbox, declared, key)?;
        session.knowledge.paths.trusted |= look == Look::AsTrusted;
        Ok(Box::pin(Session::look(session, services, conversation, messages)).await?)
    }

    /// Returns the agent for this run. A trusted project may restrict the run, regardless of the
    /// caller.
    fn tightened(&self, plan: &mut RunPlan, as_trusted: bool) -> Result<Box<Self>, SetupError> {
        let mut agent = Box::new(self.clone());
        if as_trusted || knowledge(&self.places, &plan.project)?.1.is_trusted() {
            for extension in &self.extensions {
                extension.tighten(&self.places.environment, &mut agent.config, plan)?;
            }
        }
        Ok(agent)
    }

    fn key(&self, declared: &Declared) -> Result<Option<Secret>, SetupError> {
        Ok(keys::key_of(
            &self.places.environment,
            &declared.spec.provider,
            &declared.provider,
        )?)
    }
}

/// The access of an inspection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Only reads; needs no key.
    Only,
    /// Like [`Self::ReadOnly`], but with the project's rules, instructions and agents as if the
    /// project were trusted. Its hooks, tools and servers are not loaded.
    AsTrusted,
    /// Requests to a model are allowed.
    MayAsk,
}
