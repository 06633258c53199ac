//! The `[proxy]` section of the configuration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The `[proxy]` section of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProxyConfig {
    pub save: SaveConfig,
}

/// The `[proxy.save]` section of the configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SaveConfig {
    /// The agents whose requests may be rewritten.
    pub agents: Vec<String>,
    /// The folder for the texts of cleared results. haft's state folder if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spill_dir: Option<PathBuf>,
    /// The tokens below which nothing is cleared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
}
