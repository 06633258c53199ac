//! The trait through which an extension reaches a session; the core names no extension.
//!
//! A front end lists the extensions of its build. An extension declares its sections of the
//! configuration and contributes tools, rules and notices to a session that is about to be opened.
//! An extension may also offer prompts and resources, and connect to a server that stores
//! conversations.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use haft_engine::{Approver, Callback, DecisionState, Notice, StartGuard};
use haft_permission::PermissionRule;
use haft_project::{ServerGrant, TrustRecord, TrustState};
use haft_sandbox::Supervisor;
use haft_store::{Store, StoreConfig, StoreError};
use haft_tool::{CallObserver, Tool, ToolCatalogue};
use haft_tools::Readers;
use haft_types::{Clock, Decision, ModelSpec, TokenCounter};

use crate::config::{Config, Section};
use crate::environment::HostEnvironment;
use crate::error::SetupError;
use crate::places::Places;
use crate::plan::RunPlan;
use crate::project::Project;
use crate::prompts::PromptSource;

/// An optional part of a session, beside the core.
pub trait Extension: Send + Sync {
    /// Returns the sections of the configuration that this extension owns.
    fn sections(&self) -> Vec<Section> {
        Vec::new()
    }

    /// Tightens what a run in a trusted project is allowed, as the project's files say. It must not
    /// widen anything. An error, such as a file that cannot be read, keeps the session from being
    /// opened.
    fn tighten(
        &self,
        _environment: &HostEnvironment,
        _config: &mut Config,
        _plan: &mut RunPlan,
    ) -> Result<(), SetupError> {
        Ok(())
    }

    /// Returns what this extension adds to a session. It starts nothing: a session that never uses
    /// the extension must not pay for it. A mistake in its configuration becomes a notice, and
    /// costs no more than what depends on the mistaken value.
    fn contribute(&self, _context: &ExtensionContext<'_>) -> Contribution {
        Contribution::default()
    }

    /// Returns the extension's tools with nothing behind them, for lists and documentation. They
    /// are never called.
    fn described_tools(&self, _environment: &HostEnvironment) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns the prompts and resources of this project and this user. It starts nothing.
    fn prompt_source(
        &self,
        _places: &Places,
        _config: &Config,
        _project: &Project,
    ) -> Result<Option<Box<dyn PromptSource>>, SetupError> {
        Ok(None)
    }

    /// Returns, by server, the hosts and folders outside the project that the servers declared by
    /// the project at `root` ask for, whether or not the project is trusted.
    fn requested_grants(&self, _places: &Places, _root: &Path) -> BTreeMap<String, ServerGrant> {
        BTreeMap::new()
    }

    /// Connects to the server at `url` that stores conversations. Returns `None` if this extension
    /// doesn't support such servers.
    fn connect_store(
        &self,
        _url: &str,
        _config: &StoreConfig,
        _environment: &HostEnvironment,
        _clock: Arc<dyn Clock>,
    ) -> Option<Result<Arc<dyn Store>, StoreError>> {
        None
    }
}

/// What an extension may know of a session that is about to be opened.
pub struct ExtensionContext<'a> {
    /// Where haft keeps its files.
    pub places: &'a Places,
    /// The whole configuration; its own sections are read with [`Config::section`].
    pub config: &'a Config,
    /// The project.
    pub project: &'a Project,
    /// Whether the project's own files may be obeyed.
    pub trust_state: &'a TrustState,
    /// What the project held when it was trusted, and what was given to its servers.
    pub record: &'a TrustRecord,
    /// How much may happen without asking, and whose turn it is to ask.
    pub shared: &'a Arc<DecisionState>,
    /// Decides on programs that start without a call.
    pub guard: &'a Arc<StartGuard>,
    /// Starts and ends child processes.
    pub supervisor: &'a Arc<Supervisor>,
    /// What child processes are given of the environment.
    pub child_environment: &'a Arc<Vec<(String, String)>>,
    /// Who is asked; none where nobody is there.
    pub approver: Option<&'a Arc<dyn Approver>>,
    /// The main model.
    pub model: &'a ModelSpec,
    /// Counts tokens.
    pub counter: &'a Arc<dyn TokenCounter>,
    /// Whether nothing may be asked that costs money nobody counts: the run has a limit of money.
    pub money_limited: bool,
}

/// The parts that an extension, or the program that embeds the agent, adds to a session.
#[derive(Clone, Default)]
pub struct Contribution {
    /// Tools, after the built-in ones, in order.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Deferred tools. Where there are any, `tool_search` stands after the tools of the first
    /// extension that has some.
    pub catalogues: Vec<Arc<dyn ToolCatalogue>>,
    /// Who is called at the points of a run, after the user's hooks.
    pub callbacks: Vec<Arc<dyn Callback>>,
    /// Observers of calls, after the agent's own.
    pub observers: Vec<Arc<dyn CallObserver>>,
    /// Permission rules beside those of the configuration.
    pub rules: Vec<(Decision, PermissionRule)>,
    /// What it reads of files for the built-in tools. Of several readers of a kind the first one
    /// counts.
    pub readers: Readers,
    /// Values that must not be shown or kept anywhere.
    pub secrets: Vec<String>,
    /// What the user must see first, once.
    pub notices: Vec<Notice>,
}

impl Contribution {
    /// Adds `next` after what is here. Of several readers of a kind the first one stays.
    pub(crate) fn append(&mut self, next: Self) {
        let Self {
            tools,
            catalogues,
            callbacks,
            observers,
            rules,
            readers,
            secrets,
            notices,
        } = next;
        self.tools.extend(tools);
        self.catalogues.extend(catalogues);
        self.callbacks.extend(callbacks);
        self.observers.extend(observers);
        self.rules.extend(rules);
        self.readers.documents = self.readers.documents.take().or(readers.documents);
        self.readers.buffers = self.readers.buffers.take().or(readers.buffers);
        self.readers.tools.extend(readers.tools);
        self.secrets.extend(secrets);
        self.notices.extend(notices);
    }
}

/// Stands for an extension that is not part of the build: its section loads, and a session says
/// that nothing comes of it.
pub struct AbsentExtension {
    section: &'static str,
    code: &'static str,
    feature: &'static str,
}

impl AbsentExtension {
    /// The owner of this section, whose notices have this code, which the build has with this
    /// feature.
    pub fn new(section: &'static str, code: &'static str, feature: &'static str) -> Self {
        Self {
            section,
            code,
            feature,
        }
    }
}

impl Extension for AbsentExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::absent(self.section)]
    }

    fn contribute(&self, context: &ExtensionContext<'_>) -> Contribution {
        let Self {
            section,
            code,
            feature,
        } = *self;
        let is_used = |value: &toml::Value| value.as_table().is_none_or(|table| !table.is_empty());
        if !context.config.sections.get(section).is_some_and(is_used) {
            return Contribution::default();
        }
        let message = format!(
            "`[{section}]` is configured, but this haft was built without it; build it with `--features {feature}`"
        );
        Contribution {
            notices: vec![Notice {
                code,
                message,
                failed: true,
            }],
            ..Contribution::default()
        }
    }
}
