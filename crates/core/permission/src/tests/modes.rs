use haft_tool::{Access, FileUse, Intent};
use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::{Confinement, PermissionRequest, Permissions};

/// What a mode makes of a read, an edit, an unlisted command, and a tool of which nothing is known.
fn decisions(permissions: &Permissions, project: &Project) -> [Decision; 4] {
    let file = |tool, access| {
        let usage = if access == Access::Read { FileUse::Read } else { FileUse::Write };
        let intent = Intent::Files(vec![usage("src/a".to_owned())]);
        PermissionRequest { tool, access, intent, requires_approval: false, leaves_sandbox: false }
    };
    let opaque = PermissionRequest { intent: Intent::Unknown, ..file("mystery", Access::Execute) };
    [file("read_file", Access::Read), file("write_to_file", Access::Write), PermissionRequest::command("make"), opaque]
        .map(|call| permissions.decide(&call, &project.workspace).decision)
}

#[test]
fn each_mode() {
    use Decision::{Allow, Ask, Deny};
    let project = Project::new();
    for (mode, expected) in [
        (PermissionMode::Plan, [Allow, Deny, Deny, Deny]),
        (PermissionMode::Ask, [Allow, Ask, Ask, Ask]),
        (PermissionMode::AcceptEdits, [Allow, Allow, Ask, Ask]),
        (PermissionMode::Auto, [Allow, Allow, Ask, Ask]),
        (PermissionMode::Yolo, [Allow, Allow, Allow, Allow]),
    ] {
        assert_eq!(decisions(&permissions::<&str>(mode, &[], &[], &[]), &project), expected, "{mode}");
    }
    let mut sandboxed = permissions::<&str>(PermissionMode::Auto, &[], &[], &[]);
    sandboxed.confinement = Confinement::Sandbox;
    assert_eq!(decisions(&sandboxed, &project), [Allow, Allow, Allow, Ask]);
}

#[test]
fn auto_in_a_sandbox_still_honours_rules() {
    let project = Project::new();
    let mut sandboxed =
        permissions(PermissionMode::Auto, &[], &["execute_command(git push:*)"], &["execute_command(rm:*)"]);
    sandboxed.confinement = Confinement::Sandbox;
    for (line, decision) in [
        ("make > x", Decision::Allow),
        ("$x y", Decision::Ask),
        ("git push", Decision::Ask),
        ("rm x", Decision::Deny),
        ("echo $((x))", Decision::Ask),
    ] {
        let verdict = sandboxed.decide(&PermissionRequest::command(line), &project.workspace);
        assert_eq!(verdict.decision, decision, "{line}: {}", verdict.reason);
    }
}

#[test]
fn a_sandbox_that_cannot_protect_files_asks_for_what_writes() {
    let project = Project::new();
    let mut permissions = permissions::<&str>(PermissionMode::Auto, &[], &[], &[]);
    permissions.confinement = Confinement::Folders;
    for (line, decision) in [
        ("ls -l src", Decision::Allow),
        ("cat src/a | grep x", Decision::Allow),
        ("make", Decision::Ask),
        ("echo x > src/a", Decision::Ask),
        ("cat src/a > b", Decision::Ask),
        ("rm src/a", Decision::Ask),
        ("$x", Decision::Ask),
    ] {
        let verdict = permissions.decide(&PermissionRequest::command(line), &project.workspace);
        assert_eq!(verdict.decision, decision, "{line}: {}", verdict.reason);
    }
}

#[test]
fn leaving_the_sandbox_is_asked_whatever_is_allowed() {
    let project = Project::new();
    for (mode, confinement, decision) in [
        (PermissionMode::Auto, Confinement::Sandbox, Decision::Ask),
        (PermissionMode::Ask, Confinement::Sandbox, Decision::Ask),
        (PermissionMode::Ask, Confinement::Folders, Decision::Ask),
        (PermissionMode::Ask, Confinement::None, Decision::Allow),
        (PermissionMode::Yolo, Confinement::None, Decision::Allow),
    ] {
        let mut permissions = permissions(mode, &["execute_command(make:*)"], &[], &[]);
        permissions.confinement = confinement;
        let leaving = PermissionRequest { leaves_sandbox: true, ..PermissionRequest::command("make") };
        let verdict = permissions.decide(&leaving, &project.workspace);
        assert_eq!(verdict.decision, decision, "{mode} {confinement:?}: {}", verdict.reason);
        assert!(verdict.remember.is_empty(), "it is asked each time");
    }
}

#[test]
fn the_models_own_doubt_asks_and_its_confidence_allows_nothing() {
    let project = Project::new();
    for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
        let mut permissions = permissions(mode, &["execute_command(make:*)"], &[], &[]);
        permissions.confinement = Confinement::Sandbox;
        let doubtful = PermissionRequest { requires_approval: true, ..PermissionRequest::command("make") };
        assert_eq!(permissions.decide(&doubtful, &project.workspace).decision, Decision::Ask, "{mode}");
    }
    let asks = permissions::<&str>(PermissionMode::Ask, &[], &[], &[]);
    assert_eq!(asks.decide(&PermissionRequest::command("make"), &project.workspace).decision, Decision::Ask);
    let yolo = permissions::<&str>(PermissionMode::Yolo, &[], &[], &[]);
    let doubtful = PermissionRequest { requires_approval: true, ..PermissionRequest::command("make") };
    assert_eq!(yolo.decide(&doubtful, &project.workspace).decision, Decision::Allow);
}

#[test]
fn a_folder_outside_is_asked() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &["execute_command(make)", "write_to_file(out/**)", "execute_command(echo:*)"],
        &[],
        &[],
    );
    let at = |cwd: &str, line: &str| {
        let intent = Intent::Command { line: line.to_owned(), cwd: Some(cwd.to_owned()) };
        permissions
            .decide(&PermissionRequest { intent, ..PermissionRequest::command(line) }, &project.workspace)
            .decision
    };
    assert_eq!(at("src", "make"), Decision::Allow);
    assert_eq!(at("away", "make"), Decision::Ask);
    assert_eq!(at("/", "make"), Decision::Ask);
    assert_eq!(at("out", "echo x > f"), Decision::Allow);
    assert_eq!(at("src", "echo x > out/f"), Decision::Ask);
}

#[test]
fn a_long_line_is_asked() {
    let project = Project::new();
    let permissions = permissions(PermissionMode::Ask, &["execute_command(ls:*)"], &[], &[]);
    let line = |parts: usize| vec!["ls"; parts].join("; ");
    assert_eq!(
        permissions.decide(&PermissionRequest::command(&line(50)), &project.workspace).decision,
        Decision::Allow
    );
    let verdict = permissions.decide(&PermissionRequest::command(&line(51)), &project.workspace);
    assert_eq!(verdict.decision, Decision::Ask, "{}", verdict.reason);
}

#[test]
fn deep_and_long_lines_end_quickly() {
    let project = Project::new();
    let permissions =
        permissions(PermissionMode::Ask, &["execute_command(ls:*)"], &[], &["execute_command(git push:*)"]);
    for line in [
        "(".repeat(30_000),
        "$(".repeat(20_000),
        "{ ".repeat(20_000),
        "\"$(".repeat(10_000),
        "`".repeat(30_001),
        "if ".repeat(10_000),
        format!("git {}", "-x ".repeat(20_000)),
        format!("{} ls", "timeout 5 ".repeat(5_000)),
        format!("ls {}", "<(".repeat(20_000)),
        "! ".repeat(30_000),
        "x".repeat(100_000),
        "ls;".repeat(20_000),
        "${x".repeat(15_000),
        "[[ ".repeat(15_000),
        "case x in ".repeat(6_000),
        "f()".repeat(20_000),
    ] {
        assert_ne!(
            permissions.decide(&PermissionRequest::command(&line), &project.workspace).decision,
            Decision::Allow
        );
    }
}
