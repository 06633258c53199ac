//! Follows symbolic links one by one, because a protection that is found through a link ends when
//! the link is replaced.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The maximum number of links that are followed, like in the kernel.
const MAX_LINKS: usize = 40;

/// A symbolic link on the way to a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkStep {
    pub(super) folder: PathBuf,
    pub(super) name: OsString,
    pub(super) target: PathBuf,
}

/// A path without links, and the links that led to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FollowedPath {
    pub(super) links: Vec<LinkStep>,
    /// The path of the file. The file may be missing.
    pub(super) end: PathBuf,
}

/// Follows all links in an absolute path, including the last component.
pub(super) fn follow_links(path: &Path) -> FollowedPath {
    let mut links = Vec::new();
    let mut end = PathBuf::from("/");
    let mut left: VecDeque<OsString> = names(path).collect();
    while let Some(name) = left.pop_front() {
        if name == OsStr::new("..") {
            end.pop();
            continue;
        }
        let here = end.join(&name);
        match fs::read_link(&here) {
            Ok(target) if links.len() < MAX_LINKS => {
                for inner in names(&target).collect::<Vec<_>>().into_iter().rev() {
                    left.push_front(inner);
                }
                let folder = end.clone();
                if target.is_absolute() {
                    end = PathBuf::from("/");
                }
                links.push(LinkStep {
                    folder,
                    name,
                    target,
                });
            }
            Ok(_) | Err(_) => end = here,
        }
    }
    FollowedPath { links, end }
}

/// Returns the components of a path that change the folder.
fn names(path: &Path) -> impl Iterator<Item = OsString> {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn follow_links_lists_every_link_on_the_way() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("real/deep")).unwrap();
        symlink("real", root.join("folder")).unwrap();
        symlink("../folder/deep/missing", root.join("real/file")).unwrap();
        let step = |folder: &str, name: &str, target: &str| LinkStep {
            folder: root.join(folder),
            name: name.into(),
            target: target.into(),
        };
        let followed = follow_links(&root.join("folder/file"));
        assert_eq!(followed.end, root.join("real/deep/missing"));
        assert_eq!(
            followed.links,
            [
                step("", "folder", "real"),
                step("real", "file", "../folder/deep/missing"),
                step("", "folder", "real"),
            ]
        );
        symlink("loop", root.join("loop")).unwrap();
        assert_eq!(follow_links(&root.join("loop")).links.len(), MAX_LINKS);
    }
}
