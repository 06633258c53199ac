//! The project folder of a run.

use std::path::{Path, PathBuf};

use crate::environment::HostEnvironment;
use crate::error::FolderError;

/// The project of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Project {
    /// The root: the nearest parent folder with a `.git` or `.haft`, else the working directory
    /// itself.
    pub root: PathBuf,
    /// The working directory, to which relative paths refer.
    pub cwd: PathBuf,
}

impl Project {
    /// Finds the project that contains `cwd`, which defaults to the working directory of the
    /// environment.
    pub fn find(environment: &HostEnvironment, cwd: Option<&Path>) -> Result<Self, FolderError> {
        let given = cwd.unwrap_or(Path::new("."));
        let cwd = environment
            .cwd()
            .join(given)
            .canonicalize()
            .map_err(|error| unreadable_folder_error(given, error))?;
        // `canonicalize` succeeds for folders that cannot be read.
        std::fs::read_dir(&cwd).map_err(|error| unreadable_folder_error(&cwd, error))?;
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

    /// Returns the namespace of the project's conversations in the store.
    pub fn namespace(&self) -> String {
        self.root.display().to_string()
    }
}

fn unreadable_folder_error(folder: &Path, error: std::io::Error) -> FolderError {
    FolderError::Project {
        folder: folder.to_owned(),
        error,
    }
}
