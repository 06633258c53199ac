//! Replays inputs of published advisories.

use haft_types::{Decision, PermissionMode};
use serde::Deserialize;

use super::{Project, permissions};
use crate::PermissionRequest;

/// One advisory of `fixtures/advisories.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Advisory {
    id: String,
    #[serde(default)]
    allow: Vec<String>,
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
struct Advisories {
    advisory: Vec<Advisory>,
}

#[test]
fn decide_allows_no_command_line_of_a_published_advisory() {
    let Advisories { advisory } =
        toml::from_str(include_str!("../fixtures/advisories.toml")).unwrap();
    let project = Project::new();
    let mut wrong = Vec::new();
    for Advisory {
        id,
        allow,
        deny,
        allows,
        asks,
        denies,
    } in &advisory
    {
        let permissions = permissions(PermissionMode::Ask, allow, &[], deny);
        for (wanted, lines) in [
            (Decision::Allow, allows),
            (Decision::Ask, asks),
            (Decision::Deny, denies),
        ] {
            for line in lines {
                let line = line.replace("{project}", &project.root().to_string_lossy());
                let verdict =
                    permissions.decide(&PermissionRequest::for_command(&line), &project.workspace);
                if verdict.decision != wanted {
                    wrong.push(format!(
                        "{id} {line:?}: {} instead of {wanted}: {}",
                        verdict.decision, verdict.reason
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
