//! Permission modes and decisions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// How much may happen without asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    /// Read only.
    Plan,
    /// Everything that changes or runs something is asked.
    #[default]
    #[serde(alias = "default")]
    Ask,
    /// Edits in the project are allowed, commands are asked.
    #[serde(alias = "acceptEdits")]
    AcceptEdits,
    /// Nothing is asked inside the sandbox.
    Auto,
    /// Nothing is asked and nothing is confined.
    #[serde(alias = "bypassPermissions")]
    Yolo,
}

impl PermissionMode {
    /// The name used in configuration and flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Ask => "ask",
            Self::AcceptEdits => "accept-edits",
            Self::Auto => "auto",
            Self::Yolo => "yolo",
        }
    }
}

impl fmt::Display for PermissionMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Not the name of a permission mode.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is not a permission mode; use plan, ask, accept-edits, auto or yolo")]
pub struct UnknownMode(String);

impl FromStr for PermissionMode {
    type Err = UnknownMode;

    /// Takes haft's names and those Claude Code users know.
    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Ok(match text {
            "plan" => Self::Plan,
            "ask" | "default" => Self::Ask,
            "accept-edits" | "acceptEdits" => Self::AcceptEdits,
            "auto" => Self::Auto,
            "yolo" | "bypassPermissions" => Self::Yolo,
            other => return Err(UnknownMode(other.to_owned())),
        })
    }
}

/// What is to happen with a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow,
    /// It does not; the reason is told to the model and the user.
    Deny {
        /// Why, and how it could be allowed.
        reason: String,
    },
}
