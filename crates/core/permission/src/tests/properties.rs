//! Properties: deny and ask rules only tighten decisions on any command line.

use haft_tool::Workspace;
use haft_types::{Decision, PermissionMode};
use proptest::prelude::*;

use super::{Project, config, permissions};
use crate::{PermissionRequest, PermissionRule, PermissionRules};

const COMMANDS: [&str; 22] = [
    "ls",
    "ls -l",
    "rm x",
    "git status",
    "git push",
    "git -C x push",
    "cat a",
    "$x",
    "echo $(rm x)",
    "bash -c 'ls; rm y'",
    "env ls",
    "timeout 5 rm x",
    "find . -exec rm {} +",
    "X=1 ls",
    "ls > out/f",
    "cd src",
    "f() { ls; }",
    "echo $((x))",
    "cat .env",
    "xargs rm",
    "sed -n p f",
    "'ls",
];
const JOINTS: [&str; 6] = ["; ", " && ", " || ", " | ", " & ", "\n"];
const RULES: [&str; 14] = [
    "execute_command(ls:*)",
    "execute_command(rm:*)",
    "execute_command(git:*)",
    "execute_command(git push:*)",
    "execute_command(cat:*)",
    "execute_command(echo:*)",
    "execute_command(bash:*)",
    "execute_command(env:*)",
    "execute_command(find:*)",
    "execute_command(xargs:*)",
    "execute_command",
    "write_to_file(out/**)",
    "read_file(**/.env)",
    "execute_command(cd:*)",
];
const MODES: [PermissionMode; 5] = [
    PermissionMode::Plan,
    PermissionMode::Ask,
    PermissionMode::AcceptEdits,
    PermissionMode::Auto,
    PermissionMode::Yolo,
];

fn command_line() -> impl Strategy<Value = String> {
    let piece = (
        proptest::sample::select(&COMMANDS[..]),
        proptest::sample::select(&JOINTS[..]),
    );
    proptest::collection::vec(piece, 1..5).prop_map(|pieces| {
        pieces
            .into_iter()
            .flat_map(|(command, joint)| [command, joint])
            .collect()
    })
}

fn rules() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::collection::vec(proptest::sample::select(&RULES[..]), 0..6)
}

#[test]
fn decide_never_loosens_with_a_stricter_rule() {
    let project = Project::new();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 2_000,
        ..ProptestConfig::default()
    });
    let strategy = (
        command_line(),
        rules(),
        rules(),
        rules(),
        proptest::sample::select(&RULES[..]),
        proptest::sample::select(&MODES[..]),
    );
    let checked = runner.run(&strategy, |(line, allow, ask, deny, added, mode)| {
        let before = permissions(mode, &allow, &ask, &deny);
        let decided = before
            .decide(&PermissionRequest::for_command(&line), &project.workspace)
            .decision;
        let rule = PermissionRule::parse(added, None).unwrap();
        for decision in [Decision::Ask, Decision::Deny] {
            let mut after = before.clone();
            after.rules = after.rules.with_rule(decision, rule.clone());
            let now = after
                .decide(&PermissionRequest::for_command(&line), &project.workspace)
                .decision;
            prop_assert!(
                now >= decided,
                "{line:?}: {decided} became {now} with {decision} {added}"
            );
        }
        let mut allowed = before.clone();
        allowed.rules = allowed.rules.with_rule(Decision::Allow, rule);
        let now = allowed
            .decide(&PermissionRequest::for_command(&line), &project.workspace)
            .decision;
        prop_assert!(
            decided != Decision::Deny || now == Decision::Deny,
            "{line:?}: a denial was lifted by {added}"
        );
        Ok(())
    });
    checked.unwrap();
}

#[test]
fn decide_never_loosens_with_project_rules() {
    let project = Project::new();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 1_000,
        ..ProptestConfig::default()
    });
    let strategy = (
        command_line(),
        rules(),
        rules(),
        rules(),
        rules(),
        proptest::sample::select(&MODES[..]),
    );
    let checked = runner.run(&strategy, |(line, user, allow, ask, deny, mode)| {
        let before = permissions(mode, &user, &[], &[]);
        let file = config(&allow, &ask, &deny);
        let mut after = before.clone();
        after.rules = PermissionRules::tightened_by(&before.rules, &file, None).unwrap();
        let then = before.decide(&PermissionRequest::for_command(&line), &project.workspace);
        let now = after.decide(&PermissionRequest::for_command(&line), &project.workspace);
        prop_assert!(
            now.decision >= then.decision,
            "{line:?}: {} became {}",
            then.decision,
            now.decision
        );
        Ok(())
    });
    checked.unwrap();
}

/// The rules offered for an approved line allow that line and nothing that was denied.
#[test]
fn remembered_rules_allow_the_approved_line() {
    let project = Project::new();
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 1_000,
        ..ProptestConfig::default()
    });
    let checked = runner.run(
        &(command_line(), rules(), rules()),
        |(line, allow, deny)| {
            let mut permissions = permissions(PermissionMode::Ask, &allow, &[], &deny);
            let verdict =
                permissions.decide(&PermissionRequest::for_command(&line), &project.workspace);
            if !verdict.remember.is_empty() {
                for text in &verdict.remember {
                    permissions.rules = permissions
                        .rules
                        .with_rule(Decision::Allow, PermissionRule::parse(text, None).unwrap());
                }
                prop_assert_eq!(
                    permissions
                        .decide(&PermissionRequest::for_command(&line), &project.workspace)
                        .decision,
                    Decision::Allow
                );
            }
            Ok(())
        },
    );
    checked.unwrap();
}

proptest! {
    /// Parsing ends for every text, and a text that does not parse is not allowed.
    #[test]
    fn decide_ends_for_any_text(line in "[a-c $`'\"(){}<>|&;\\\\\n#*?~=!\\[\\]-]{0,40}") {
        let nowhere = Workspace { root: "/nowhere".into(), extra: Vec::new(), cwd: "/nowhere".into(), spill: "/none".into(), journal: "/none".into() };
        let permissions = permissions(PermissionMode::Ask, &["execute_command(a:*)"], &[], &["execute_command(b:*)"]);
        let verdict = permissions.decide(&PermissionRequest::for_command(&line), &nowhere);
        if verdict.decision == Decision::Allow {
            prop_assert!(verdict.parts.iter().all(|part| part.decision == Decision::Allow) && !verdict.parts.is_empty());
        }
    }
}
