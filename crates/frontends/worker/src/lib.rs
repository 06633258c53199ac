//! Takes tasks from a team's queue and runs them: decides which slot runs a task, how long its
//! lease lasts, which folder it works in, and what is returned to the queue.
//!
//! The binary implements [`TaskHost`], which opens sessions. This crate must not read the
//! environment, the home folder or configuration files. It blocks: each task has a thread.
//!
//! Read first: [`Worker`] (the loop), [`Workspaces`] (a fresh clone for each run), [`TaskHost`].

mod config;
mod extension;
mod kept_files;
mod metrics;
mod slot;
mod worker_loop;
mod workspace;

pub use config::{LabelLimits, WorkerConfig};
pub use extension::{SECTION, WorkerExtension};
pub use metrics::serve_metrics;
pub use slot::{Slot, TaskRun, TaskStop};
pub use worker_loop::{RunEnd, TaskHost, Worker, WorkerOptions};
pub use workspace::{TaskWorkspace, WorkspaceError, Workspaces};
