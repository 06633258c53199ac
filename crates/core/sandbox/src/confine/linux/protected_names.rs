//! Finds the protected files of a project: those that decide which programs other programs run.
//!
//! The names are those of [`haft_types::PROTECTED_PATHS`] and [`haft_types::STEERING_FILES`]. Names
//! of the first list are protected in the project folder itself even if they are missing. In
//! subfolders, and for names of the second list, only existing files are protected, in a limited
//! number of folders. The folders that lead to a protected file are anchored: otherwise they could
//! be renamed and created anew.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use haft_types::{PROTECTED_PATHS, STEERING_FILES};

use super::known_folders::KnownFolders;

/// Protected names whose absence is covered only in the user's home folder: no program reads them
/// elsewhere.
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

/// Protected names that are files; all others are folders.
const FILE_NAMES: &[&str] = &[
    ".appveyor.yml",
    ".bash_aliases",
    ".bash_login",
    ".bash_logout",
    ".bash_profile",
    ".bashrc",
    ".build.yml",
    ".cirrus.star",
    ".cirrus.yml",
    ".continuerc.json",
    ".crush.json",
    ".cshrc",
    ".devcontainer.json",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".drone.jsonnet",
    ".drone.star",
    ".drone.yml",
    ".emacs",
    ".envrc",
    ".exrc",
    ".gitconfig",
    ".gitlab-ci.yml",
    ".gitmodules",
    ".gitpod.dockerfile",
    ".gitpod.yml",
    ".gvimrc",
    ".inputrc",
    ".kilocodemodes",
    ".kshrc",
    ".lefthook-local.json",
    ".lefthook-local.jsonc",
    ".lefthook-local.toml",
    ".lefthook-local.yaml",
    ".lefthook-local.yml",
    ".lefthook.json",
    ".lefthook.jsonc",
    ".lefthook.toml",
    ".lefthook.yaml",
    ".lefthook.yml",
    ".login",
    ".mcp.json",
    ".nvim.lua",
    ".nvimrc",
    ".overcommit.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".profile",
    ".roomodes",
    ".simple-git-hooks.cjs",
    ".simple-git-hooks.js",
    ".simple-git-hooks.json",
    ".simple-git-hooks.mjs",
    ".tcshrc",
    ".travis.yml",
    ".vimrc",
    ".woodpecker.yaml",
    ".woodpecker.yml",
    ".zlogin",
    ".zlogout",
    ".zprofile",
    ".zshenv",
    ".zshrc",
    ".zuul.yaml",
    "Jenkinsfile",
    "appveyor.yml",
    "azure-pipelines.yaml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "captainhook.json",
    "crush.json",
    "grumphp.yml",
    "grumphp.yml.dist",
    "lefthook-local.json",
    "lefthook-local.jsonc",
    "lefthook-local.toml",
    "lefthook-local.yaml",
    "lefthook-local.yml",
    "lefthook.json",
    "lefthook.jsonc",
    "lefthook.toml",
    "lefthook.yaml",
    "lefthook.yml",
    "opencode.json",
    "opencode.jsonc",
    "prek.toml",
    "simple-git-hooks.cjs",
    "simple-git-hooks.js",
    "simple-git-hooks.json",
    "simple-git-hooks.mjs",
    "zuul.yaml",
];

/// The kind of entry that covers a missing name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CoverKind {
    File,
    Folder,
}

/// A protected name that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingEntry {
    pub(super) path: PathBuf,
    pub(super) kind: CoverKind,
}

/// An existing protected name, or a folder that leads to one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ProtectedEntry {
    /// A path that must not be written, moved, or removed.
    Protected(PathBuf),
    /// A folder that must not be moved or removed, but whose content may change.
    Anchor(PathBuf),
}

/// Returns a protected name with the capital letters that its program uses. The lists of protected
/// names are in lower case.
fn original_case(name: &'static str) -> &'static str {
    if name == "jenkinsfile" {
        "Jenkinsfile"
    } else {
        name
    }
}

/// Returns the protected names that do not exist in `folder`. If even the first part of a two-part
/// name is missing, only that part is returned.
pub(super) fn find_missing(folder: &Path, home: Option<&Path>) -> Vec<MissingEntry> {
    let is_home = home == Some(folder);
    let mut missing: Vec<MissingEntry> = Vec::new();
    for name in PROTECTED_PATHS
        .iter()
        .copied()
        .filter(|name| is_home || !HOME_ONLY_NAMES.contains(name))
        .map(original_case)
    {
        let (first, kind) = match name.split_once('/') {
            Some((first, _)) if !may_exist(&folder.join(first)) => (first, CoverKind::Folder),
            Some(_) | None if FILE_NAMES.contains(&name) => (name, CoverKind::File),
            Some(_) | None => (name, CoverKind::Folder),
        };
        let path = folder.join(first);
        if !may_exist(&path) && missing.iter().all(|other| other.path != path) {
            missing.push(MissingEntry { path, kind });
        }
    }
    missing
}

/// True if the path exists, or if that cannot be determined.
fn may_exist(path: &Path) -> bool {
    !matches!(path.symlink_metadata(), Err(error) if error.kind() == io::ErrorKind::NotFound)
}

/// The maximum number of folders of a project that are searched, beginning with the uppermost.
const MAX_FOLDERS: usize = 1_000;
/// Folders that are not searched: programs generate their content, and neither editors nor version
/// control read it.
const SKIPPED_FOLDERS: &[&str] = &["node_modules", "target", "__pycache__"];

/// Returns the existing protected names of a project, each preceded by the folders that lead to it.
/// Remembered folders that are unchanged are not searched again.
pub(super) fn find_protected(
    project: &Path,
    known: &mut KnownFolders,
) -> io::Result<Vec<ProtectedEntry>> {
    let mut all: Vec<ProtectedEntry> = Vec::new();
    let mut folders = VecDeque::from([project.to_owned()]);
    for _ in 0..MAX_FOLDERS {
        let Some(folder) = folders.pop_front() else {
            break;
        };
        let is_project = folder == project;
        // The project's own folder changes with every cover.
        if let Some(below) = known.unchanged_subfolders(&folder).filter(|_| !is_project) {
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
        if let Some(stamp) = settled.filter(|_| !is_project && here.is_empty()) {
            known.remember(&folder, stamp, &below);
        }
        all.extend(here);
        folders.extend(below);
    }
    Ok(all)
}

/// Each protected name, split into its first part and the rest.
static SPLIT_NAMES: LazyLock<Vec<(&str, Option<&str>)>> = LazyLock::new(|| {
    let parts = |name: &&'static str| {
        name.split_once('/')
            .map_or((*name, None), |(first, rest)| (first, Some(rest)))
    };
    PROTECTED_PATHS
        .iter()
        .chain(STEERING_FILES)
        .map(parts)
        .collect()
});

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
            .filter(|(first, _)| matches_name(text, first))
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
                    .any(|rest| matches_name(name.to_str().unwrap_or_default(), rest))
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

fn matches_name(name: &str, protected: &str) -> bool {
    match protected.strip_prefix('*') {
        Some(ending) => {
            let tail = name
                .len()
                .checked_sub(ending.len())
                .and_then(|at| name.get(at..));
            tail.is_some_and(|tail| tail.eq_ignore_ascii_case(ending))
        }
        None => name.eq_ignore_ascii_case(protected),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_lists_contain_protected_names_only() {
        for name in FILE_NAMES.iter().chain(HOME_ONLY_NAMES) {
            assert!(
                PROTECTED_PATHS.contains(&name.to_ascii_lowercase().as_str()),
                "{name}"
            );
        }
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

        let missing = find_missing(root, None);
        let of = |name: &str| {
            missing
                .iter()
                .find(|missing| missing.path == root.join(name))
                .map(|missing| missing.kind)
        };
        assert_eq!(of(".git"), Some(CoverKind::Folder));
        assert_eq!(of(".mcp.json"), Some(CoverKind::File));
        assert_eq!(of("Jenkinsfile"), Some(CoverKind::File));
        assert_eq!(
            of(".gitlab"),
            Some(CoverKind::Folder),
            "even its first part is missing"
        );
        assert_eq!(of(".github/actions"), Some(CoverKind::Folder));
        assert_eq!(of(".github"), None);
        assert_eq!(of(".bashrc"), None, "only in the home folder");
        assert!(
            find_missing(root, Some(root))
                .iter()
                .any(|missing| missing.path == root.join(".bashrc"))
        );
    }
}
