//! From the path a model wrote to the one file it means, with every link followed.
//!
//! Invariant: a path that [`resolve`] returns is absolute, holds no link, `.` or `..`, and lies in
//! the workspace.

use std::path::{Path, PathBuf};

use haft_tool::{LinkError, Workspace, follow_links};

use crate::failure::Coded;

/// A path that no tool may use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// Nothing was given.
    #[error(
        "`path` is empty: give a path relative to the working directory, such as `path/to/main.rs`"
    )]
    Empty,
    /// It leads out of the workspace.
    #[error(
        "`{given}` resolves to `{resolved}`, which is outside the project (`{root}`); use a path inside it"
    )]
    Outside {
        /// What the model wrote.
        given: String,
        /// Where it leads.
        resolved: PathBuf,
        /// The project.
        root: PathBuf,
    },
    /// It leads nowhere.
    #[error(transparent)]
    Links(#[from] LinkError),
}

impl Coded for PathError {
    fn code(&self) -> &'static str {
        match self {
            Self::Empty => "invalid_path",
            Self::Outside { .. } => "outside_workspace",
            Self::Links(LinkError::TooMany { .. }) => "too_many_links",
            Self::Links(LinkError::Io { .. }) => "io",
        }
    }
}

/// The file a path means. What does not exist is resolved as far as it does.
pub(crate) fn resolve(workspace: &Workspace, given: &str) -> Result<PathBuf, PathError> {
    if given.is_empty() {
        return Err(PathError::Empty);
    }
    let resolved = follow_links(&workspace.cwd, given)?;
    if workspace.contains(&resolved) {
        Ok(resolved)
    } else {
        Err(PathError::Outside {
            given: given.to_owned(),
            resolved,
            root: workspace.root.clone(),
        })
    }
}

/// The path as a model can give it back to a tool: relative to the working directory where it lies
/// inside.
pub(crate) fn shown(workspace: &Workspace, path: &Path) -> String {
    match path.strip_prefix(&workspace.cwd) {
        Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
        Ok(relative) => relative.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests;
