//! Tracks the working folder of a script: `cd` is followed as far as the line itself determines it.

use std::path::{Component, Path, PathBuf};

use haft_tool::Workspace;

use haft_tool::follow_links;

/// The maximum number of possible folders that are tracked separately.
const MAX_PLACES: usize = 8;

/// The working folders in which a command may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkingFolders {
    /// The working folder is one of these absolute paths, spelled as the shell would print them.
    Known(Vec<PathBuf>),
    /// The working folder is known only to the shell.
    Unknown,
}

impl WorkingFolders {
    pub(crate) fn from_folder(folder: &Path) -> Self {
        Self::Known(vec![folder.to_owned()])
    }

    /// Returns the union of two sets of folders, or `Unknown` if the union has too many.
    pub(crate) fn union(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(mut places), Self::Known(others)) => {
                for other in others {
                    if !places.contains(&other) {
                        places.push(other);
                    }
                }
                if places.len() > MAX_PLACES {
                    Self::Unknown
                } else {
                    Self::Known(places)
                }
            }
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
        }
    }
}

/// Returns the files that a path may mean, with links resolved, or `None` if that cannot be
/// determined.
pub(crate) fn resolve_path(folders: &WorkingFolders, path: &str) -> Option<Vec<PathBuf>> {
    let top = Path::new("/");
    match folders {
        _ if path.is_empty() => None,
        _ if path.starts_with('/') => Some(vec![follow_links(top, path).ok()?]),
        WorkingFolders::Known(places) => places
            .iter()
            .map(|place| {
                let physical = follow_links(top, &place.to_string_lossy()).ok()?;
                follow_links(&physical, path).ok()
            })
            .collect(),
        WorkingFolders::Unknown => None,
    }
}

impl WorkingFolders {
    /// Returns the working folders after `cd PATH`. Returns `None` unless the new folders are in
    /// the workspace and do not depend on whether `..` is resolved before or after links.
    pub(super) fn enter(&self, path: &str, workspace: &Workspace) -> Option<Self> {
        let resolved = resolve_path(self, path)?;
        if path.starts_with('-') || !resolved.iter().all(|folder| workspace.contains(folder)) {
            return None;
        }
        let places: Vec<PathBuf> = match self {
            _ if path.starts_with('/') => vec![normalize_lexically(Path::new(path))],
            Self::Known(places) => places
                .iter()
                .map(|place| normalize_lexically(&place.join(path)))
                .collect(),
            Self::Unknown => return None,
        };
        let agree = places.iter().zip(&resolved).all(|(place, folder)| {
            follow_links(Path::new("/"), &place.to_string_lossy())
                .is_ok_and(|physical| physical == *folder)
        });
        agree.then_some(Self::Known(places))
    }
}

/// Removes `.` and `..` as the shell does: in the text of the path, without following links.
fn normalize_lexically(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                tidy.push(component);
            }
        }
    }
    tidy
}
