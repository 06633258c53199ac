//! The status of the sandbox that commands run in.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What holds commands in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLayer {
    /// Namespaces of their own: writes stay in the project, away from protected files, and there is
    /// no network.
    Namespace,
    /// Landlock and a filter of system calls: writes stay in the project, protected files of it
    /// included.
    Landlock,
    /// Nothing.
    #[default]
    None,
}

impl fmt::Display for SandboxLayer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Namespace => "namespace",
            Self::Landlock => "landlock",
            Self::None => "none",
        })
    }
}

/// What holds commands in, and why it is no more than that.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxStatus {
    /// What holds them in.
    pub layer: SandboxLayer,
    /// Why nothing better does; empty for the best.
    pub reasons: Vec<String>,
}
