//! Workflows: files of steps for agents, each run once what it needs is done.
//!
//! A file is checked whole before anything of it runs. A step is a session of its own, opened
//! through [`haft_agent::Agent`]; what has been done is on disk, so that another process can go on
//! with it. This crate prints nothing and knows no command line: a front end gives it an agent and
//! an observer, and makes sentences of the report.
//!
//! Read first: [`select()`] (finds a workflow for a run), [`Workflow`] (a file), [`WorkflowRun`] (what runs its steps), [`WorkflowRuns`] (what
//! is kept of runs), [`WorkflowObserver`] (who is shown what happens).

mod asking;
mod check;
mod error;
mod observer;
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
pub use select::{SelectError, StepModelError, WorkflowInputError, select};
pub use workflow::{Workflow, WorkflowStep, load};
