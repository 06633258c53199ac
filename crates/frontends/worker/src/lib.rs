//! Takes tasks from a team's queue and runs them: decides which slot runs a task, how long its
//! lease lasts, which folder it works in, and what is returned to the queue.
//!
//! Sessions are opened through `agent`; the binary passes in the function that adds the extensions
//! of its build. This crate must not read the environment, the home folder or configuration files.
//! It blocks: each task has a thread.
//!
//! Read first: [`Worker`] (the loop), `task_report.rs` (the end of a run), [`TaskRunner`] (one task), [`Workspaces`] (a fresh clone for
//! each run).

/// Returns a message of `messages/LANGUAGE` by its key: `text!("task-used-up")`.
macro_rules! text {
    ($($message:tt)+) => { haft_messages::message!(&crate::MESSAGES, $($message)+) };
}

mod clone_lock;
mod config;
mod extension;
mod heartbeats;
mod host_health;
mod kept_files;
mod metrics;
mod mirrors;
mod push;
mod slot;
mod task_meter;
mod task_report;
mod task_runner;
mod wakeup;
mod webhook;
mod worker_loop;
#[cfg(feature = "workflows")]
mod workflow_task;
mod workspace;
mod workspace_files;

use haft_messages::MessageFile;

pub use config::{LabelLimits, WorkerConfig};
pub use extension::{SECTION, WorkerExtension};
pub use metrics::serve_metrics;
pub use slot::{Slot, TaskRun, TaskStop};
pub use task_report::RunEnd;
pub use task_runner::{BuildAgent, TaskRunner, yolo_refusal};
pub use webhook::{AnnounceEnd, Webhook};
pub use worker_loop::{Worker, WorkerOptions, WorkerStop};
pub use workspace::{BuildGit, TaskWorkspace, WorkspaceError, Workspaces};

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
