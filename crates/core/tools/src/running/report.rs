//! What became of a background task, and what the model reads of it.

use std::fmt::Write as _;
use std::path::PathBuf;

use haft_types::TaskPhase;
use serde::{Deserialize, Serialize};

use super::phrases::title;

/// What became of a background task, as it is announced and kept for a later run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReport {
    /// Its id within the conversation.
    pub id: String,
    /// What it runs.
    pub command: String,
    /// How far it has come.
    pub phase: TaskPhase,
    /// Its exit code, if it ended with one.
    pub exit_code: Option<i32>,
    /// The file with its output.
    pub output: Option<PathBuf>,
    /// What happened, as the rest of a sentence that begins with the task.
    pub words: String,
    /// The end of its output, where that says why.
    pub last_lines: String,
}

impl TaskReport {
    /// One sentence.
    pub fn sentence(&self) -> String {
        format!("{} ({}) {}.", self.id, title(&self.command), self.words)
    }
}

/// What the model reads of tasks that have ended, in one message.
pub fn announcement(reports: &[TaskReport]) -> String {
    let mut text = String::from("Background tasks have ended:");
    for report in reports {
        let _ = write!(text, "\n- {}", report.sentence());
        if let Some(output) = &report.output {
            let _ = write!(text, " Its output is in `{}`.", output.display());
        }
        for line in report.last_lines.lines() {
            let _ = write!(text, "\n    {line}");
        }
    }
    text
}
