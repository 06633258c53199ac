//! Runs workflows: files of steps for agents, where each step starts when the steps it needs are
//! done.
//!
//! A file is checked completely before any of its steps runs. Each step is a session, opened
//! through [`haft_agent::Agent`]. The state of a run is on disk, so another process can resume it.
//!
//! This crate prints nothing and knows no command line: a front end passes an agent and an
//! observer, and words the report.
//!
//! Start with [`select_workflow`] (finds a workflow for a run), [`Workflow`] (a parsed file),
//! [`WorkflowRun`] (runs the steps), [`WorkflowRuns`] (stores the state of runs), and
//! [`WorkflowObserver`] (receives the events).

mod auto_coder;
mod check;
mod error;
mod observer;
mod queued_approver;
mod record;
mod schedule;
mod select;
mod step;
mod template;
mod work_copy;
mod workflow;

pub use error::WorkflowError;
pub use observer::WorkflowObserver;
pub use record::{HeldRun, RecordListener, RunRecord, StepRecord, WorkflowRuns};
pub use schedule::{WorkflowReport, WorkflowRun};
pub use select::{SelectError, StepModelError, WorkflowInputError, select_workflow};
pub use workflow::{Workflow, WorkflowOrigin, WorkflowStep, load_workflows};
