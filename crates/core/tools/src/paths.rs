//! Resolves the paths that a model writes, following all symbolic links.
//!
//! Invariant: a path that [`resolve_path`] returns is absolute, contains no symbolic link, `.` or
//! `..`, and lies in the workspace.

use std::path::{Path, PathBuf};

use haft_tool::{LinkError, Workspace, follow_links};

use crate::failure::Coded;

/// An error for a path that no tool may use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    #[error(
        "`path` is empty: give a path relative to the working directory, such as `path/to/main.rs`"
    )]
    Empty,
    /// The path leads out of the workspace.
    #[error(
        "`{given}` resolves to `{resolved}`, which is outside the project (`{root}`); use a path inside it"
    )]
    Outside {
        /// The path as the model wrote it.
        given: String,
        /// The path after following links.
        resolved: PathBuf,
        /// The root of the project.
        root: PathBuf,
    },
    /// The symbolic links of the path cannot be followed.
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

/// Resolves a path that the model wrote, and checks that it lies in the workspace. Components that
/// do not exist are appended unchanged.
pub(crate) fn resolve_path(workspace: &Workspace, given: &str) -> Result<PathBuf, PathError> {
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

/// Formats a path so that the model can pass it to a tool: relative to the working directory if the
/// path lies inside it, else absolute.
pub(crate) fn display_path(workspace: &Workspace, path: &Path) -> String {
    match path.strip_prefix(&workspace.cwd) {
        Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
        Ok(relative) => relative.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

#[cfg(test)]
mod tests;
