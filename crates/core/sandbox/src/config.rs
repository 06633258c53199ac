//! The `[sandbox]` section of the configuration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How commands are held in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// By which means.
    pub mode: SandboxMode,
    /// Hosts that commands may reach, such as `crates.io` or `*.example.com:443`; `*` alone is the
    /// whole network.
    pub network: Vec<String>,
    /// Further folders that commands may write; absolute, or below the home folder with `~/`.
    pub writable: Vec<PathBuf>,
    /// Further folders and files that commands may not read; written the same way.
    pub hidden: Vec<PathBuf>,
    /// Folders and files that commands may read although they lie below `/tmp` or in a hidden
    /// folder; written the same way.
    pub readable: Vec<PathBuf>,
}

/// By which means commands are held in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// The best there is here.
    #[default]
    Auto,
    /// Namespaces; without them each command is asked for.
    Namespace,
    /// Landlock; without it each command is asked for.
    Landlock,
    /// Not at all: each command is asked for.
    Off,
}
