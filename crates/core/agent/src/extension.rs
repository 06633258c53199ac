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

/// An optional part of a session that is not built into the core.
pub trait Extension: Send + Sync {
    /// Returns the sections of the configuration that this extension owns.
    fn sections(&self) -> Vec<Section> {
        Vec::new()
    }

    /// Restricts a run as the files of a trusted project require. The implementation must not allow
    /// anything that was not allowed before. An error, such as an unreadable file, prevents the
    /// session from being opened.
    fn restrict_run(
        &self,
        _environment: &HostEnvironment,
        _config: &mut Config,
        _plan: &mut RunPlan,
    ) -> Result<(), SetupError> {
        Ok(())
    }

    /// Returns the parts that the extension adds to a session. Starts nothing: a session that never
    /// uses the extension must not pay for it. An error in the extension's configuration becomes a
    /// notice, and disables only the parts that depend on the wrong value.
    fn contribute(&self, _context: &ExtensionContext<'_>) -> Contribution {
        Contribution::default()
    }

    /// Returns the extension's tools without their backend, for lists and documentation. The
    /// returned tools are never called.
    fn tools_without_backend(&self, _environment: &HostEnvironment) -> Vec<Arc<dyn Tool>> {
        Vec::new()
    }

    /// Returns the prompts and resources of this project and this user. Starts nothing.
    fn prompt_source(
        &self,
        _places: &Places,
        _config: &Config,
        _project: &Project,
    ) -> Result<Option<Box<dyn PromptSource>>, SetupError> {
        Ok(None)
    }

    /// Returns the hosts and the folders outside the project to which the servers of the project at
    /// `root` request access, by server name. The project need not be trusted.
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

/// The parts of a session that an extension may use while the session is being opened.
pub struct ExtensionContext<'a> {
    /// haft's folders.
    pub places: &'a Places,
    /// The whole configuration. The extension reads its own sections with [`Config::read_section`].
    pub config: &'a Config,
    pub project: &'a Project,
    /// The trust in the project. The instructions in a project's own files may be followed only if
    /// the project is trusted.
    pub trust_state: &'a TrustState,
    /// The record of the project's content when it was trusted, and of the access granted to its
    /// servers.
    pub record: &'a TrustRecord,
    /// The state that all approvals of the session share: the permission mode, and the lock that
    /// ensures that only one approval prompt is shown at a time.
    pub shared: &'a Arc<DecisionState>,
    /// Checks programs that are started without a tool call.
    pub guard: &'a Arc<StartGuard>,
    /// Starts and ends child processes.
    pub supervisor: &'a Arc<Supervisor>,
    /// The environment variables for child processes.
    pub child_environment: &'a Arc<Vec<(String, String)>>,
    /// The approver; `None` if there is no user to ask.
    pub approver: Option<&'a Arc<dyn Approver>>,
    pub model: &'a ModelSpec,
    pub counter: &'a Arc<dyn TokenCounter>,
    /// True if the run has a cost limit, which forbids requests with unknown cost.
    pub money_limited: bool,
}

/// The parts that an extension, or the program that embeds the agent, adds to a session.
#[derive(Clone, Default)]
pub struct Contribution {
    /// Tools, which are offered after the built-in tools, in this order.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Catalogues of deferred tools. If there are any, `tool_search` is placed after the tools of
    /// the first extension with a catalogue.
    pub catalogues: Vec<Arc<dyn ToolCatalogue>>,
    /// Callbacks for hook points, which are called after the user's hooks.
    pub callbacks: Vec<Arc<dyn Callback>>,
    /// Observers of tool calls, which are called after the agent's own observers.
    pub observers: Vec<Arc<dyn CallObserver>>,
    /// Permission rules in addition to the configured ones.
    pub rules: Vec<(Decision, PermissionRule)>,
    /// File readers for the built-in tools. If several readers support one kind of file, the first
    /// is used.
    pub readers: Readers,
    /// Secret values that must not be shown or stored.
    pub secrets: Vec<String>,
    /// Notices to show when the session starts.
    pub notices: Vec<Notice>,
}

impl Contribution {
    /// Appends the parts of `next`. If both contain a reader for one kind of file, the reader of
    /// `self` is kept.
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

/// A placeholder for an extension that is not part of the build. It accepts the extension's
/// section, and a session with that section gets a notice that the section has no effect.
pub struct AbsentExtension {
    section: &'static str,
    code: &'static str,
    feature: &'static str,
}

impl AbsentExtension {
    /// Creates a placeholder for the owner of `section`. `code` is the code of the notice, and
    /// `feature` the cargo feature that adds the extension.
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
