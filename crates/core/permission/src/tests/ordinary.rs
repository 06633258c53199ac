use haft_types::{Decision, PermissionMode};
use serde::Deserialize;

use super::{Project, permissions};
use crate::PermissionRequest;

/// `fixtures/ordinary.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OrdinaryCommands {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
    commands: Vec<String>,
}

/// Number of commands in the fixture that its rules allow.
const ALLOWED: usize = 339;

#[test]
fn ordinary_commands_stay_allowed() {
    let OrdinaryCommands {
        allow,
        ask,
        deny,
        commands,
    } = toml::from_str(include_str!("../fixtures/ordinary.toml")).unwrap();
    let project = Project::new();
    std::fs::write(project.root().join(".env"), "KEY=1\n").unwrap();
    let permissions = permissions(PermissionMode::Ask, &allow, &ask, &deny);
    let decided = |line: &&String| {
        permissions.decide(&PermissionRequest::for_command(line), &project.workspace)
    };
    let (allowed, others): (Vec<_>, Vec<_>) = commands
        .iter()
        .partition(|line| decided(line).decision == Decision::Allow);
    let others: Vec<_> = others
        .iter()
        .map(|line| format!("{line}: {}", decided(line).reason))
        .collect();
    assert!(commands.len() >= 300, "{}", commands.len());
    assert_eq!(
        allowed.len(),
        ALLOWED,
        "of {} are allowed; not:\n{}",
        commands.len(),
        others.join("\n")
    );
}
