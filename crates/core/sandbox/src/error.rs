//! Errors of commands that could not be run.

use std::io;
use std::path::PathBuf;

use crate::{ConfinementStep, HiddenPath};

/// The reason why a command could not be run. A non-zero exit is not an error; see
/// [`CommandExit`](crate::CommandExit).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The request is invalid, for example an argument contains a NUL character.
    #[error("the command cannot be run: {what}")]
    Invalid {
        /// The reason, as a clause for the error message.
        what: &'static str,
    },
    /// The working folder is missing or not accessible.
    #[error("cannot run in the folder `{}`: {source}; give an existing folder", cwd.display())]
    Folder { cwd: PathBuf, source: io::Error },
    /// The program is missing or not executable.
    #[error("cannot run the program `{program}`: {source}; check its name and the `PATH`")]
    Program { program: String, source: io::Error },
    /// The program, or the interpreter of a script, exists, but the sandbox hides it.
    #[error(
        "cannot run the program: {path}; move it to another folder, or add that path to `[sandbox] readable`"
    )]
    HiddenProgram { path: HiddenPath },
    /// The working folder exists, but the sandbox hides it.
    #[error(
        "cannot run in the folder: {path}; move it to another folder, or add that path to `[sandbox] readable`"
    )]
    HiddenFolder { path: HiddenPath },
    /// The helper process could not be started.
    #[error("cannot start the supervisor `{}`: {source}", helper.display())]
    Helper {
        /// The helper's executable.
        helper: PathBuf,
        source: io::Error,
    },
    /// No pseudo-terminal could be opened for the command.
    #[error(
        "cannot open a terminal: {source}; there may be too many of them, or `/dev/ptmx` is missing"
    )]
    Terminal { source: io::Error },
    /// The confinement could not be set up, so the command was not run.
    #[error("cannot confine the command ({step}: {source}), so it was not run")]
    Confinement {
        /// The step of setting up the confinement that failed.
        step: ConfinementStep,
        source: io::Error,
    },
    /// The helper ended without reporting how the command ended.
    #[error("the supervisor `{}` ended before the command did; whatever it had started was ended with it", helper.display())]
    HelperLost {
        /// The helper's executable.
        helper: PathBuf,
    },
}
