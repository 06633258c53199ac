//! The `[tui]` section of the configuration.

use serde::{Deserialize, Serialize};

/// Settings of the terminal interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuiConfig {
    /// The key bindings of the input line.
    pub editing: Editing,
    /// If true, prints plain lines and redraws nothing, for screen readers. `--plain` does this for
    /// one run.
    pub plain: bool,
    /// The number of prompts kept for the project's next session; 0 keeps none.
    pub history: usize,
    /// If true, a bell, the window title and a notification report that a question has opened or a
    /// long turn has ended.
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
