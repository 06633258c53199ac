//! The configuration: built-in values < the user's file < the environment < flags, lowered once
//! into one [`Config`].
//!
//! Each crate owns the struct of its own section; unknown keys are errors with a suggestion, and
//! every value knows where it came from. Sections of extensions and front ends are declared as a
//! [`Section`] by whoever registers them.

mod broken;
mod file;
mod layers;
mod model_roles;
mod problem;
mod schema;
mod section;
mod variables;

use std::collections::BTreeMap;

use haft_context::{Policy, SystemSection};
use haft_engine::hub::GroupConfig;
use haft_model::{ModelConfig, ProviderConfig, RetryConfig};
use haft_permission::PermissionsConfig;
use haft_project::hooks::HooksConfig;
use haft_sandbox::SandboxConfig;
use haft_store::StoreConfig;
use haft_tools::LimitsConfig;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::ConfigError;

pub use file::edit;
pub use layers::{LoadedConfig, Sources, ValueOrigin, check, flatten, load, lower};
pub use model_roles::{ModelRole, ModelRoles};
pub use problem::in_file;
pub use schema::schema;
pub use section::Section;
pub use variables::UnknownVariable;

/// Everything that can be configured. Reading it takes any section: [`load`], [`check`] and
/// [`lower`] know which there are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The main model, as `provider/model`.
    pub model: Option<String>,
    /// Where models are served.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// What is known of models.
    pub models: BTreeMap<String, ModelConfig>,
    /// Short names of models, beside those that are built in.
    pub model_aliases: BTreeMap<String, String>,
    /// How much of a currency is one USD, by its code.
    pub currency_rates: BTreeMap<String, f64>,
    /// Which model does what beside the main one.
    pub model_roles: ModelRoles,
    /// How requests are built.
    pub context: Policy,
    /// The role of the model.
    pub roles: RolesConfig,
    /// What stands in the place of sections of the system prompt.
    pub prompt: PromptConfig,
    /// What may happen without asking.
    pub permissions: PermissionsConfig,
    /// Which tools are offered.
    pub tools: ToolsConfig,
    /// Where conversations are kept.
    pub store: StoreConfig,
    /// How failed requests are tried again.
    pub retry: RetryConfig,
    /// What holds commands in.
    pub sandbox: SandboxConfig,
    /// Commands that are run at points of a run.
    pub hooks: HooksConfig,
    /// How much of an output is shown and kept, and how much may run at once.
    pub limits: LimitsConfig,
    /// Agents that are written to together.
    pub groups: BTreeMap<String, GroupConfig>,
    /// The sections of extensions and front ends, by name: checked when they were loaded, read by
    /// [`Config::section`].
    #[serde(skip)]
    pub sections: BTreeMap<String, toml::Value>,
    /// Environment variables that begin with `HAFT_` and have no effect. A session reports each as
    /// a notice.
    #[serde(skip)]
    pub unknown_variables: Vec<UnknownVariable>,
}

impl Config {
    /// The keys of the core, beside which there are the sections of extensions.
    pub(crate) const KEYS: [&'static str; 17] = [
        "model",
        "providers",
        "models",
        "model_aliases",
        "currency_rates",
        "model_roles",
        "context",
        "roles",
        "prompt",
        "permissions",
        "tools",
        "store",
        "retry",
        "sandbox",
        "hooks",
        "limits",
        "groups",
    ];

    /// The section of this name, as the crate reads it that owns it; its default when nothing is
    /// configured.
    pub fn section<T: DeserializeOwned + Default>(&self, name: &str) -> Result<T, ConfigError> {
        let Some(value) = self.sections.get(name) else {
            return Ok(T::default());
        };
        let read = T::deserialize(value.clone());
        read.map_err(|error| {
            ConfigError::Value(format!(
                "`[{name}]`: {}",
                problem::in_words(error.message())
            ))
        })
    }

    /// The models that play a role, the first one first; those of the main role when it has none of
    /// its own.
    pub fn models_of(&self, role: ModelRole) -> Vec<String> {
        if role != ModelRole::Main && !self.model_roles.own(role).is_empty() {
            return self.model_roles.own(role).to_vec();
        }
        let rest = self
            .model_roles
            .main
            .iter()
            .filter(|name| self.model.as_ref() != Some(name));
        self.model.iter().chain(rest).cloned().collect()
    }

    /// The roles that are set and never asked.
    pub fn unasked_roles(&self) -> impl Iterator<Item = ModelRole> {
        ModelRole::ALL
            .into_iter()
            .filter(|role| !role.is_asked() && self.is_set(*role))
    }

    /// Whether a role has models of its own.
    pub fn is_set(&self, role: ModelRole) -> bool {
        role == ModelRole::Main || !self.model_roles.own(role).is_empty()
    }
}

/// The `[roles]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolesConfig {
    /// The role definition of the main agent.
    pub main: String,
    /// A file that holds it.
    pub main_file: Option<String>,
    /// A system prompt in place of the role.
    pub system_prompt: String,
    /// A file that holds it.
    pub system_prompt_file: Option<String>,
}

/// The `[prompt]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptConfig {
    /// The files that hold sections in place of the built-in ones; a relative path begins at the
    /// folder of config.toml.
    pub sections: BTreeMap<SystemSection, String>,
    /// The sections that come first; the others follow in their own order.
    pub order: Vec<SystemSection>,
}

/// The `[tools]` section.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// The tools offered: names, aliases, groups, profiles, `*`, `none`; the default set when
    /// empty.
    pub offer: Vec<String>,
    /// Profiles of the user's own.
    pub profiles: BTreeMap<String, Vec<String>>,
    /// How many seconds an external tool has for each way to ask for its help; 0 asks none.
    pub help_timeout: u32,
    /// How many seconds a request waits for external tools that are asked for the first time.
    pub help_wait: u32,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            offer: Vec::new(),
            profiles: BTreeMap::new(),
            help_timeout: 5,
            help_wait: 2,
        }
    }
}
