//! The configuration: built-in values < the user's file < the environment < flags, lowered once into one [`Config`].
//!
//! Each crate owns the struct of its own section; unknown keys are errors with a suggestion, and every value knows where it
//! came from.

mod file;
mod layers;
mod model_roles;
mod problem;

use std::collections::BTreeMap;

use haft_context::Policy;
use haft_engine::hub::GroupConfig;
use haft_mcp::ServerConfig;
use haft_model::{ModelConfig, ProviderConfig, RetryConfig};
use haft_permission::PermissionsConfig;
use haft_project::hooks::HooksConfig;
use haft_rag::CollectionConfig;
use haft_sandbox::SandboxConfig;
use haft_store::StoreConfig;
use haft_tools::LimitsConfig;
use haft_tui::TuiConfig;
use serde::{Deserialize, Serialize};

pub(crate) use file::edit;
pub(crate) use layers::{Loaded, Origin, Sources, check, flatten, load, lower};
pub(crate) use model_roles::{ModelRole, ModelRoles};

/// Everything that can be configured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    /// The main model, as `provider/model`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Where models are served.
    pub(crate) providers: BTreeMap<String, ProviderConfig>,
    /// What is known of models.
    pub(crate) models: BTreeMap<String, ModelConfig>,
    /// Which model does what beside the main one.
    pub(crate) model_roles: ModelRoles,
    /// How requests are built.
    pub(crate) context: Policy,
    /// Who the model is told to be.
    pub(crate) roles: RolesConfig,
    /// What may happen without asking.
    pub(crate) permissions: PermissionsConfig,
    /// Which tools are offered.
    pub(crate) tools: ToolsConfig,
    /// MCP servers by name.
    pub(crate) mcp_servers: BTreeMap<String, ServerConfig>,
    /// Collections of documents by name.
    pub(crate) rag: BTreeMap<String, CollectionConfig>,
    /// Reading and searching the web.
    #[cfg(feature = "web")]
    pub(crate) web: haft_web::WebConfig,
    /// Not understood by this build, and told so when a session begins.
    #[cfg(not(feature = "web"))]
    #[serde(skip_serializing_if = "toml::Table::is_empty")]
    pub(crate) web: toml::Table,
    /// Where conversations are kept.
    pub(crate) store: StoreConfig,
    /// How failed requests are tried again.
    pub(crate) retry: RetryConfig,
    /// What holds commands in.
    pub(crate) sandbox: SandboxConfig,
    /// Commands that are run at points of a run.
    pub(crate) hooks: HooksConfig,
    /// How much of an output is shown and kept, and how much may run at once.
    pub(crate) limits: LimitsConfig,
    /// The terminal interface.
    pub(crate) tui: TuiConfig,
    /// Agents that are written to together.
    pub(crate) groups: BTreeMap<String, GroupConfig>,
}

impl Config {
    /// The models that play a role, the first one first; those of the main role when it has none of its own.
    pub(crate) fn models_of(&self, role: ModelRole) -> Vec<String> {
        if role != ModelRole::Main && !self.model_roles.own(role).is_empty() {
            return self.model_roles.own(role).to_vec();
        }
        let rest = self.model_roles.main.iter().filter(|name| self.model.as_ref() != Some(name));
        self.model.iter().chain(rest).cloned().collect()
    }

    /// Whether a role has models of its own.
    pub(crate) fn is_set(&self, role: ModelRole) -> bool {
        role == ModelRole::Main || !self.model_roles.own(role).is_empty()
    }
}

/// The `[roles]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RolesConfig {
    /// The role definition of the main agent.
    pub(crate) main: String,
    /// A file that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) main_file: Option<String>,
    /// A system prompt in place of the role.
    pub(crate) system_prompt: String,
    /// A file that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) system_prompt_file: Option<String>,
}

/// The `[tools]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ToolsConfig {
    /// The tools offered: names, aliases, groups, profiles, `*`, `none`; the default set when empty.
    pub(crate) offer: Vec<String>,
    /// Profiles of the user's own.
    pub(crate) profiles: BTreeMap<String, Vec<String>>,
    /// How many seconds an external tool has for each way to ask for its help; 0 asks none.
    pub(crate) help_timeout: u32,
    /// How many seconds a request waits for external tools that are asked for the first time.
    pub(crate) help_wait: u32,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self { offer: Vec::new(), profiles: BTreeMap::new(), help_timeout: 5, help_wait: 2 }
    }
}
