//! Takes tasks from a team's queue and runs them: decides which slot runs a task, how long its
//! lease lasts, which folder it works in, and what is returned to the queue.
//!
//! Sessions are opened through `agent`; the binary passes in the function that adds the extensions
//! of its build. This crate must not read the environment, the home folder or configuration files.
//! It blocks: each task has a thread.
//!
//! Read first: [`Worker`] (the loop), [`TaskRunner`] (one task), [`Workspaces`] (a fresh clone for
//! each run).

/// Returns a message of `messages/LANGUAGE` by its key: `text!("task-used-up")`.
macro_rules! text {
    ($($message:tt)+) => { haft_messages::message!(&crate::MESSAGES, $($message)+) };
}

mod config;
mod extension;
mod kept_files;
mod metrics;
mod slot;
mod task_meter;
mod task_runner;
mod worker_loop;
#[cfg(feature = "workflows")]
mod workflow_task;
mod workspace;

use haft_messages::MessageFile;

pub use config::{LabelLimits, WorkerConfig};
pub use extension::{SECTION, WorkerExtension};
pub use metrics::serve_metrics;
pub use slot::{Slot, TaskRun, TaskStop};
pub use task_runner::{BuildAgent, TaskRunner, yolo_refusal};
pub use worker_loop::{RunEnd, Worker, WorkerOptions};
pub use workspace::{TaskWorkspace, WorkspaceError, Workspaces};

/// The messages about tasks. Every key begins with the name of its file.
static MESSAGES: [MessageFile; 1] = [MessageFile::new(
    "task",
    include_str!("../messages/en/task.ftl"),
    include_str!("../messages/zh-CN/task.ftl"),
)];

/// Translates an English text of a library to the user's language.
#[cfg(feature = "workflows")]
fn localize_text(text: impl std::fmt::Display) -> String {
    haft_messages::translate_error(&text.to_string()).into_owned()
}
