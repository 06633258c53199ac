//! The `[sandbox]` section of the configuration.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Settings of the sandbox that confines commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// The layer that confines commands.
    pub mode: SandboxMode,
    /// Hosts that commands may reach, such as `crates.io` or `*.example.com:443`; a single `*`
    /// allows the whole network.
    pub network: Vec<String>,
    /// Additional folders that commands may write to; absolute, or `~/…` for the home folder.
    pub writable: Vec<PathBuf>,
    /// Additional folders and files that commands may not read; absolute or `~/…`.
    pub hidden: Vec<PathBuf>,
    /// Folders and files that commands may read although they are below `/tmp` or in a hidden
    /// folder; absolute or `~/…`.
    pub readable: Vec<PathBuf>,
    /// True if `hidden` lacks files, because the project has too many entries to find all that a
    /// rule denies. Not a setting.
    #[serde(skip)]
    pub lacks_hidden: bool,
}

/// The layer that confines commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SandboxMode {
    /// The strongest layer that works on this machine.
    #[default]
    Auto,
    /// Namespaces only. If they are not available, each command needs an approval.
    Namespace,
    /// Landlock only. If it is not available, each command needs an approval.
    Landlock,
    /// No confinement: each command needs an approval.
    Off,
}
