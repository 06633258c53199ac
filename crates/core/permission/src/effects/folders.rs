//! Where a script may be while it runs: `cd` is followed as far as the line itself tells.

use std::path::{Component, Path, PathBuf};

use haft_tool::Workspace;

use haft_tool::follow_links;

/// More places than these are not kept apart.
const MAX_PLACES: usize = 8;

/// The folders a command may run in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Folders {
    /// One of these: absolute, as the shell would print them.
    Known(Vec<PathBuf>),
    /// Only the shell knows.
    Unknown,
}

impl Folders {
    pub(crate) fn at(folder: &Path) -> Self {
        Self::Known(vec![folder.to_owned()])
    }

    /// Either of the two.
    pub(crate) fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(mut places), Self::Known(others)) => {
                for other in others {
                    if !places.contains(&other) {
                        places.push(other);
                    }
                }
                if places.len() > MAX_PLACES { Self::Unknown } else { Self::Known(places) }
            }
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
        }
    }
}

/// What the line runs on.
pub(crate) struct Ground<'a> {
    pub(crate) workspace: &'a Workspace,
}

/// The files a path may mean, links followed. None if that cannot be told.
pub(crate) fn resolve(folders: &Folders, path: &str) -> Option<Vec<PathBuf>> {
    let top = Path::new("/");
    match folders {
        _ if path.is_empty() => None,
        _ if path.starts_with('/') => Some(vec![follow_links(top, path).ok()?]),
        Folders::Known(places) => {
            let physical = |place: &PathBuf| follow_links(top, &place.to_string_lossy()).ok();
            places.iter().map(|place| follow_links(&physical(place)?, path).ok()).collect()
        }
        Folders::Unknown => None,
    }
}

impl Ground<'_> {
    /// Where `cd PATH` leads, if it stays in the workspace and both ways to read `..` after a link agree.
    pub(super) fn enter(&self, folders: &Folders, path: &str) -> Option<Folders> {
        let resolved = resolve(folders, path)?;
        if path.starts_with('-') || !resolved.iter().all(|folder| self.workspace.contains(folder)) {
            return None;
        }
        let places: Vec<PathBuf> = match folders {
            _ if path.starts_with('/') => vec![tidied(Path::new(path))],
            Folders::Known(places) => places.iter().map(|place| tidied(&place.join(path))).collect(),
            Folders::Unknown => return None,
        };
        let agree = places.iter().zip(&resolved).all(|(place, folder)| {
            follow_links(Path::new("/"), &place.to_string_lossy()).is_ok_and(|physical| physical == *folder)
        });
        agree.then_some(Folders::Known(places))
    }
}

/// The path without `.` and `..`, as the shell reads them: by the letters.
fn tidied(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                tidy.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => tidy.push(component),
        }
    }
    tidy
}
