//! Why a run of a workflow cannot begin or go on.

use std::io;
use std::path::PathBuf;

/// Why a run cannot begin or go on. What keeps a single step from beginning is that step's result
/// instead.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    /// Nothing is there to go on with.
    #[error("there is no run of `{0}` here to go on with")]
    NoRun(String),
    /// The steps are not those that the run began with.
    #[error("`{}` was changed since the run `{run}` began", path.display())]
    Changed {
        /// The workflow's file.
        path: PathBuf,
        /// The id of the run.
        run: String,
    },
    /// A run belongs to one process at a time.
    #[error("another process works on the run `{0}`; wait for its end")]
    Busy(String),
    /// A file of the runs cannot be used.
    #[error("cannot {verb} `{}`", path.display())]
    File {
        /// What could not be done with it.
        verb: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A step ended without a result; what it did is stored, and the run can be gone on with.
    #[error("a step of the workflow panicked")]
    Panicked(#[from] tokio::task::JoinError),
}
