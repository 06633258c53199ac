//! Opens haft's own program once, so that helpers always run this file.
//!
//! A command may have write access to the folder that haft is installed in (`node_modules/.bin`,
//! `.venv/bin`, `target/`). If the helper were started by its path, a command could replace the
//! program there, and the replacement would run outside the sandbox. The program is therefore
//! opened once, and the open file is executed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use crate::program_path::create_command;

/// A program that was opened once and is executed through its descriptor, so that the same file
/// runs even if its path names another file later.
#[derive(Clone, Debug, Default)]
pub struct OwnProgram {
    path: PathBuf,
    /// The path by which the user started the program, with links unresolved.
    start_path: Option<PathBuf>,
    file: Option<Arc<OwnedFd>>,
}

impl OwnProgram {
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = File::open(&path)?;
        Ok(Self::from_file(file.into(), path))
    }

    /// Creates a program from an open file. `path` is used only for messages and for sealing the
    /// file.
    pub fn from_file(file: OwnedFd, path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            start_path: None,
            file: Some(Arc::new(file)),
        }
    }

    /// Sets the path by which the user started the program, which may be a link.
    #[must_use]
    pub fn with_start_path(mut self, start_path: Option<PathBuf>) -> Self {
        self.start_path = start_path;
        self
    }

    /// Returns the path by which the user started the program, if it is known.
    pub fn start_path(&self) -> Option<&Path> {
        self.start_path.as_deref()
    }

    /// Opens the program that is running now. On Linux this is the file that was started, even if
    /// its path names another file by now.
    pub fn open_running() -> io::Result<Self> {
        let path = std::env::current_exe()?;
        let own = if cfg!(target_os = "linux") {
            Path::new("/proc/self/exe")
        } else {
            path.as_path()
        };
        let file = File::open(own)?;
        Ok(Self::from_file(file.into(), path))
    }

    /// Returns the path at which the program was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a command that runs the open file.
    pub fn command(&self) -> Command {
        let mut command = create_command(&self.executable_path());
        command.arg0(&self.path);
        command
    }

    /// Returns a path that names the open file. The path is valid in this process, and in a child
    /// that has not yet executed another program.
    fn executable_path(&self) -> OsString {
        match &self.file {
            // The descriptor is closed on exec, which happens after the kernel has opened the
            // program.
            Some(file) if cfg!(target_os = "linux") => {
                format!("/proc/self/fd/{}", file.as_raw_fd()).into()
            }
            Some(_) | None => self.path.clone().into(),
        }
    }
}

impl PartialEq for OwnProgram {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for OwnProgram {}

/// The path by which a command can start haft itself: the helper that executes the command runs
/// haft's own file.
pub const HELPER_PROGRAM: &str = "/proc/self/exe";
