//! The configuration: built-in values < the user's file < the environment < flags, lowered once into one [`Config`].
//!
//! Each crate owns the struct of its own section; unknown keys are errors with a suggestion, and every value knows where it
//! came from.

mod layers;
mod problem;

use std::collections::BTreeMap;

use haft_context::Policy;
use haft_model::{ModelConfig, ProviderConfig, RetryConfig};
use haft_store::StoreConfig;
use haft_types::PermissionMode;
use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use layers::{Loaded, Origin, Sources, check, flatten, load, lower};

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
    /// Where conversations are kept.
    pub(crate) store: StoreConfig,
    /// How failed requests are tried again.
    pub(crate) retry: RetryConfig,
}

/// The `[model_roles]` section: each role is one model, or several of which the later ones are asked while those before have
/// too much to do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelRoles {
    /// The main model, when `model` is not set, and those asked in its place.
    #[serde(deserialize_with = "one_or_more")]
    pub(crate) main: Vec<String>,
    /// Writes summaries; the main model when empty.
    #[serde(deserialize_with = "one_or_more")]
    pub(crate) summary: Vec<String>,
}

/// A name, or a list of names.
fn one_or_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a model such as \"openai/gpt-5\", or a list of them")]
    enum Names {
        One(String),
        More(Vec<String>),
    }
    Ok(match Names::deserialize(deserializer)? {
        Names::One(name) => vec![name],
        Names::More(names) => names,
    })
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

/// The `[permissions]` section.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct PermissionsConfig {
    /// How much may happen without asking.
    pub(crate) mode: PermissionMode,
}
