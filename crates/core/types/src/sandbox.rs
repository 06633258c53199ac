//! The status of the sandbox that commands run in.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The mechanism that confines commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLayer {
    /// Linux namespaces: commands can write only in the project, except for protected files, and
    /// have no network.
    Namespace,
    /// Landlock and a system call filter: commands can write only in the project, including its
    /// protected files.
    Landlock,
    /// Commands are not confined.
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

/// The sandbox in which commands run, and the reasons if it is not the strongest one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxStatus {
    pub layer: SandboxLayer,
    /// The reasons why no stronger mechanism is used; empty for the strongest.
    pub reasons: Vec<String>,
}
