//! Commits from inside the sandbox: checks which repositories may be written, and builds the
//! environment of the command that commits.
//!
//! `git add` and `git commit` write the index, objects, and refs. Everything else that they would
//! run is switched off: hooks, file system monitor, editor, signatures, maintenance. Filters cannot
//! be switched off by name, so a repository stays read-only if its own configuration has an unknown
//! filter or includes other files: such a program may be a file of the project.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::find_git::find_git;
use crate::find_program::filter_search_path;

/// The maximum size of a configuration file in bytes. Larger files are rejected: no user writes
/// one.
const MAX_CONFIG_BYTES: u64 = 1 << 20;

/// Filter commands with one of these prefixes run an installed program, not a file of the project.
const KNOWN_FILTERS: &[&str] = &[
    "git-lfs ",
    "git lfs ",
    "git-crypt ",
    "\"git-crypt\" ",
    "\\\"git-crypt\\\" ",
];

/// The keys of a filter whose values are commands.
const FILTER_KEYS: &[&str] = &["clean", "smudge", "process"];
/// The keys of diff and merge drivers whose values are commands.
const DRIVER_KEYS: &[&str] = &["textconv", "command", "external", "driver"];

/// Git settings that override every configuration file.
const COMMIT_SETTINGS: &[(&str, &str)] = &[
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", ":"),
    ("commit.gpgSign", "false"),
    ("commit.verbose", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
];

/// The variable with the folders in which programs are looked up.
const SEARCH_PATH: &str = "PATH";

/// Returns the environment of a command that may commit: `given`, the environment of other
/// commands, without its `GIT_…` variables, and with settings that prevent git from opening an
/// editor or running programs of the project. Programs are not looked up in the folders `writable`,
/// and git is the one that haft itself would run.
pub fn commit_environment(
    given: &[(String, String)],
    writable: &[PathBuf],
) -> Vec<(String, String)> {
    let mut all: Vec<_> = given
        .iter()
        .filter(|(name, _)| !name.starts_with("GIT_") && name != SEARCH_PATH)
        .cloned()
        .collect();
    let path = given.iter().find(|(name, _)| name == SEARCH_PATH);
    let path = path.map_or("", |(_, value)| value.as_str());
    all.push((SEARCH_PATH.to_owned(), commit_search_path(path, writable)));
    let mut set = |name: &str, value: &str| all.push((name.to_owned(), value.to_owned()));
    for (name, value) in [
        ("GIT_EDITOR", ":"),
        ("GIT_SEQUENCE_EDITOR", ":"),
        ("GIT_TERMINAL_PROMPT", "0"),
    ] {
        set(name, value);
    }
    set("GIT_CONFIG_COUNT", &COMMIT_SETTINGS.len().to_string());
    for (at, (name, value)) in COMMIT_SETTINGS.iter().enumerate() {
        set(&format!("GIT_CONFIG_KEY_{at}"), name);
        set(&format!("GIT_CONFIG_VALUE_{at}"), value);
    }
    all
}

/// The folders of a repository that decide which programs git runs.
const SEALED_FOLDERS: [&str; 4] = ["hooks", "info", "modules", "worktrees"];

/// Returns the folder of the git that haft itself would run, followed by the folders of
/// `search_path` that the model can't write.
fn commit_search_path(search_path: &str, writable: &[PathBuf]) -> String {
    let folders: Vec<&Path> = writable.iter().map(PathBuf::as_path).collect();
    let git = find_git(search_path, &folders);
    let git = git.as_deref().and_then(Path::parent).and_then(Path::to_str);
    let others = filter_search_path(search_path, writable);
    let all = git.into_iter().chain([others.as_str()]);
    all.filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join(":")
}

/// The entries that redirect git to another configuration. A repository that has one is never
/// written, so a command that commits must not create one.
const REDIRECTING_ENTRIES: [&str; 2] = ["commondir", "config.worktree"];

/// Renames the entries that redirect git to another configuration, which a command has created in a
/// repository that it was allowed to write. Returns their original paths.
pub(crate) fn disarm_redirects(repository: &Path) -> Vec<PathBuf> {
    let paths = REDIRECTING_ENTRIES.map(|name| repository.join(name));
    let disarm = |path: &PathBuf| {
        let mut refused = path.clone().into_os_string();
        refused.push(".refused");
        path.symlink_metadata().is_ok() && fs::rename(path, refused).is_ok()
    };
    paths.into_iter().filter(disarm).collect()
}

/// Returns true if a commit may write this `.git` folder.
///
/// Creates the sealed folders that are missing, because the sandbox can only protect folders that
/// exist.
pub(crate) fn prepare_for_commit(repository: &Path) -> bool {
    let is_folder = |path: &Path| {
        path.symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir())
    };
    let config = repository.join("config");
    let readable = config
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() < MAX_CONFIG_BYTES);
    let elsewhere = REDIRECTING_ENTRIES
        .iter()
        .any(|name| repository.join(name).symlink_metadata().is_ok());
    if !is_folder(repository) || !readable || elsewhere {
        return false;
    }
    let kept = SEALED_FOLDERS.iter().all(|name| {
        let folder = repository.join(name);
        is_folder(&folder) || DirBuilder::new().mode(0o755).create(&folder).is_ok()
    });
    kept && fs::read_to_string(config).is_ok_and(|text| has_no_unknown_programs(&text))
}

/// True if a Git configuration has no hooks, no includes, no drivers, and only known filters.
fn has_no_unknown_programs(config: &str) -> bool {
    let text = config.to_ascii_lowercase();
    if ["[include", "[hook"]
        .iter()
        .any(|section| text.contains(section))
    {
        return false;
    }
    // A value on its section's line, or one that spans several lines, is not parsed here; such a
    // configuration is rejected.
    !text.contains("\\\n")
        && text
            .lines()
            .map(str::trim)
            .all(|line| match line.split_once('=') {
                _ if line.starts_with('[') => line.find(']') == Some(line.len() - 1),
                Some((name, value)) if FILTER_KEYS.contains(&name.trim()) => {
                    let value = value.trim_start();
                    KNOWN_FILTERS.iter().any(|known| value.starts_with(known))
                }
                Some((name, _)) if DRIVER_KEYS.contains(&name.trim()) => false,
                Some(_) | None => true,
            })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_no_programs_rejects_configurations_that_run_programs() {
        for config in [
            "",
            "[core]\n\tbare = false\n[user]\n\tname = x\n",
            "[remote \"origin\"]\n\turl = git@x:y\n",
            "[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n\trequired = true\n",
            "[filter \"git-crypt\"]\n\tsmudge = \"git-crypt\" smudge\n",
        ] {
            assert!(has_no_unknown_programs(config), "{config}");
        }
        for config in [
            "[include]\n\tpath = ../more\n",
            "[includeIf \"gitdir:**\"]\n\tpath = x\n",
            "[INCLUDE]\npath=x\n",
            "[hook \"x\"]\n\tcommand = evil\n",
            "[filter \"x\"]\n\tclean = ./evil\n",
            "[filter \"x\"]\n\tClean = evil\n",
            "[Filter \"x\"]\n\tprocess=python filter.py\n",
            "[filter \"x\"] clean = ./evil\n",
            "[filter \"x\"] clean = evil]\n",
            "[filter \"x\"]\n\tclean = \\\n./evil\n",
            "[filter \"lfs\"]\n\tclean = git-lfs-evil\n",
            "[filter \"x\"]\n\tsmudge = cat\n",
            "[diff \"x\"]\n\ttextconv = ./evil\n",
            "[diff]\n\texternal = evil\n",
        ] {
            assert!(!has_no_unknown_programs(config), "{config}");
        }
    }

    #[test]
    fn may_be_written_accepts_only_plain_repositories() {
        let folder = tempfile::tempdir().unwrap();
        let repository = folder.path().join(".git");
        assert!(!prepare_for_commit(&repository));
        fs::write(&repository, "gitdir: elsewhere\n").unwrap();
        assert!(!prepare_for_commit(&repository), "a work tree of another");
        fs::remove_file(&repository).unwrap();
        fs::create_dir(&repository).unwrap();
        assert!(!prepare_for_commit(&repository), "no configuration");
        fs::write(repository.join("config"), "[core]\n").unwrap();
        assert!(prepare_for_commit(&repository));
        for name in SEALED_FOLDERS {
            assert!(repository.join(name).is_dir(), "{name}");
        }
        assert!(disarm_redirects(&repository).is_empty());
        for name in REDIRECTING_ENTRIES {
            fs::write(repository.join(name), "..\n").unwrap();
            assert!(!prepare_for_commit(&repository));
            assert_eq!(disarm_redirects(&repository), [repository.join(name)]);
            assert!(prepare_for_commit(&repository), "{name}");
        }
    }

    #[test]
    fn commit_environment_replaces_git_variables() {
        let given = [
            ("PATH", "/bin"),
            ("GIT_DIR", "/x"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_EDITOR", "evil"),
        ];
        let all = commit_environment(
            &given.map(|(name, value)| (name.to_owned(), value.to_owned())),
            &[],
        );
        let value = |name: &str| {
            let found: Vec<_> = all
                .iter()
                .filter(|(other, _)| other == name)
                .map(|(_, value)| value.as_str())
                .collect();
            assert!(found.len() < 2, "{name}");
            found.first().copied()
        };
        assert_eq!((value("GIT_DIR"), value("GIT_EDITOR")), (None, Some(":")));
        assert_eq!(
            value("GIT_CONFIG_COUNT"),
            Some(COMMIT_SETTINGS.len().to_string().as_str())
        );
        assert_eq!(
            (value("GIT_CONFIG_KEY_0"), value("GIT_CONFIG_VALUE_0")),
            (Some("core.hooksPath"), Some("/dev/null"))
        );
        assert!(
            value("PATH")
                .unwrap()
                .split(':')
                .any(|folder| folder == "/bin")
        );
    }

    #[test]
    fn commit_environment_searches_no_folder_that_the_model_can_write() {
        let top = tempfile::tempdir().unwrap();
        let project = top.path().join("project");
        fs::create_dir_all(project.join("bin")).unwrap();
        std::os::unix::fs::symlink(&project, top.path().join("alias")).unwrap();
        let at = |path: &Path| path.display().to_string();
        let alias = top.path().join("alias/bin");
        let path = format!("{}:bin:{}:/usr/bin:.", at(&project.join("bin")), at(&alias));
        let given = [("PATH".to_owned(), path)];
        let all = commit_environment(&given, std::slice::from_ref(&project));
        let path = all.iter().find(|(name, _)| name == "PATH").unwrap();
        let folders: Vec<_> = path.1.split(':').collect();
        assert!(folders.contains(&"/usr/bin"), "{folders:?}");
        assert!(folders.iter().all(|folder| folder.starts_with('/')));
        assert!(
            folders
                .iter()
                .all(|folder| !folder.starts_with(&at(top.path()))),
            "{folders:?}"
        );
    }
}
