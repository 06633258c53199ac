//! Commits from inside the sandbox: checks which repositories may be written, and builds the
//! environment of the command that commits.
//!
//! `git add` and `git commit` write the index, objects, and refs. Everything else that they would
//! run is switched off: hooks, file system monitor, editor, signatures, maintenance. Filters cannot
//! be switched off by name, so a repository stays read-only if its own configuration has an unknown
//! filter or includes other files: such a program may be a file of the project.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

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

/// Returns the environment of a command that may commit: `given`, the environment of other
/// commands, without its `GIT_…` variables, and with settings that prevent git from opening an
/// editor or running programs of the project.
pub fn commit_environment(given: &[(String, String)]) -> Vec<(String, String)> {
    let mut all: Vec<_> = given
        .iter()
        .filter(|(name, _)| !name.starts_with("GIT_"))
        .cloned()
        .collect();
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

/// Returns true if a commit may write this `.git` folder.
///
/// Creates the `hooks` and `info` folders if they are missing, because the sandbox can only protect
/// folders that exist.
pub(crate) fn prepare_for_commit(repository: &Path) -> bool {
    let is_folder = |path: &Path| {
        path.symlink_metadata()
            .is_ok_and(|metadata| metadata.is_dir())
    };
    let config = repository.join("config");
    let readable = config
        .symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.len() < MAX_CONFIG_BYTES);
    let elsewhere = ["commondir", "config.worktree"]
        .iter()
        .any(|name| repository.join(name).symlink_metadata().is_ok());
    if !is_folder(repository) || !readable || elsewhere {
        return false;
    }
    let kept = ["hooks", "info"].iter().all(|name| {
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
        assert!(repository.join("hooks").is_dir() && repository.join("info").is_dir());
        fs::write(repository.join("commondir"), "..\n").unwrap();
        assert!(!prepare_for_commit(&repository));
    }

    #[test]
    fn commit_environment_replaces_git_variables() {
        let given = [
            ("PATH", "/bin"),
            ("GIT_DIR", "/x"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_EDITOR", "evil"),
        ];
        let all =
            commit_environment(&given.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let value = |name: &str| {
            let found: Vec<_> = all
                .iter()
                .filter(|(other, _)| other == name)
                .map(|(_, value)| value.as_str())
                .collect();
            assert!(found.len() < 2, "{name}");
            found.first().copied()
        };
        assert_eq!(
            (value("PATH"), value("GIT_DIR"), value("GIT_EDITOR")),
            (Some("/bin"), None, Some(":"))
        );
        assert_eq!(
            value("GIT_CONFIG_COUNT"),
            Some(COMMIT_SETTINGS.len().to_string().as_str())
        );
        assert_eq!(
            (value("GIT_CONFIG_KEY_0"), value("GIT_CONFIG_VALUE_0")),
            (Some("core.hooksPath"), Some("/dev/null"))
        );
    }
}
