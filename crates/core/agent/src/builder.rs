//! A builder of agents, for programs that embed haft.
//!
//! Everything except the model has a default. Programs with further needs pass a complete
//! [`Config`], or open a session with a [`RunPlan`].

use std::path::PathBuf;
use std::sync::Arc;

use haft_engine::turn::TurnLimits;
use haft_engine::{Approver, Callback};
use haft_model::{ModelConfig, ProviderConfig};
use haft_tool::{Plugin, Tool};
use haft_types::{Clock, IdSource, PermissionMode};

use crate::agent::Agent;
use crate::clock::{RandomIds, WallClock};
use crate::config::Config;
use crate::environment::HostEnvironment;
use crate::error::SetupError;
use crate::extension::Extension;
use crate::models;
use crate::places::Places;
use crate::project::Project;

/// Builds an [`Agent`].
#[must_use]
pub struct AgentBuilder {
    environment: HostEnvironment,
    home: Option<PathBuf>,
    project: Option<PathBuf>,
    config: Config,
    approver: Option<Arc<dyn Approver>>,
    limits: TurnLimits,
    extensions: Vec<Arc<dyn Extension>>,
    tools: Vec<Arc<dyn Tool>>,
    callbacks: Vec<Arc<dyn Callback>>,
    plugins: Vec<Arc<dyn Plugin>>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdSource>,
}

impl Default for AgentBuilder {
    fn default() -> Self {
        Self {
            environment: HostEnvironment::default(),
            home: None,
            project: None,
            config: Config::default(),
            approver: None,
            limits: TurnLimits::default(),
            extensions: Vec::new(),
            tools: Vec::new(),
            callbacks: Vec::new(),
            plugins: Vec::new(),
            clock: Arc::new(WallClock),
            ids: Arc::new(RandomIds),
        }
    }
}

impl AgentBuilder {
    /// Sets the environment of the process: provider keys, proxies, the home folder, the helper
    /// that runs commands. The default is an empty environment.
    pub fn environment(mut self, environment: HostEnvironment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the folder for all persistent data. The default is the folders named by the
    /// environment.
    pub fn home(mut self, folder: impl Into<PathBuf>) -> Self {
        self.home = Some(folder.into());
        self
    }

    /// Sets the project folder. The default is the working directory of the environment.
    pub fn project(mut self, folder: impl Into<PathBuf>) -> Self {
        self.project = Some(folder.into());
        self
    }

    /// Replaces the whole configuration. Later calls change single values of it.
    pub fn config(mut self, config: Config) -> Self {
        self.config = config;
        self
    }

    /// Sets the model, as `provider/model`: a built-in one, or one of [`Self::provider`].
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.config.model = Some(name.into());
        self
    }

    /// Adds a model server beside the built-in ones.
    pub fn provider(mut self, name: impl Into<String>, provider: ProviderConfig) -> Self {
        self.config.providers.insert(name.into(), provider);
        self
    }

    /// Sets the properties of a model, named as `provider/model`: window, prices, cache.
    pub fn model_config(mut self, name: impl Into<String>, model: ModelConfig) -> Self {
        self.config.models.insert(name.into(), model);
        self
    }

    /// Sets the permission mode. The default is [`PermissionMode::Ask`].
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.config.permissions.mode = mode;
        self
    }

    /// Sets the approver. Without one, every request for approval is denied.
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = Some(approver);
        self
    }

    /// Sets the role of the model. The default is the built-in role of a coding agent.
    pub fn role(mut self, role: impl Into<String>) -> Self {
        self.config.roles.main = role.into();
        self
    }

    /// Sets the offered tools: names, aliases, groups, profiles, `*`, `none`. The default is the
    /// default set.
    pub fn offer(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.config.tools.offer = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the limits of a run.
    pub fn limits(mut self, limits: TurnLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Adds a tool beside the built-in ones.
    pub fn tool(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a callback for the hook points of a run.
    pub fn callback(mut self, callback: Arc<dyn Callback>) -> Self {
        self.callbacks.push(callback);
        self
    }

    /// Adds a plugin, which inspects every tool call before and after it runs.
    pub fn plugin(mut self, plugin: Arc<dyn Plugin>) -> Self {
        self.plugins.push(plugin);
        self
    }

    /// Adds an extension, which may bring tools, a section of the configuration, or a store.
    pub fn with(mut self, extension: Arc<dyn Extension>) -> Self {
        self.extensions.push(extension);
        self
    }

    /// Sets the clock and the source of ids, for tests that compare whole requests.
    pub fn clock_and_ids(mut self, clock: Arc<dyn Clock>, ids: Arc<dyn IdSource>) -> Self {
        (self.clock, self.ids) = (clock, ids);
        self
    }

    /// Builds the agent. Finds the folders and checks the model's name; opens no session and sends
    /// nothing.
    pub fn build(self) -> Result<Agent, SetupError> {
        let places = match &self.home {
            Some(home) => Places::under(home, self.environment),
            None => Places::find(self.environment)?,
        };
        let project = Project::find(&places.environment, self.project.as_deref())?;
        models::declared_model(&places.environment, &self.config, &model_of(&self.config)?)?;
        Ok(Agent {
            extensions: self.extensions,
            tools: self.tools,
            callbacks: self.callbacks,
            plugins: self.plugins,
            clock: self.clock,
            ids: self.ids,
            project: Some(project),
            approver: self.approver,
            limits: self.limits,
            ..Agent::new(places, self.config)
        })
    }
}

pub(crate) fn model_of(config: &Config) -> Result<String, SetupError> {
    models::configured_model(config).ok_or(SetupError::NoModel)
}

#[cfg(test)]
mod tests {
    use haft_types::Api;

    use super::*;

    fn builder() -> AgentBuilder {
        Agent::builder().provider(
            "mock",
            ProviderConfig::new(Api::OpenaiChat, "http://127.0.0.1:9/v1"),
        )
    }

    #[test]
    fn what_is_missing_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let in_folder = || {
            builder()
                .home(folder.path().join("home"))
                .project(folder.path())
        };
        let problem = |builder: AgentBuilder| builder.build().err().unwrap().to_string();
        assert!(problem(in_folder()).contains("no model is chosen"));
        assert!(problem(in_folder().model("nobody/x")).contains("nobody"));
        assert!(problem(builder().model("mock/x").project(folder.path())).contains("HAFT_HOME"));
        assert!(
            problem(
                in_folder()
                    .model("mock/x")
                    .project(folder.path().join("gone"))
            )
            .contains("project folder")
        );
        in_folder().model("mock/x").build().unwrap();
    }

    #[test]
    fn a_plan_takes_what_the_builder_was_told() {
        let folder = tempfile::tempdir().unwrap();
        let limits = TurnLimits {
            turns: Some(3),
            ..TurnLimits::default()
        };
        let agent = builder()
            .home(folder.path().join("home"))
            .project(folder.path())
            .model("mock/x")
            .permission_mode(PermissionMode::Plan)
            .role("You are a poet.")
            .offer(["none"])
            .limits(limits)
            .build()
            .unwrap();
        let plan = agent
            .plan(haft_engine::Which::New {
                title: "a poem".into(),
            })
            .unwrap();
        assert_eq!(
            (plan.model.as_str(), plan.mode, plan.limits),
            ("mock/x", PermissionMode::Plan, limits)
        );
        assert_eq!(
            (plan.roles.main.as_deref(), plan.offered_tools),
            (Some("You are a poet."), vec!["none".to_owned()])
        );
        assert_eq!(plan.project.cwd, folder.path().canonicalize().unwrap());
    }
}
