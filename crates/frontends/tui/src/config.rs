//! The `[tui]` section of the configuration.

use serde::{Deserialize, Serialize};

/// Settings of the terminal interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuiConfig {
    /// The key bindings of the input line.
    pub editing: Editing,
    /// Prints plain lines and redraws nothing, for screen readers. `--plain` does this once.
    pub plain: bool,
    /// The number of prompts kept for the project's next session; 0 keeps none.
    pub history: usize,
    /// Uses the bell, the title and a notification when a question opens or a long turn ends.
    pub notifications: bool,
}

impl Default for TuiConfig {
    fn default() -> Self {
        Self {
            editing: Editing::Shell,
            plain: false,
            history: 500,
            notifications: true,
        }
    }
}

/// The key bindings of the input line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Editing {
    /// Shell bindings, as in readline.
    #[default]
    Shell,
    /// Vim bindings.
    Vim,
}
