//! Takes tasks from the queue of a team and has them run: who gets a slot, how long a lease holds,
//! where a task works, and what is given back.
//!
//! The binary stands behind [`TaskHost`]: it opens sessions. This crate reads no environment, home
//! folder or configuration file, and blocks: each task has a thread.
//!
//! Read first: [`Worker`] (the loop), [`Workspaces`] (a fresh clone for each run), [`TaskHost`].

mod config;
mod extension;
mod kept_files;
mod metrics;
mod slot;
mod work;
mod workspace;

pub use config::{LabelLimits, WorkerConfig};
pub use extension::{SECTION, WorkerExtension};
pub use metrics::serve_metrics;
pub use slot::{Slot, TaskRun, TaskStop};
pub use work::{RunEnd, TaskHost, Worker, WorkerOptions};
pub use workspace::{TaskWorkspace, WorkspaceError, Workspaces};
