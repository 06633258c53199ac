//! The project folder: where it begins, and whether it can be read.

use std::path::{Path, PathBuf};

use crate::environment::HostEnvironment;
use crate::error::FolderError;

/// The project a run works in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// Its root: the nearest parent with a `.git` or `.haft`, else the working directory itself.
    pub root: PathBuf,
    /// Where relative paths start.
    pub cwd: PathBuf,
}

impl Project {
    /// The project around this folder, or around the current one.
    pub fn find(environment: &HostEnvironment, cwd: Option<&Path>) -> Result<Self, FolderError> {
        let given = cwd.unwrap_or(Path::new("."));
        let cwd = environment
            .cwd()
            .join(given)
            .canonicalize()
            .map_err(|error| unreadable(given, error))?;
        // Opening it proves what `canonicalize` does not: that the folder can be read.
        std::fs::read_dir(&cwd).map_err(|error| unreadable(&cwd, error))?;
        let home = environment.home();
        let root = cwd
            .ancestors()
            .take_while(|folder| Some(*folder) != home.as_deref())
            .find(|folder| folder.join(".git").exists() || folder.join(".haft").exists());
        Ok(Self {
            root: root.unwrap_or(&cwd).to_owned(),
            cwd,
        })
    }

    /// Under which its conversations are kept.
    pub fn namespace(&self) -> String {
        self.root.display().to_string()
    }
}

fn unreadable(folder: &Path, error: std::io::Error) -> FolderError {
    FolderError::Project {
        folder: folder.to_owned(),
        error,
    }
}
