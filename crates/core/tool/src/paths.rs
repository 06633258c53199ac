//! Where a path leads, with every link followed.
//!
//! Invariant: a path that [`follow_links`] returns is absolute and holds no link, `.` or `..`.
//! Links are followed by hand rather than with `canonicalize`, so that a file that does not exist
//! yet is resolved too: a dangling link that points outside the project must not become a way out
//! of it.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::{Component, Path, PathBuf};

/// As many links as Linux follows.
const MAX_LINKS: usize = 40;

/// A path that leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// Links lead in a circle.
    #[error(
        "`{given}` goes through more than {MAX_LINKS} symbolic links; use the path of the file itself"
    )]
    TooMany {
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

/// One step of a path that still has to be walked.
enum PathStep {
    Root,
    Parent,
    Down(OsString),
}

fn steps(path: &Path) -> impl DoubleEndedIterator<Item = PathStep> + '_ {
    path.components().filter_map(|component| match component {
        Component::RootDir | Component::Prefix(_) => Some(PathStep::Root),
        Component::CurDir => None,
        Component::ParentDir => Some(PathStep::Parent),
        Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
    })
}

/// Where a path leads from a folder that has no links in its name, wherever that is. What does not
/// exist is resolved as far as it does.
pub fn follow_links(cwd: &Path, given: &str) -> Result<PathBuf, LinkError> {
    let mut todo: VecDeque<PathStep> = steps(Path::new(given)).collect();
    let mut at = cwd.to_owned();
    let mut links = 0;
    while let Some(step) = todo.pop_front() {
        match step {
            PathStep::Root => at = PathBuf::from("/"),
            // `at` holds no links, so its parent is its real parent.
            PathStep::Parent => {
                at.pop();
            }
            PathStep::Down(name) => {
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
