//! A rule on reading files also covers the versions that git keeps of them.

use std::fs;
use std::path::Path;
use std::process::Command;

use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::{Confinement, PermissionRequest, Permissions};

/// Commands that print versions of files which they do not name.
const PRINTING: [&str; 39] = [
    "git log -p",
    "git log -p -1",
    "git log -1p",
    "git log --patch",
    "git log --pat",
    "git log -u",
    "git log -U3",
    "git log --unified=3",
    "git log --stat -p",
    "git log --cc",
    "git log -c",
    "git log --word-diff",
    "git log --patch-with-stat",
    "git --no-pager log -p",
    "cd src && git log -p",
    "git log -p src",
    "git log -p --follow src/a.rs",
    "git log -p --full-diff src/a.rs",
    "git log -L1,5:src/a.rs",
    "git show",
    "git show HEAD",
    "git show 0123abc",
    "git show --stat 0123abc",
    "git diff",
    "git diff HEAD~1",
    "git diff --cached",
    "git diff --stat -p",
    "git diff --check",
    "git diff 0123abc src/a.rs",
    "git status -v",
    "git status -sv",
    "git status --verbose",
    "git diff src",
    "git log --diff-merges=1",
    "git log --diff-merges=separate -1",
    // Patterns of git, although the project has files with these names.
    "git log -p -- '*'",
    "git diff -- ':!b.txt'",
    "git diff ':(glob)x'",
    "git log -p '[s]rc.rs'",
];

/// Commands that print no content, or only that of files which they name.
const QUIET: [&str; 16] = [
    "git log",
    "git log --oneline -10",
    "git log --stat",
    "git log --name-only",
    "git log -S needle",
    "git log -p src/a.rs",
    "git log -p HEAD~3 -- src/a.rs",
    "git diff --stat",
    "git diff --name-only HEAD~1",
    "git diff src/a.rs",
    "git diff HEAD -- src/a.rs",
    "git show HEAD -- src/a.rs",
    "git status",
    "git status -sb",
    "git stash list",
    "git blame src/a.rs",
];

/// Commands that no built-in rule covers.
const FURTHER_PRINTING: [&str; 21] = [
    "git stash show -p",
    "git stash show",
    "git stash list -p",
    "git grep KEY",
    "git grep --cached KEY",
    "git cat-file -p 0123abc",
    "git cat-file blob 0123abc",
    "git format-patch -1 --stdout",
    "git archive HEAD",
    "git diff-tree -p HEAD",
    "git add -p",
    // Commands that write the content to other files.
    "git clone . cp",
    "git clone --depth 1 file://$PWD cp",
    "git checkout-index -a --prefix=cp/",
    "git worktree add cp",
    "git --work-tree=cp checkout HEAD -- .",
    "git --work-tree cp checkout .",
    "git read-tree --prefix=cp HEAD",
    "git update-index --add --cacheinfo 100644,0123abc,cp",
    "git replace 0123abc 4567def",
    "git unpack-file 0123abc",
];

fn project() -> Project {
    let project = Project::new();
    fs::write(project.root().join("src/a.rs"), "x").unwrap();
    for name in ["*", ":!b.txt", ":(glob)x", "[s]rc.rs"] {
        fs::write(project.root().join(name), "x").unwrap();
    }
    fs::create_dir_all(project.root().join("secrets")).unwrap();
    fs::write(project.root().join("secrets/key"), "x").unwrap();
    project
}

fn decide(permissions: &Permissions, project: &Project, line: &str) -> (Decision, String) {
    let verdict = permissions.decide(&PermissionRequest::for_command(line), &project.workspace);
    (verdict.decision, verdict.reason)
}

#[test]
fn built_in_rules_print_no_versions_under_a_rule_on_reading() {
    let project = project();
    for (ask, deny) in [
        (&["read_file(secrets/**)"][..], &[][..]),
        (&[][..], &["read_file(secrets/**)"][..]),
    ] {
        let permissions = Permissions {
            confinement: Confinement::Sandbox,
            ..permissions(PermissionMode::Ask, &[], ask, deny)
        };
        for line in PRINTING {
            let (decision, reason) = decide(&permissions, &project, line);
            assert_eq!(decision, Decision::Ask, "{line}: {reason}");
        }
        for line in QUIET {
            let (decision, reason) = decide(&permissions, &project, line);
            assert_eq!(decision, Decision::Allow, "{line}: {reason}");
        }
    }
    let unrestricted = Permissions {
        confinement: Confinement::Sandbox,
        ..permissions::<&str>(PermissionMode::Ask, &[], &[], &[])
    };
    for line in ["git log -p", "git show", "git diff"] {
        assert_eq!(decide(&unrestricted, &project, line).0, Decision::Allow);
    }
}

/// Regression: in mode `auto`, text that could not be parsed was allowed under a rule on reading.
#[test]
fn unparsed_text_with_git_asks_under_a_rule_on_reading() {
    let project = project();
    let lines = [
        "i=0; while [ $i -lt 1 ]; do i=$((i+1)); done; git show HEAD:secrets/key",
        "i=$((i+1)); git log -p",
        "${x:=git} log -p",
    ];
    for (mode, rule, expected) in [
        (
            PermissionMode::Auto,
            &["read_file(secrets/**)"][..],
            Decision::Ask,
        ),
        (
            PermissionMode::Ask,
            &["read_file(secrets/**)"][..],
            Decision::Ask,
        ),
        (
            PermissionMode::Yolo,
            &["read_file(secrets/**)"][..],
            Decision::Allow,
        ),
        (PermissionMode::Auto, &[][..], Decision::Allow),
    ] {
        let permissions = Permissions {
            confinement: Confinement::Sandbox,
            ..permissions(mode, &[], &[], rule)
        };
        for line in lines {
            let (decision, reason) = decide(&permissions, &project, line);
            assert_eq!(decision, expected, "{mode} {rule:?} {line}: {reason}");
        }
    }
}

/// Writes an index of version 2 that tracks these files.
fn write_index(root: &Path, names: &[&str]) {
    let mut bytes = b"DIRC\0\0\0\x02".to_vec();
    bytes.extend(u32::try_from(names.len()).unwrap().to_be_bytes());
    for name in names {
        let start = bytes.len();
        bytes.extend([0; 60]);
        bytes.extend(u16::try_from(name.len()).unwrap().to_be_bytes());
        bytes.extend(name.as_bytes());
        bytes.push(0);
        while !(bytes.len() - start).is_multiple_of(8) {
            bytes.push(0);
        }
    }
    bytes.extend([0; 20]);
    fs::write(root.join(".git/index"), bytes).unwrap();
}

#[test]
fn tracked_files_that_may_not_be_read_ask_despite_rules_and_modes() {
    let project = project();
    let deny = ["read_file(secrets/**)"];
    let ruled = permissions(PermissionMode::Ask, &["execute_command(git:*)"], &[], &deny);
    let auto = Permissions {
        confinement: Confinement::Sandbox,
        ..permissions(PermissionMode::Auto, &[], &[], &deny)
    };
    let all: Vec<_> = PRINTING.iter().chain(&FURTHER_PRINTING).collect();
    // Without the file in the index, the rule and the mode apply.
    write_index(project.root(), &["src/a.rs"]);
    for permissions in [&ruled, &auto] {
        for line in &all {
            let (decision, reason) = decide(permissions, &project, line);
            assert!(
                decision == Decision::Allow || !reason.contains("from the repository"),
                "{line}: {reason}"
            );
        }
    }
    write_index(project.root(), &["secrets/key", "src/a.rs"]);
    for permissions in [&ruled, &auto] {
        for line in &all {
            let (decision, reason) = decide(permissions, &project, line);
            assert_eq!(decision, Decision::Ask, "{line}: {reason}");
        }
        for line in QUIET {
            let (decision, reason) = decide(permissions, &project, line);
            assert_eq!(decision, Decision::Allow, "{line}: {reason}");
        }
    }
    // An index that cannot be parsed could track anything.
    fs::write(project.root().join(".git/index"), "DIRC").unwrap();
    assert_eq!(decide(&auto, &project, "git diff").0, Decision::Ask);
    let yolo = Permissions {
        mode: PermissionMode::Yolo,
        ..auto
    };
    assert_eq!(decide(&yolo, &project, "git diff").0, Decision::Allow);
}

/// Runs git commands in a project. Returns false if there is no git.
#[expect(
    clippy::disallowed_methods,
    reason = "tests start programs of their own"
)]
fn run_git(root: &Path, script: &str) -> bool {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: there is no git");
        return false;
    }
    let mut command = Command::new("sh");
    command.current_dir(root).args(["-ec", script]);
    for (name, value) in [
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_AUTHOR_NAME", "t"),
        ("GIT_AUTHOR_EMAIL", "t@t"),
        ("GIT_COMMITTER_NAME", "t"),
        ("GIT_COMMITTER_EMAIL", "t@t"),
    ] {
        command.env(name, value);
    }
    let output = command.output().unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}: {complaints}");
    true
}

/// Permissions under which `git log -p` is allowed unless it prints a file that may not be read.
fn lenient_permissions(deny: &[&str]) -> [Permissions; 2] {
    let ruled = permissions(PermissionMode::Ask, &["execute_command(git:*)"], &[], deny);
    let auto = Permissions {
        confinement: Confinement::Sandbox,
        ..permissions(PermissionMode::Auto, &[], &[], deny)
    };
    [ruled, auto]
}

/// Regression: the files of the index alone decided.
#[test]
fn files_of_older_commits_that_may_not_be_read_ask_despite_rules_and_modes() {
    let project = project();
    let script = "rm -r .git && git init -q && git add src secrets && git commit -qm one";
    if !run_git(project.root(), script) {
        return;
    }
    let all: Vec<_> = PRINTING.iter().chain(&FURTHER_PRINTING).collect();
    let gone = "git rm -rq --cached secrets && git commit -qm two";
    for script in [
        gone,
        "git gc -q",
        // No branch leads to the commit any more.
        "git checkout -q --orphan new && git commit -qm new && git branch -D main master 2>&1 || true",
    ] {
        run_git(project.root(), script);
        for permissions in lenient_permissions(&["read_file(secrets/**)"]) {
            for line in &all {
                let (decision, reason) = decide(&permissions, &project, line);
                assert_eq!(decision, Decision::Ask, "{script}: {line}: {reason}");
            }
            for line in QUIET {
                let (decision, reason) = decide(&permissions, &project, line);
                assert_eq!(decision, Decision::Allow, "{script}: {line}: {reason}");
            }
        }
    }
    // Other rules, and the mode that asks nothing.
    for permissions in lenient_permissions(&["read_file(other/**)"]) {
        for line in [
            "git log -p",
            "git show HEAD",
            "git diff HEAD~1",
            "git show HEAD:src/a.rs",
        ] {
            let (decision, reason) = decide(&permissions, &project, line);
            assert_eq!(decision, Decision::Allow, "{line}: {reason}");
        }
    }
    let [_, auto] = lenient_permissions(&["read_file(secrets/**)"]);
    let yolo = Permissions {
        mode: PermissionMode::Yolo,
        ..auto
    };
    assert_eq!(decide(&yolo, &project, "git log -p").0, Decision::Allow);
}

/// A command may also print another repository, or content that is in no commit.
#[test]
fn versions_whose_paths_are_unknown_ask() {
    let project = project();
    let script = "rm -r .git && git init -q && git add src && git commit -qm one && git tag first";
    if !run_git(project.root(), script) {
        return;
    }
    let [_, auto] = lenient_permissions(&["read_file(secrets/**)"]);
    let always_asked = [
        "git --git-dir=/elsewhere/.git show",
        "git --git-dir /elsewhere/.git log -p",
        "git --bare show",
        "git -C src -C .. show",
        "GIT_DIR=/elsewhere git show",
        "env GIT_OBJECT_DIRECTORY=/elsewhere git log -p",
        "cd \"$x\" && git show",
        "git show $x",
        "echo x | xargs git show",
    ];
    let asked_with_loose_contents = [
        "git cat-file --batch",
        "git cat-file --batch-all-objects --batch",
        "git diff-tree -p --stdin",
    ];
    let allowed = [
        "git show first",
        "git show HEAD",
        "git log -p --since=2024-01-01",
    ];
    let assert_decisions = |lines: &[&str], expected: Decision| {
        for line in lines {
            let (decision, reason) = decide(&auto, &project, line);
            assert_eq!(decision, expected, "{line}: {reason}");
        }
    };
    assert_decisions(&always_asked, Decision::Ask);
    assert_decisions(&asked_with_loose_contents, Decision::Allow);
    assert_decisions(&allowed, Decision::Allow);
    run_git(
        project.root(),
        "echo k > secrets/key && git add secrets && git rm -rq --cached secrets",
    );
    assert_decisions(&always_asked, Decision::Ask);
    assert_decisions(&asked_with_loose_contents, Decision::Ask);
    assert_decisions(&allowed, Decision::Allow);
}

/// Text that haft cannot see could print a version with git.
#[test]
fn scripts_ask_if_the_repository_holds_versions_that_may_not_be_read() {
    let project = project();
    let scripts = [
        "eval \"$x\"",
        "sh script.sh",
        "$(echo g)it show",
        "xargs sh",
    ];
    let [_, auto] = lenient_permissions(&["read_file(secrets/**)"]);
    let [_, unrestricted] = lenient_permissions(&[]);
    for line in scripts {
        let (decision, reason) = decide(&auto, &project, line);
        assert_eq!(decision, Decision::Allow, "{line}: {reason}");
    }
    // It could name the file itself.
    assert_eq!(decide(&auto, &project, "eval \"$x\"").0, Decision::Ask);
    let script = "rm -r .git && git init -q && git add . && git commit -qm one && git rm -rq --cached secrets && git commit -qm two";
    if !run_git(project.root(), script) {
        return;
    }
    for line in scripts {
        let (decision, reason) = decide(&auto, &project, line);
        assert_eq!(decision, Decision::Ask, "{line}: {reason}");
        assert_eq!(decide(&unrestricted, &project, line).0, Decision::Allow);
    }
    for line in ["cargo test", "make", "ls src", "sh -c 'ls src'"] {
        let (decision, reason) = decide(&auto, &project, line);
        assert_eq!(decision, Decision::Allow, "{line}: {reason}");
    }
}
