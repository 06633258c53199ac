use std::fmt::Write as _;

use haft_types::{Decision, PermissionMode};
use serde::Deserialize;

use super::{Project, permissions};
use crate::PermissionRequest;

/// One group of `fixtures/commands.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Group {
    name: String,
    #[serde(default)]
    mode: PermissionMode,
    #[serde(default)]
    allow: Vec<String>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    deny: Vec<String>,
    #[serde(default)]
    allows: Vec<String>,
    #[serde(default)]
    asks: Vec<String>,
    #[serde(default)]
    denies: Vec<String>,
}

#[derive(Deserialize)]
struct Fixture {
    group: Vec<Group>,
}

#[test]
fn decide_matches_the_fixture() {
    let fixture: Fixture = toml::from_str(include_str!("../fixtures/commands.toml")).unwrap();
    let project = Project::new();
    let mut lines = 0;
    let mut wrong = Vec::new();
    for group in &fixture.group {
        let permissions = permissions(group.mode, &group.allow, &group.ask, &group.deny);
        let expected = [
            (Decision::Allow, &group.allows),
            (Decision::Ask, &group.asks),
            (Decision::Deny, &group.denies),
        ];
        for (decision, line) in expected
            .iter()
            .flat_map(|(decision, lines)| lines.iter().map(move |line| (*decision, line)))
        {
            lines += 1;
            let line = line.replace("{project}", &project.root().to_string_lossy());
            let verdict =
                permissions.decide(&PermissionRequest::for_command(&line), &project.workspace);
            if verdict.decision != decision {
                wrong.push(format!(
                    "[{}] {line:?}: {} instead of {decision}: {}",
                    group.name, verdict.decision, verdict.reason
                ));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {lines} lines are wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert!(lines >= 1_300, "{lines}");
}

/// Every verdict with its reason and its parts. A change of the program tables that changes a
/// decision or a sentence shows here.
#[test]
fn decide_keeps_every_verdict_of_the_fixture() {
    let fixture: Fixture = toml::from_str(include_str!("../fixtures/commands.toml")).unwrap();
    let project = Project::new();
    let root = project.root().to_str().unwrap();
    let top = project.root().parent().unwrap().to_str().unwrap();
    let mut text = String::new();
    for group in &fixture.group {
        let _ = writeln!(text, "\n# {}", group.name);
        let permissions = permissions(group.mode, &group.allow, &group.ask, &group.deny);
        for line in group.allows.iter().chain(&group.asks).chain(&group.denies) {
            let verdict = permissions.decide(
                &PermissionRequest::for_command(&line.replace("{project}", root)),
                &project.workspace,
            );
            let _ = write!(text, "{} {line:?}: {}", verdict.decision, verdict.reason);
            if verdict.parts.len() > 1 {
                let parts = verdict
                    .parts
                    .iter()
                    .map(|part| format!("{} {:?}", part.decision, part.command));
                let _ = write!(text, " [{}]", parts.collect::<Vec<_>>().join(", "));
            }
            text.push('\n');
        }
    }
    insta::assert_snapshot!(
        "verdicts",
        text.replace(root, "/project").replace(top, "/top")
    );
}
