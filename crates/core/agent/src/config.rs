//! The configuration, built from layers: built-in values, the user's file, the environment, flags,
//! in increasing precedence.
//!
//! Each crate owns the struct of its section. Unknown keys are errors with a suggestion, and the
//! origin of every value is recorded. Sections of extensions and front ends are declared as a
//! [`Section`] when these are registered.

mod file_check;
mod layers;
mod model_roles;
mod problem;
mod schema;
mod section;
mod user_file;
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

pub use layers::{
    ConfigSources, LoadedConfig, ValueOrigin, check_config_text, config_from_table, load_config,
    visit_values,
};
pub use model_roles::{ModelRole, ModelRoles};
pub use problem::error_in_file;
pub use schema::config_schema;
pub use section::Section;
pub use user_file::edit_file;
pub use variables::UnknownVariable;

/// The whole configuration. Deserializing it accepts any section; [`load_config`],
/// [`check_config_text`] and [`config_from_table`] check the section names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// The main model, as `provider/model`.
    pub model: Option<String>,
    /// The providers of models, by provider name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// The properties of models, by full name (`provider/model`).
    pub models: BTreeMap<String, ModelConfig>,
    /// Short names of models in addition to the built-in short names, each with the name for which
    /// it stands.
    pub model_aliases: BTreeMap<String, String>,
    /// The amount of each currency that equals one USD, by currency code.
    pub currency_rates: BTreeMap<String, f64>,
    /// The models for roles other than the main one.
    pub model_roles: ModelRoles,
    /// Settings of the context engine.
    pub context: Policy,
    pub roles: RolesConfig,
    /// Replacements for sections of the system prompt.
    pub prompt: PromptConfig,
    /// The permission mode and the permission rules.
    pub permissions: PermissionsConfig,
    /// The tools that are offered to the model.
    pub tools: ToolsConfig,
    /// Settings for the storage of conversations.
    pub store: StoreConfig,
    /// Settings for retrying failed requests.
    pub retry: RetryConfig,
    /// Settings of the sandbox in which commands run.
    pub sandbox: SandboxConfig,
    /// Hooks: commands that run at certain points of a run.
    pub hooks: HooksConfig,
    /// Limits on outputs and on concurrent commands.
    pub limits: LimitsConfig,
    /// Groups of agents that can be addressed together.
    pub groups: BTreeMap<String, GroupConfig>,
    /// The sections of extensions and front ends, by name. They were checked when they were loaded;
    /// read them with [`Config::read_section`].
    #[serde(skip)]
    pub sections: BTreeMap<String, toml::Value>,
    /// Environment variables that begin with `HAFT_` and have no effect. A session reports each as
    /// a notice.
    #[serde(skip)]
    pub unknown_variables: Vec<UnknownVariable>,
}

impl Config {
    /// The configuration keys that belong to the core. Extensions add a key for each of their
    /// sections.
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

    /// Parses a section as the type of its owner. Returns the default of that type if the section
    /// is not configured.
    pub fn read_section<T: DeserializeOwned + Default>(
        &self,
        name: &str,
    ) -> Result<T, ConfigError> {
        let Some(value) = self.sections.get(name) else {
            return Ok(T::default());
        };
        let read = T::deserialize(value.clone());
        read.map_err(|error| {
            ConfigError::Value(format!(
                "`[{name}]`: {}",
                problem::describe_with_suggestion(error.message())
            ))
        })
    }

    /// Returns the models for a role, in order of preference. The models of the main role are used
    /// for a role without models of its own.
    pub fn models_for_role(&self, role: ModelRole) -> Vec<String> {
        if role != ModelRole::Main && !self.model_roles.configured_models(role).is_empty() {
            return self.model_roles.configured_models(role).to_vec();
        }
        if role == ModelRole::Index {
            return self.models_for_role(ModelRole::Summary);
        }
        let rest = self
            .model_roles
            .main
            .iter()
            .filter(|name| self.model.as_ref() != Some(name));
        self.model.iter().chain(rest).cloned().collect()
    }

    /// True if a role has models of its own.
    pub fn has_own_models(&self, role: ModelRole) -> bool {
        role == ModelRole::Main || !self.model_roles.configured_models(role).is_empty()
    }
}

/// `[roles]`: the role definition and the system prompt of the main agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolesConfig {
    pub main: String,
    /// A file with the role definition; overrides `main`.
    pub main_file: Option<String>,
    /// A system prompt that replaces the role.
    pub system_prompt: String,
    /// A file with the system prompt; overrides `system_prompt`.
    pub system_prompt_file: Option<String>,
}

/// `[prompt]`: the replacements for sections of the system prompt, and the order of its sections.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PromptConfig {
    /// The files that replace built-in sections. Relative paths are relative to the folder of
    /// `config.toml`.
    pub sections: BTreeMap<SystemSection, String>,
    /// The sections that come first. All other sections follow in their built-in order.
    pub order: Vec<SystemSection>,
}

/// `[tools]`: the tools offered to the model, and settings for external tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// The offered tools: names, aliases, groups, profiles, `*`, `none`. An empty list offers the
    /// default set.
    pub offer: Vec<String>,
    /// The tool profiles defined by the user, by name.
    pub profiles: BTreeMap<String, Vec<String>>,
    /// The timeout in seconds for each attempt to get the help text of an external tool; 0 disables
    /// the attempts.
    pub help_timeout: u32,
    /// The maximum time in seconds that a request waits for the help texts of new external tools.
    pub help_wait: u32,
    /// True if the model may write external tools into the project's tools folder, each with the
    /// user's approval.
    pub model_written: bool,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self {
            offer: Vec::new(),
            profiles: BTreeMap::new(),
            help_timeout: 5,
            help_wait: 2,
            model_written: false,
        }
    }
}
