//! From the path a model wrote to the one file it means, with every link followed.
//!
//! Invariant: a path that [`resolve`] returns is absolute, holds no link, `.` or `..`, and lies in the workspace. Links are
//! followed by hand rather than with `canonicalize`, so that a file that does not exist yet is resolved too: a dangling link
//! that points outside the project must not become a way out of it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

use haft_tool::Workspace;

use crate::failure::Coded;

/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

/// A path that no tool may use.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PathError {
    /// Nothing was given.
    #[error("`path` is empty: give a path relative to the working directory, such as `src/main.rs`")]
    Empty,
    /// It leads out of the workspace.
    #[error("`{given}` resolves to `{resolved}`, which is outside the project (`{root}`); use a path inside it")]
    Outside {
        /// What the model wrote.
        given: String,
        /// Where it leads.
        resolved: PathBuf,
        /// The project.
        root: PathBuf,
    },
    /// Links lead in a circle.
    #[error("`{given}` goes through more than {MAX_LINKS} symbolic links; use the path of the file itself")]
    Links {
        /// What the model wrote.
        given: String,
    },
    /// A part of it can't be looked at.
    #[error("cannot look at `{at}` while resolving `{given}`: {source}")]
    Io {
        /// What the model wrote.
        given: String,
        /// The part that failed.
        at: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Coded for PathError {
    fn code(&self) -> &'static str {
        match self {
            Self::Empty => "invalid_path",
            Self::Outside { .. } => "outside_workspace",
            Self::Links { .. } => "too_many_links",
            Self::Io { .. } => "io",
        }
    }
}

/// The file a path means. What does not exist is resolved as far as it does.
pub(crate) fn resolve(workspace: &Workspace, given: &str) -> Result<PathBuf, PathError> {
    if given.is_empty() {
        return Err(PathError::Empty);
    }
    let resolved = follow(&workspace.cwd, given)?;
    if workspace.contains(&resolved) {
        Ok(resolved)
    } else {
        Err(PathError::Outside { given: given.to_owned(), resolved, root: workspace.root.clone() })
    }
}

/// The path as a model can give it back to a tool: relative to the working directory where it lies inside.
pub(crate) fn shown(workspace: &Workspace, path: &Path) -> String {
    match path.strip_prefix(&workspace.cwd) {
        Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
        Ok(relative) => relative.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}

/// One step of a path that still has to be walked.
enum Step {
    Root,
    Parent,
    Down(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = Step> + '_ {
    path.components().filter_map(|component| match component {
        Component::RootDir | Component::Prefix(_) => Some(Step::Root),
        Component::CurDir => None,
        Component::ParentDir => Some(Step::Parent),
        Component::Normal(name) => Some(Step::Down(name.to_owned())),
    })
}

/// Where a path leads from a folder that has no links in its name, wherever that is.
pub(crate) fn follow(cwd: &Path, given: &str) -> Result<PathBuf, PathError> {
    let mut todo: VecDeque<Step> = steps(Path::new(given)).collect();
    let mut at = cwd.to_owned();
    let mut links = 0;
    while let Some(step) = todo.pop_front() {
        match step {
            Step::Root => at = PathBuf::from("/"),
            // `at` holds no links, so its parent is its real parent.
            Step::Parent => {
                at.pop();
            }
            Step::Down(name) => {
                at.push(name);
                let fail = |at: &Path, source| PathError::Io { given: given.to_owned(), at: at.to_owned(), source };
                match at.symlink_metadata() {
                    Ok(found) if found.is_symlink() => {
                        links += 1;
                        if links > MAX_LINKS {
                            return Err(PathError::Links { given: given.to_owned() });
                        }
                        let target = at.read_link().map_err(|source| fail(&at, source))?;
                        at.pop();
                        for step in steps(&target).rev() {
                            todo.push_front(step);
                        }
                    }
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(source) => return Err(fail(&at, source)),
                }
            }
        }
    }
    Ok(at)
}

#[cfg(test)]
mod tests;
