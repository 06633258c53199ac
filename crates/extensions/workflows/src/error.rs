//! Errors that stop a whole run.

use std::io;
use std::path::PathBuf;

/// The reason why a workflow run stopped before or between its steps. An error that only prevents a
/// single step from starting is not such an error, but becomes the result of the step.
#[derive(Debug, thiserror::Error)]
pub enum WorkflowError {
    /// There is no run of the workflow to resume.
    #[error("there is no run of `{0}` here to go on with")]
    NoRun(String),
    /// The file of the workflow has changed since the run began.
    #[error("`{}` was changed since the run `{run}` began", path.display())]
    Changed {
        path: PathBuf,
        /// The id of the run that was to be resumed.
        run: String,
    },
    /// Another process has locked the run.
    #[error("another process works on the run `{0}`; wait for its end")]
    Busy(String),
    /// A file of a run could not be read, written, or locked.
    #[error("cannot {verb} `{}`", path.display())]
    File {
        /// A verb for the error message that names the failed operation, such as `read`.
        verb: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    /// A step panicked. Its work so far is stored, and the run can be resumed.
    #[error("a step of the workflow panicked")]
    Panicked(#[from] tokio::task::JoinError),
}
