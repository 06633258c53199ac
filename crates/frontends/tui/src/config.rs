//! The `[tui]` section of the configuration.

use serde::{Deserialize, Serialize};

/// How the terminal interface behaves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TuiConfig {
    /// Whose keys edit what is typed.
    pub editing: Editing,
    /// Plain lines of text, nothing redrawn: for screen readers. `--plain` does it once.
    pub plain: bool,
    /// How many of the texts that were sent are kept for the next session of the project; 0 keeps
    /// none.
    pub history: usize,
    /// The bell, the title and a notification when a question waits or a long turn ends.
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

/// Whose keys edit what is typed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Editing {
    /// Those of shells.
    #[default]
    Shell,
    /// Those of vi.
    Vim,
}
