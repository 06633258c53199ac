//! haft's own files are created, replaced and locked only by the crate `files`, which keeps them
//! private and durable. Code that opens, writes or locks files by itself is listed with the reason.

use crate::budgets::sources;

/// Ways to create, write, rename or lock a file without the crate `files`.
const BY_HAND: [&str; 17] = [
    "0o600",
    "0o700",
    ".try_lock()",
    "DirBuilder",
    "File::create(",
    "File::options",
    "NamedTempFile",
    "OpenOptions",
    "TryLockError",
    "fs::copy(",
    "fs::create_dir",
    "fs::rename",
    "fs::write(",
    "lock_shared",
    "persist(",
    "tempfile::Builder",
    "tempfile::tempfile",
];

/// Exempt crates: the one that has the functions, the one that attacks a sandbox by hand, and the
/// test kit.
const EXEMPT: [&str; 3] = [
    "crates/core/files/",
    "crates/extensions/probe/",
    "crates/testkit/",
];

const ALLOWED: [(&str, &str); 32] = [
    ("core/model/build.rs", "a build script"),
    (
        "core/permission/src/git_history.rs",
        "creates folders in its tests",
    ),
    (
        "core/permission/src/git_index.rs",
        "creates folders in its tests",
    ),
    (
        "core/project/src/footprint.rs",
        "reads files of the project without following links",
    ),
    (
        "core/sandbox/src/commits.rs",
        "creates folders in the repository of the project",
    ),
    (
        "core/sandbox/src/confine/linux/mounts.rs",
        "creates the file system of a command",
    ),
    (
        "core/sandbox/src/confine/linux/stale_covers.rs",
        "tries the lock of a list that an earlier version of haft wrote",
    ),
    (
        "core/sandbox/src/git/repository.rs",
        "creates a folder in the repository of the project",
    ),
    (
        "core/sandbox/src/helper/command.rs",
        "creates a file without a name",
    ),
    ("core/sandbox/src/helper/keeper.rs", "writes to /proc"),
    (
        "core/sandbox/src/network/proxy.rs",
        "makes a socket private, which cannot be created with a mode",
    ),
    (
        "core/store/src/sqlite/locks.rs",
        "removes lock files, and reads the holder's name from one that is locked",
    ),
    (
        "core/tools/src/files/change/commit.rs",
        "writes files of the project",
    ),
    (
        "extensions/changes/src/files/disk.rs",
        "writes files of the project",
    ),
    (
        "extensions/changes/src/worktree.rs",
        "copies the index of the project's repository",
    ),
    (
        "extensions/documents/src/pdf.rs",
        "a confined child writes its result into a private folder",
    ),
    ("extensions/mcp/src/servers.rs", "locks a mutex, not a file"),
    ("extensions/outline/build.rs", "a build script"),
    ("frontends/haft/build.rs", "a build script"),
    (
        "frontends/acp/src/steady_file.rs",
        "writes files of the project",
    ),
    (
        "frontends/haft/src/commands/catalogue/change.rs",
        "writes files of the project, and makes a user's program executable",
    ),
    (
        "frontends/haft/src/commands/context/replay.rs",
        "writes where the user said",
    ),
    (
        "frontends/haft/src/commands/context/report.rs",
        "writes where the user said",
    ),
    (
        "frontends/haft/src/commands/conversations/replay.rs",
        "writes into a temporary folder",
    ),
    (
        "frontends/haft/src/commands/conversations/replay/project_copy.rs",
        "copies the files of a project",
    ),
    (
        "frontends/haft/src/commands/demo.rs",
        "creates a project to try haft on",
    ),
    (
        "frontends/haft/src/commands/man.rs",
        "writes where the user said, and into the temporary folder",
    ),
    (
        "frontends/haft/src/commands/run/approve.rs",
        "opens the terminal",
    ),
    (
        "frontends/haft/src/interactive/side_editor.rs",
        "writes into the temporary folder",
    ),
    (
        "frontends/worker/src/workflow_task.rs",
        "describes a file that the queue keeps",
    ),
    (
        "frontends/worker/src/workspace.rs",
        "writes files of the project",
    ),
    (
        "frontends/worker/src/workspace_files.rs",
        "writes files of the project",
    ),
];

#[test]
fn own_files_are_written_by_the_crate_files() {
    let mut by_hand = Vec::new();
    for source in sources() {
        if EXEMPT.iter().any(|folder| source.path.starts_with(folder)) {
            continue;
        }
        let used = source
            .text
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .find_map(|line| BY_HAND.iter().find(|word| line.contains(**word)));
        if let Some(word) = used {
            let path = source.path.trim_start_matches("crates/").to_owned();
            by_hand.push((path, word));
        }
    }
    for (path, word) in &by_hand {
        assert!(
            ALLOWED.iter().any(|(allowed, _)| allowed == path),
            "{path}: `{word}`: use the crate `files`, or list the file with a reason"
        );
    }
    for (allowed, _) in ALLOWED {
        assert!(
            by_hand.iter().any(|(path, _)| path == allowed),
            "{allowed} does nothing by hand any more; remove it from the list"
        );
    }
}
