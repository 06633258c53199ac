//! Tests which command lines may write to the repository once a rule or a person allows them.

use std::fs;

use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::{Confinement, PermissionRequest, Permissions, Verdict};

/// Command lines that only read and commit.
const COMMITS: &[&str] = &[
    "git commit -m 'Fix the parser'",
    "git commit -am wip",
    "git commit --message=x",
    "git commit -q -m x -m y",
    "git add .",
    "git add -A",
    "git add src/a.rs",
    "git add --all && git commit -m x",
    "git add -u; git commit -m x; git status",
    "git commit --amend --no-edit",
    "git commit --allow-empty -m x",
    "git commit -m '/api: add' --no-verify",
    "git commit -F - <<'EOF'\nFix it\n\nBecause.\nEOF",
    "git commit -F msg.txt",
    "git commit -m \"$(cat msg.txt)\"",
    "git add src && git commit -m x && git log -1 --oneline",
    "cd src && git add . && git commit -m x",
    "timeout 60 git commit -m x",
    "git commit -m x -- src/a.rs",
    "git add -f src/a.rs",
    "git --no-pager commit -m x",
    "git commit -s -m x --author='A <a@b>' --date=now",
    "git add .github/workflows/ci.yml",
];

/// Similar command lines that may never write to the repository.
const OTHERS: &[&str] = &[
    "git -c core.hooksPath=hooks commit -m x",
    "git -c core.editor=sh commit",
    "git -C sub commit -m x",
    "git --git-dir=bare commit -m x",
    "git --exec-path=. commit -m x",
    "git commit -S -m x",
    "git commit --gpg-sign=k -m x",
    "git commit -Sk -m x",
    "git commit -e -m x",
    "git commit --edit -m x",
    "git commit -p",
    "git commit --patch",
    "git commit --interactive",
    "git commit -F /etc/passwd",
    "git commit -F/etc/passwd",
    "git commit --file=/etc/passwd",
    "git commit -F ../x",
    "git commit --file=msg",
    "git commit -t x",
    "git commit --template=x",
    "git commit --templ x",
    "git commit --trailer 'a: b' -m x",
    "git commit -c HEAD",
    "git commit --reedit-message=HEAD",
    "git commit -v",
    "git commit --pathspec-from-file=x -m x",
    "git commit -m x /etc/passwd",
    "git commit -m x ../y",
    "git add /etc/passwd",
    "git add ../x",
    "git add away/x",
    "git add -p",
    "git add -i",
    "git add -e",
    "git add --edit",
    "git add --pathspec-from-file=x",
    "git add *.rs",
    "git add $x",
    "git commit -m $x",
    "git commit $x",
    "git commit -m x > log",
    "git commit -m x && make",
    "make && git commit -m x",
    "git commit -m x | tee log",
    "GIT_EDITOR=sh git commit",
    "EDITOR=sh git commit -e",
    "A=1 git commit -m x",
    "env git commit -m x",
    "git commit -m x; echo x > .git/config",
    "git commit -m x && cp a .git/hooks/pre-commit",
    "git commit -m \"$(make)\"",
    "git commit -m \"$(cat <<EOF\n$(make)\nEOF\n)\"",
    "bash -c 'git commit -m x'",
    "./git commit -m x",
    "/usr/bin/git commit -m x",
    "git commit-tree HEAD",
    "git config user.name x",
    "git checkout .",
    "git push",
    "git reset --hard",
    "git rebase -i HEAD",
    "git status",
    "ls",
    "git update-ref HEAD x",
    "git() { make; }; git commit -m x",
    "export GIT_DIR=x; git commit -m x",
    "cd bare && git commit -m x",
    "cd / && git commit -m x",
    "git commit -m x &\nmake",
    "git tag -s x",
    "git stash",
    "git mv a b",
    "git rm a",
];

fn decide_line(permissions: &Permissions, project: &Project, line: &str) -> Verdict {
    permissions.decide(&PermissionRequest::for_command(line), &project.workspace)
}

fn project_with_bare_repository() -> Project {
    let project = Project::new();
    fs::create_dir(project.root().join("bare")).unwrap();
    fs::write(project.root().join("bare/HEAD"), "ref: refs/heads/x").unwrap();
    project
}

fn confined_permissions(mode: PermissionMode, allow: &[&str]) -> Permissions {
    Permissions {
        confinement: Confinement::Sandbox,
        ..permissions(mode, allow, &[], &[])
    }
}

#[test]
fn commit_rule_lets_commits_write_to_the_repository() {
    let project = project_with_bare_repository();
    for rule in [
        "execute_command(git commit:*)",
        "Bash(git commit:*)",
        "execute_command",
    ] {
        let permissions = confined_permissions(PermissionMode::Ask, &[rule]);
        for line in COMMITS {
            let verdict = decide_line(&permissions, &project, line);
            assert!(
                verdict.decision == Decision::Allow && verdict.commits,
                "{rule} {line}: {}",
                verdict.reason
            );
        }
    }
}

#[test]
fn commit_rule_grants_nothing_to_other_command_lines() {
    let project = project_with_bare_repository();
    for allow in [
        &[
            "execute_command(git commit:*)",
            "execute_command(git add:*)",
        ][..],
        &["execute_command(git:*)"],
        &["execute_command"],
    ] {
        for mode in [
            PermissionMode::Ask,
            PermissionMode::AcceptEdits,
            PermissionMode::Auto,
        ] {
            let permissions = confined_permissions(mode, allow);
            for line in OTHERS {
                assert!(
                    !decide_line(&permissions, &project, line).commits,
                    "{allow:?} {mode} {line}"
                );
            }
        }
    }
    let permissions = confined_permissions(PermissionMode::Ask, &["execute_command(git commit:*)"]);
    for line in [
        "git -c core.editor=sh commit",
        "git commit -m \"$(make)\"",
        "git commit -m x > log",
        "git add /etc/passwd",
        "git add $x",
    ] {
        assert_eq!(
            decide_line(&permissions, &project, line).decision,
            Decision::Ask,
            "{line}"
        );
    }
}

/// A mode that skips approval does not count as a rule; a person may approve.
#[test]
fn commits_need_a_rule_or_an_approval() {
    let project = project_with_bare_repository();
    for line in COMMITS {
        let auto = decide_line(
            &confined_permissions(PermissionMode::Auto, &[]),
            &project,
            line,
        );
        assert!(auto.decision == Decision::Allow && !auto.commits, "{line}");
        let auto = decide_line(
            &confined_permissions(PermissionMode::Auto, &["execute_command(git commit:*)"]),
            &project,
            line,
        );
        assert!(auto.decision == Decision::Allow && auto.commits, "{line}");
        let asked = decide_line(
            &confined_permissions(PermissionMode::Ask, &[]),
            &project,
            line,
        );
        assert!(
            asked.decision == Decision::Ask && asked.commits,
            "{line}: {}",
            asked.reason
        );
        let doubtful = PermissionRequest {
            requires_approval: true,
            ..PermissionRequest::for_command(line)
        };
        let asked = confined_permissions(PermissionMode::Ask, &["execute_command(git commit:*)"])
            .decide(&doubtful, &project.workspace);
        assert!(
            asked.decision == Decision::Ask && asked.commits,
            "{line}: the model itself asks"
        );
    }
}

#[test]
fn commits_are_not_granted_without_sandbox_or_trust() {
    let project = project_with_bare_repository();
    let trusting = confined_permissions(
        PermissionMode::Ask,
        &[
            "execute_command(git commit:*)",
            "execute_command(git add:*)",
        ],
    );
    let untrusted = Permissions {
        rules: trusting.rules.clone().without_git_rules(),
        ..trusting.clone()
    };
    let denied = permissions(
        PermissionMode::Ask,
        &["execute_command"],
        &[],
        &[
            "execute_command(git commit:*)",
            "execute_command(git add:*)",
        ],
    );
    let denied = Permissions {
        confinement: Confinement::Sandbox,
        ..denied
    };
    for line in COMMITS {
        assert!(!decide_line(&untrusted, &project, line).commits, "{line}");
        for confinement in [Confinement::None, Confinement::Folders] {
            let permissions = Permissions {
                confinement,
                ..trusting.clone()
            };
            assert!(!decide_line(&permissions, &project, line).commits, "{line}");
        }
        let verdict = decide_line(&denied, &project, line);
        assert!(
            verdict.decision == Decision::Deny && !verdict.commits,
            "{line}"
        );
    }
    let exact = confined_permissions(PermissionMode::Ask, &["execute_command(git commit -m x)"]);
    assert!(decide_line(&exact, &project, "git commit -m x").commits);
    assert_eq!(
        decide_line(&exact, &project, "git add .").decision,
        Decision::Ask,
        "a rule for one commit covers no other"
    );
}
