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

fn fixture_lines() -> ReadingLines {
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

fn confined_permissions(mode: PermissionMode) -> Permissions {
    Permissions {
        confinement: Confinement::Sandbox,
        ..permissions::<&str>(mode, &[], &[], &[])
    }
}

#[test]
fn reading_rules_include_every_entry_of_the_table() {
    let listed = include_str!("../builtin/reading.toml")
        .matches("[[command]]")
        .count();
    assert_eq!(reading_rules().len(), listed);
    assert!(listed >= 50, "{listed}");
}

#[test]
fn reading_rules_allow_only_reading_commands() {
    let project = project();
    let lines = fixture_lines();
    for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits] {
        let permissions = confined_permissions(mode);
        let other_than = |wanted: Decision, lines: &[String]| -> Vec<String> {
            let decided = lines.iter().map(|line| {
                (
                    line,
                    permissions.decide(&PermissionRequest::for_command(line), &project.workspace),
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
fn reading_rules_apply_only_inside_the_sandbox() {
    let project = project();
    let lines = fixture_lines();
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
        let command = PermissionRequest::for_command(line);
        for confinement in [Confinement::None, Confinement::Folders] {
            asked(
                &Permissions {
                    confinement,
                    ..confined_permissions(PermissionMode::Ask)
                },
                &command,
            );
        }
        let permissions = confined_permissions(PermissionMode::Ask);
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
        let denied =
            confined_permissions(PermissionMode::Plan).decide(&command, &project.workspace);
        assert_eq!(denied.decision, Decision::Deny, "{line}");
    }
    assert_eq!(switched_off.iter().count(), 0);
}

#[test]
fn reading_rules_exclude_git_in_untrusted_folders() {
    let project = project();
    let lines = fixture_lines();
    let trusting = confined_permissions(PermissionMode::Ask);
    let permissions = Permissions {
        rules: trusting.rules.clone().without_git_rules(),
        ..trusting
    };
    for line in &lines.allowed {
        let verdict = permissions.decide(&PermissionRequest::for_command(line), &project.workspace);
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
    let none = PermissionRules::default().without_git_rules();
    assert_eq!(none.iter().count(), 0);
}

#[test]
fn user_rules_override_reading_rules() {
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
        let verdict = permissions.decide(&PermissionRequest::for_command(line), &project.workspace);
        assert_eq!(verdict.decision, decision, "{line}: {}", verdict.reason);
    }
}

#[test]
fn reading_rules_resolve_paths_from_the_calls_folder() {
    let project = project();
    let permissions = confined_permissions(PermissionMode::Ask);
    let at = |cwd: &str, line: &str| {
        let intent = Intent::Command {
            line: line.to_owned(),
            cwd: Some(cwd.to_owned()),
        };
        let request = PermissionRequest {
            intent,
            ..PermissionRequest::for_command(line)
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
fn reading_rules_are_listed_as_built_in() {
    let rules = confined_permissions(PermissionMode::Ask).rules;
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
