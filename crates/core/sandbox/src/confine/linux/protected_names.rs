//! Finds the protected files of a project: those that decide which programs other programs run.
//!
//! The names are those of [`haft_types::PROTECTED_PATHS`] and [`haft_types::STEERING_FILES`]. Names
//! of the first list are protected in the project folder itself even if they are missing
//! ([`super::name_watch`]). In subfolders, and for names of the second list, only existing files
//! are protected. The folders that lead to a protected file are anchored: otherwise they could be
//! renamed and created anew.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use haft_types::{PROTECTED_PATHS, STEERING_FILES, matches_listed_name};

use super::known_folders::KnownFolders;

/// Protected names that commands may create outside the user's home folder: no program reads them
/// there.
const HOME_ONLY_NAMES: &[&str] = &[
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".config/fish",
    ".cshrc",
    ".emacs",
    ".emacs.d",
    ".gitconfig",
    ".gvimrc",
    ".inputrc",
    ".kshrc",
    ".login",
    ".profile",
    ".tcshrc",
    ".vim",
    ".vimrc",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
];

/// The entries of a repository that decide which programs git runs, or where git finds its
/// configuration.
pub(super) const SEALED_REPOSITORY_ENTRIES: &[&str] = &[
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "hooks",
    "info",
    "modules",
    "worktrees",
];

/// An existing protected name, or a folder that leads to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProtectedEntry {
    /// A path that must not be written, moved, or removed.
    Protected(PathBuf),
    /// A folder that must not be moved or removed, but whose content may change.
    Anchor(PathBuf),
}

/// Returns the first parts of the protected names that no command may create in `folder`, a project
/// folder.
pub(super) fn first_parts(folder: &Path, home: Option<&Path>) -> BTreeSet<&'static str> {
    names_for_folder(folder, home)
        .map(|(first, _)| first)
        .collect()
}

/// Returns the second parts of the protected names whose first part is `first`, in any case.
pub(super) fn second_parts(
    first: &str,
    folder: &Path,
    home: Option<&Path>,
) -> BTreeSet<&'static str> {
    names_for_folder(folder, home)
        .filter(|(own, _)| own.eq_ignore_ascii_case(first))
        .filter_map(|(_, rest)| rest)
        .collect()
}

/// Returns the names of `PROTECTED_PATHS` that programs read in `folder`, each split in two.
fn names_for_folder(
    folder: &Path,
    home: Option<&Path>,
) -> impl Iterator<Item = (&'static str, Option<&'static str>)> {
    let is_home = home == Some(folder);
    PROTECTED_PATHS
        .iter()
        .filter(move |name| is_home || !HOME_ONLY_NAMES.contains(name))
        .map(split_name)
}

/// The maximum number of folders of a project that are searched. In a larger project, protected
/// files could be missed, so no command is run there in a sandbox.
const MAX_FOLDERS: usize = 100_000;
/// Folders that are not searched: programs generate their content, and neither editors nor version
/// control read it.
const SKIPPED_FOLDERS: &[&str] = &["node_modules", "target", "__pycache__"];

/// Returns the existing protected names of a project, each preceded by the folders that lead to it.
/// Remembered folders that are unchanged are not searched again. Fails if the project has too many
/// folders.
pub(super) fn find_protected(
    project: &Path,
    known: &mut KnownFolders,
) -> io::Result<Vec<ProtectedEntry>> {
    find_protected_in(project, known, MAX_FOLDERS)
}

fn find_protected_in(
    project: &Path,
    known: &mut KnownFolders,
    max_folders: usize,
) -> io::Result<Vec<ProtectedEntry>> {
    let mut all: Vec<ProtectedEntry> = Vec::new();
    let mut folders = VecDeque::from([project.to_owned()]);
    let mut searched = 0;
    while let Some(folder) = folders.pop_front() {
        searched += 1;
        if searched > max_folders {
            return Err(io::Error::from_raw_os_error(libc::E2BIG));
        }
        let is_project = folder == project;
        if let Some(below) = known.unchanged_subfolders(&folder) {
            folders.extend(below);
            continue;
        }
        let settled = known.stable_stamp(&folder);
        let (here, below) = match scan_folder(&folder) {
            Ok(seen) => seen,
            // A subfolder that haft cannot read cannot be read by the command either.
            Err(_) if !is_project => continue,
            Err(error) => return Err(error),
        };
        if !is_project && !here.is_empty() {
            let way = folder.ancestors().take_while(|step| *step != project);
            let way: Vec<_> = way
                .map(|step| ProtectedEntry::Anchor(step.to_owned()))
                .filter(|step| !all.contains(step))
                .collect();
            all.extend(way.into_iter().rev());
        }
        if let Some(stamp) = settled.filter(|_| here.is_empty()) {
            known.remember(&folder, stamp, &below);
        }
        all.extend(here);
        folders.extend(below);
    }
    Ok(all)
}

/// Each protected name, split into its first part and the rest.
static SPLIT_NAMES: LazyLock<Vec<(&str, Option<&str>)>> = LazyLock::new(|| {
    let names = PROTECTED_PATHS.iter().chain(STEERING_FILES);
    names.map(split_name).collect()
});

fn split_name(name: &&'static str) -> (&'static str, Option<&'static str>) {
    name.split_once('/')
        .map_or((*name, None), |(first, rest)| (first, Some(rest)))
}

/// Joins all protected names and all names of skipped folders into one string, which changes when
/// another version of haft changes the lists.
pub(super) fn format_searched_names() -> String {
    let names = PROTECTED_PATHS
        .iter()
        .chain(STEERING_FILES)
        .chain(SKIPPED_FOLDERS)
        .copied();
    names.collect::<Vec<_>>().join("\n")
}

/// Returns the protected names in a folder, in upper or lower case, each preceded by the folder
/// that leads to it. Also returns the remaining subfolders.
fn scan_folder(folder: &Path) -> io::Result<(Vec<ProtectedEntry>, Vec<PathBuf>)> {
    let mut found = Vec::new();
    let mut below = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        // Converted once for all comparisons. A name that is not UTF-8 matches none of them.
        let text = name.to_str().unwrap_or_default();
        let parts = SPLIT_NAMES
            .iter()
            .filter(|(first, _)| matches_listed_name(text, first))
            .map(|(_, rest)| *rest);
        let parts: Vec<Option<&str>> = parts.collect();
        if parts.contains(&None) {
            found.push(ProtectedEntry::Protected(entry.path()));
        } else if !parts.is_empty() && entry.file_type()?.is_dir() {
            found.push(ProtectedEntry::Anchor(entry.path()));
            for inner in fs::read_dir(entry.path())? {
                let inner = inner?;
                let name = inner.file_name();
                if parts
                    .iter()
                    .flatten()
                    .any(|rest| matches_listed_name(name.to_str().unwrap_or_default(), rest))
                {
                    found.push(ProtectedEntry::Protected(inner.path()));
                }
            }
        } else if !parts.is_empty() {
            found.push(ProtectedEntry::Protected(entry.path()));
        } else if entry.file_type()?.is_dir()
            && !SKIPPED_FOLDERS.iter().any(|skipped| name == *skipped)
        {
            below.push(entry.path());
        }
    }
    Ok((found, below))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_lists_contain_protected_names_only() {
        for name in HOME_ONLY_NAMES {
            assert!(PROTECTED_PATHS.contains(name), "{name}");
        }
    }

    #[test]
    fn first_parts_contain_home_names_only_in_the_home_folder() {
        let folder = Path::new("/p");
        let parts = first_parts(folder, None);
        assert!(parts.contains(".git") && parts.contains(".github") && parts.contains(".mcp.json"));
        assert!(!parts.contains(".bashrc") && !parts.contains(".config"));
        let at_home = first_parts(folder, Some(folder));
        assert!(at_home.contains(".bashrc") && at_home.contains(".config"));
        let second = |home| second_parts(".CONFIG", folder, home).contains("fish");
        assert!(second(Some(folder)) && !second(None));
        assert_eq!(
            second_parts(".github", folder, None),
            BTreeSet::from(["actions", "hooks", "workflows"])
        );
    }

    #[test]
    fn search_of_too_many_folders_fails() {
        let folder = tempfile::tempdir().unwrap();
        for number in 0..4 {
            fs::create_dir(folder.path().join(format!("folder-{number}"))).unwrap();
        }
        fs::create_dir_all(folder.path().join("z/vendor/.git")).unwrap();
        let search = |max| find_protected_in(folder.path(), &mut KnownFolders::default(), max);
        let error = search(6).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::E2BIG));
        let vendored = ProtectedEntry::Protected(folder.path().join("z/vendor/.git"));
        assert!(search(7).unwrap().contains(&vendored));
    }

    #[test]
    fn found_returns_existing_names_and_anchors_of_missing_ones() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        fs::create_dir_all(root.join(".github/Workflows")).unwrap();
        fs::create_dir_all(root.join(".GIT")).unwrap();
        fs::write(root.join("jenkinsFile"), "").unwrap();
        fs::write(root.join(".github/CODEOWNERS"), "").unwrap();
        fs::write(root.join("README"), "").unwrap();
        let mut found = find_protected(root, &mut KnownFolders::default()).unwrap();
        found.sort_by_key(|found| match found {
            ProtectedEntry::Protected(path) | ProtectedEntry::Anchor(path) => path.clone(),
        });
        assert_eq!(
            found,
            [
                ProtectedEntry::Protected(root.join(".GIT")),
                ProtectedEntry::Anchor(root.join(".github")),
                ProtectedEntry::Protected(root.join(".github/Workflows")),
                ProtectedEntry::Protected(root.join("jenkinsFile")),
            ]
        );

        // In deeper folders, only existing names are found.
        fs::create_dir_all(root.join("sub/module/.git")).unwrap();
        fs::create_dir_all(root.join("target/x/.git")).unwrap();
        let deep = find_protected(root, &mut KnownFolders::default()).unwrap();
        let deep: Vec<_> = deep
            .into_iter()
            .filter(|one| !found.contains(one))
            .collect();
        assert_eq!(
            deep,
            [
                ProtectedEntry::Anchor(root.join("sub")),
                ProtectedEntry::Anchor(root.join("sub/module")),
                ProtectedEntry::Protected(root.join("sub/module/.git")),
            ]
        );
    }
}
