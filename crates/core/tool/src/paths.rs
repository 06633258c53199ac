//! Path resolution that follows every symbolic link.
//!
//! Invariant: a path that [`follow_links`] returns is absolute and contains no link, `.` or `..`.
//! Links are followed here rather than with `canonicalize`, so that a file that does not exist yet
//! is resolved too: a dangling link that points outside the project must not become a way out of
//! it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// The maximum number of symbolic links followed for one path, as in Linux.
const MAX_LINKS: usize = 40;

/// The reason why a path could not be resolved.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The path contains a cycle of symbolic links, or too many links.
    #[error(
        "`{given}` goes through more than {MAX_LINKS} symbolic links; use the path of the file itself"
    )]
    TooMany {
        /// The path as the model wrote it.
        given: String,
    },
    /// A component of the path could not be inspected.
    #[error("cannot look at `{at}` while resolving `{given}`: {source}")]
    Io {
        /// The path as the model wrote it.
        given: String,
        /// The component that failed.
        at: PathBuf,
        source: io::Error,
    },
}

/// One component of a path that must still be resolved.
enum PathStep {
    Root,
    Parent,
    Child(OsString),
}

fn split_path(path: &Path) -> impl DoubleEndedIterator<Item = PathStep> + '_ {
    path.components().filter_map(|component| match component {
        Component::RootDir | Component::Prefix(_) => Some(PathStep::Root),
        Component::CurDir => None,
        Component::ParentDir => Some(PathStep::Parent),
        Component::Normal(name) => Some(PathStep::Child(name.to_owned())),
    })
}

/// Resolves the symbolic links in the path `given`, relative to `cwd`, which must contain no links.
/// The path may lead outside of `cwd`. Components that do not exist are kept as they are.
pub fn follow_links(cwd: &Path, given: &str) -> Result<PathBuf, LinkError> {
    let mut todo: VecDeque<PathStep> = split_path(Path::new(given)).collect();
    let mut at = cwd.to_owned();
    let mut links = 0;
    while let Some(step) = todo.pop_front() {
        match step {
            PathStep::Root => at = PathBuf::from("/"),
            // `at` holds no links, so its parent is its real parent.
            PathStep::Parent => {
                at.pop();
            }
            PathStep::Child(name) => {
                at.push(name);
                let fail = |at: &Path, source| LinkError::Io {
                    given: given.to_owned(),
                    at: at.to_owned(),
                    source,
                };
                match at.symlink_metadata() {
                    Ok(found) if found.is_symlink() => {
                        links += 1;
                        if links > MAX_LINKS {
                            return Err(LinkError::TooMany {
                                given: given.to_owned(),
                            });
                        }
                        let target = at.read_link().map_err(|source| fail(&at, source))?;
                        at.pop();
                        for step in split_path(&target).rev() {
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
