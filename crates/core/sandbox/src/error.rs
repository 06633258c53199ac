//! Why a command could not be run.

use std::io;
use std::path::PathBuf;

use crate::{ConfinementStep, HiddenPath};

/// A command could not be run. How a command that ran has ended is no error but an
/// [`CommandExit`](crate::Exit).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SandboxError {
    /// The command itself makes no sense.
    #[error("the command cannot be run: {what}")]
    Invalid {
        /// What is wrong with it.
        what: &'static str,
    },
    /// The folder to run in is missing or closed.
    #[error("cannot run in the folder `{}`: {source}; give an existing folder", cwd.display())]
    Folder {
        /// The folder asked for.
        cwd: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The program is missing or is none.
    #[error("cannot run the program `{program}`: {source}; check its name and the `PATH`")]
    Program {
        /// The program asked for.
        program: String,
        /// What the system said.
        source: io::Error,
    },
    /// The program or the interpreter of a script exists, but the sandbox hides it.
    #[error(
        "cannot run the program: {path}; move it to another folder, or add that path to `[sandbox] readable`"
    )]
    HiddenProgram {
        /// The path that is hidden.
        path: HiddenPath,
    },
    /// The folder to run in exists, but the sandbox hides it.
    #[error(
        "cannot run in the folder: {path}; move it to another folder, or add that path to `[sandbox] readable`"
    )]
    HiddenFolder {
        /// The path that is hidden.
        path: HiddenPath,
    },
    /// The helper could not be started.
    #[error("cannot start the supervisor `{}`: {source}", helper.display())]
    Helper {
        /// The executable.
        helper: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// There is no terminal for it.
    #[error(
        "cannot open a terminal: {source}; there may be too many of them, or `/dev/ptmx` is missing"
    )]
    Terminal {
        /// What the system said.
        source: io::Error,
    },
    /// It could not be confined as it was to be, so it was not run.
    #[error("cannot confine the command ({step}: {source}), so it was not run")]
    Confinement {
        /// What failed.
        step: ConfinementStep,
        /// What the system said.
        source: io::Error,
    },
    /// The helper ended without a word about the command.
    #[error("the supervisor `{}` ended before the command did; whatever it had started was ended with it", helper.display())]
    HelperLost {
        /// The executable.
        helper: PathBuf,
    },
}
