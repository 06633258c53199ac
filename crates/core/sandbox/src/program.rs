//! haft's own program as an open file.
//!
//! A command may be allowed to write the folder that haft is installed in (`node_modules/.bin`,
//! `.venv/bin`, `target/`). If the helper were started by its path, a command could put a program
//! of its own there, and that would run outside the sandbox. The program is therefore opened once,
//! and the open file is what is executed.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A program that was opened and is executed by its descriptor, whatever its path names later.
#[derive(Clone, Debug, Default)]
pub struct OwnProgram {
    path: PathBuf,
    file: Option<Arc<OwnedFd>>,
}

impl OwnProgram {
    /// Opens the program at `path`.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = File::open(&path)?;
        Ok(Self::from_file(file.into(), path))
    }

    /// A program that is open already. `path` is where it was found, for messages and for sealing.
    pub fn from_file(file: OwnedFd, path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            file: Some(Arc::new(file)),
        }
    }

    /// Opens the running program. On Linux this is the file that runs, even if its path names
    /// another one by now.
    pub fn running() -> io::Result<Self> {
        let path = std::env::current_exe()?;
        let own = if cfg!(target_os = "linux") {
            Path::new("/proc/self/exe")
        } else {
            path.as_path()
        };
        let file = File::open(own)?;
        Ok(Self::from_file(file.into(), path))
    }

    /// The path at which it was found.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the path to execute. It names the open file and is valid in this process and in a
    /// child that has not yet executed another program.
    pub fn executable(&self) -> OsString {
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

/// Names the running program to a command that a helper starts: the helper is the same program.
pub const OF_HELPER: &str = "/proc/self/exe";
