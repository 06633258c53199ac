//! Reports on the state of background tasks.

use std::fmt::Write as _;
use std::path::PathBuf;

use haft_types::TaskPhase;
use serde::{Deserialize, Serialize};

use super::phrases::command_title;

/// The state of a background task, as it is announced to the model and stored for a later process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// The id of the task within the conversation.
    pub id: String,
    /// The command line of the task.
    pub command: String,
    pub phase: TaskPhase,
    /// The exit code; `None` if the command is running or did not exit with a code.
    pub exit_code: Option<i32>,
    /// The path of the file with the output.
    pub output: Option<PathBuf>,
    /// A description of the state, as the rest of a sentence that begins with the task's id.
    pub words: String,
    /// The last lines of the output of a failed task; empty for other tasks.
    pub last_lines: String,
}

impl TaskReport {
    /// Describes the state of the task in one sentence.
    pub fn to_sentence(&self) -> String {
        format!(
            "{} ({}) {}.",
            self.id,
            command_title(&self.command),
            self.words
        )
    }
}

/// Formats the message that announces tasks that have ended to the model.
pub fn format_announcement(reports: &[TaskReport]) -> String {
    let mut text = String::from("Background tasks have ended:");
    for report in reports {
        let _ = write!(text, "\n- {}", report.to_sentence());
        if let Some(output) = &report.output {
            let _ = write!(text, " Its output is in `{}`.", output.display());
        }
        for line in report.last_lines.lines() {
            let _ = write!(text, "\n    {line}");
        }
    }
    text
}
