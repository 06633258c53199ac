use haft_types::{Decision, PermissionMode};
use serde::Deserialize;

use super::super::Call;
use super::{Project, permissions};

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
fn every_line_of_the_fixture_comes_to_what_it_says() {
    let fixture: Fixture = toml::from_str(include_str!("../fixtures/commands.toml")).unwrap();
    let project = Project::new();
    let (mut lines, mut wrong) = (0, Vec::new());
    for group in &fixture.group {
        let permissions = permissions(group.mode, &group.allow, &group.ask, &group.deny);
        let expected =
            [(Decision::Allow, &group.allows), (Decision::Ask, &group.asks), (Decision::Deny, &group.denies)];
        for (decision, line) in
            expected.iter().flat_map(|(decision, lines)| lines.iter().map(move |line| (*decision, line)))
        {
            lines += 1;
            let line = line.replace("{project}", &project.root().to_string_lossy());
            let verdict = permissions.decide(&Call::command(&line), &project.workspace);
            if verdict.decision != decision {
                wrong.push(format!(
                    "[{}] {line:?}: {} instead of {decision}: {}",
                    group.name, verdict.decision, verdict.reason
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {lines} lines are wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(lines >= 500, "{lines}");
}
