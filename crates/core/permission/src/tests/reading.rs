//! Tests of the built-in rules for read-only commands: the table in `fixtures/reading.toml` lists
//! allowed and other lines.

use std::fs;
use std::os::unix::fs::symlink;

use haft_tool::Intent;
use haft_types::{Decision, PermissionMode};
use serde::Deserialize;

use super::{Project, permissions};
use crate::builtin::reading_rules;
use crate::{
    Confinement, PermissionRequest, PermissionRules, Permissions, PermissionsConfig, RuleOrigin,
};

#[derive(Deserialize)]
struct ReadingLines {
    allowed: Vec<String>,
    asked: Vec<String>,
}

fn lines() -> ReadingLines {
    toml::from_str(include_str!("../fixtures/reading.toml")).unwrap()
}

fn project() -> Project {
    let project = Project::new();
    let write = |path: &str| {
        let at = project.root().join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(at, "x").unwrap();
    };
    for path in [
        "a.md",
        "src/a.rs",
        "src/b.rs",
        "out/log.txt",
        "bare/HEAD",
        "bare/config",
        "dashed/-o",
        "dashed/b",
    ] {
        write(path);
    }
    symlink("../../elsewhere", project.root().join("sub/out")).unwrap();
    project
}

fn confined(mode: PermissionMode) -> Permissions {
    Permissions {
        confinement: Confinement::Sandbox,
        ..permissions::<&str>(mode, &[], &[], &[])
    }
}

#[test]
fn the_table_can_be_read() {
    let listed = include_str!("../builtin/reading.toml")
        .matches("[[command]]")
        .count();
    assert_eq!(reading_rules().len(), listed);
    assert!(listed >= 50, "{listed}");
}

#[test]
fn reading_commands_are_allowed_and_nothing_else() {
    let project = project();
    let lines = lines();
    for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits] {
        let permissions = confined(mode);
        let other_than = |wanted: Decision, lines: &[String]| -> Vec<String> {
            let decided = lines.iter().map(|line| {
                (
                    line,
                    permissions.decide(&PermissionRequest::command(line), &project.workspace),
                )
            });
            let others = decided.filter(|(_, verdict)| verdict.decision != wanted);
            others
                .map(|(line, verdict)| format!("{line}: {}", verdict.reason))
                .collect()
        };
        assert_eq!(
            other_than(Decision::Allow, &lines.allowed),
            Vec::<String>::new(),
            "{mode}"
        );
        assert_eq!(
            other_than(Decision::Ask, &lines.asked),
            Vec::<String>::new(),
            "{mode}"
        );
    }
}

/// Without a sandbox, when switched off, for another tool, and when the model requests a review.
#[test]
fn they_hold_only_where_the_sandbox_does() {
    let project = project();
    let lines = lines();
    let config = PermissionsConfig {
        reading_commands: false,
        ..PermissionsConfig::default()
    };
    let switched_off = PermissionRules::load(&config, None).unwrap();
    for line in &lines.allowed {
        let asked = |permissions: &Permissions, request: &PermissionRequest<'_>| {
            let verdict = permissions.decide(request, &project.workspace);
            assert_eq!(
                verdict.decision,
                Decision::Ask,
                "{line}: {}",
                verdict.reason
            );
        };
        let command = PermissionRequest::command(line);
        for confinement in [Confinement::None, Confinement::Folders] {
            asked(
                &Permissions {
                    confinement,
                    ..confined(PermissionMode::Ask)
                },
                &command,
            );
        }
        let permissions = confined(PermissionMode::Ask);
        asked(
            &Permissions {
                rules: switched_off.clone(),
                ..permissions.clone()
            },
            &command,
        );
        for tool in ["session_start", "background_task"] {
            asked(
                &permissions,
                &PermissionRequest {
                    tool,
                    ..command.clone()
                },
            );
        }
        asked(
            &permissions,
            &PermissionRequest {
                requires_approval: true,
                ..command.clone()
            },
        );
        asked(
            &permissions,
            &PermissionRequest {
                leaves_sandbox: true,
                ..command.clone()
            },
        );
        let denied = confined(PermissionMode::Plan).decide(&command, &project.workspace);
        assert_eq!(denied.decision, Decision::Deny, "{line}");
    }
    assert_eq!(switched_off.iter().count(), 0);
}

#[test]
fn git_is_left_out_of_a_folder_that_is_not_trusted() {
    let project = project();
    let lines = lines();
    let trusting = confined(PermissionMode::Ask);
    let permissions = Permissions {
        rules: trusting.rules.clone().for_untrusted(),
        ..trusting
    };
    for line in &lines.allowed {
        let verdict = permissions.decide(&PermissionRequest::command(line), &project.workspace);
        let wanted = if line.starts_with("git ") || line.contains("&& git ") {
            Decision::Ask
        } else {
            Decision::Allow
        };
        assert_eq!(verdict.decision, wanted, "{line}: {}", verdict.reason);
    }
    assert!(
        permissions
            .rules
            .iter()
            .all(|rule| !rule.rule.contains("(git "))
    );
    let none = PermissionRules::default().for_untrusted();
    assert_eq!(none.iter().count(), 0);
}

#[test]
fn rules_of_the_user_win() {
    let project = project();
    let deny = [
        "execute_command(ls:*)",
        "read_file(**/secret*)",
        "execute_command(git log:*)",
    ];
    let ask = ["execute_command(cat:*)"];
    fs::write(project.root().join("src/secret.txt"), "x").unwrap();
    let mut permissions = permissions(PermissionMode::Ask, &[], &ask, &deny);
    permissions.confinement = Confinement::Sandbox;
    for (line, decision) in [
        ("ls", Decision::Deny),
        ("ls src | wc -l", Decision::Deny),
        ("head src/secret.txt", Decision::Deny),
        ("git --no-pager log", Decision::Deny),
        ("cat src/a.rs", Decision::Ask),
        ("grep -r x src", Decision::Ask),
        ("head src/a.rs", Decision::Allow),
        ("git status", Decision::Allow),
    ] {
        let verdict = permissions.decide(&PermissionRequest::command(line), &project.workspace);
        assert_eq!(verdict.decision, decision, "{line}: {}", verdict.reason);
    }
}

#[test]
fn a_folder_of_the_call_counts() {
    let project = project();
    let permissions = confined(PermissionMode::Ask);
    let at = |cwd: &str, line: &str| {
        let intent = Intent::Command {
            line: line.to_owned(),
            cwd: Some(cwd.to_owned()),
        };
        let request = PermissionRequest {
            intent,
            ..PermissionRequest::command(line)
        };
        permissions.decide(&request, &project.workspace).decision
    };
    assert_eq!(at("src", "cat a.rs"), Decision::Allow);
    assert_eq!(at("src", "cat ../a.md"), Decision::Allow);
    assert_eq!(at("src", "cat ../../x"), Decision::Ask);
    assert_eq!(at("away", "ls"), Decision::Ask);
    assert_eq!(at("src", "git status"), Decision::Allow);
    assert_eq!(
        at("bare", "git status"),
        Decision::Ask,
        "it may be a repository with a configuration of its own"
    );
}

#[test]
fn they_are_listed_with_their_origin() {
    let rules = confined(PermissionMode::Ask).rules;
    let listed: Vec<_> = rules.iter().collect();
    assert_eq!(listed.len(), reading_rules().len());
    assert!(
        listed
            .iter()
            .all(|rule| rule.origin == RuleOrigin::BuiltIn && rule.decision == Decision::Allow)
    );
    assert!(
        listed
            .iter()
            .any(|rule| rule.rule == "execute_command(git status:*)")
    );
}
