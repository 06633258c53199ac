use haft_tool::{Access, FileUse, Intent};
use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::effects::{self, WorkingFolders};
use crate::{Confinement, PermissionRequest, Permissions, ProjectFiles, shell};

/// Returns the decisions on a read, an edit, an unlisted command and an unknown tool.
fn decisions(permissions: &Permissions, project: &Project) -> [Decision; 4] {
    let file = |tool, access| {
        let usage = if access == Access::Read {
            FileUse::Read
        } else {
            FileUse::Write
        };
        let intent = Intent::Files(vec![usage("src/a".to_owned())]);
        PermissionRequest {
            tool,
            access,
            intent,
            requires_approval: false,
            leaves_sandbox: false,
            project_files: ProjectFiles::Unchanging,
        }
    };
    let opaque = PermissionRequest {
        intent: Intent::Unknown,
        ..file("mystery", Access::Execute)
    };
    [
        file("read_file", Access::Read),
        file("write_to_file", Access::Write),
        PermissionRequest::for_command("make"),
        opaque,
    ]
    .map(|call| permissions.decide(&call, &project.workspace).decision)
}

#[test]
fn modes_decide_reads_edits_commands_and_unknown_tools() {
    use Decision::{Allow, Ask, Deny};
    let project = Project::new();
    for (mode, expected) in [
        (PermissionMode::Plan, [Allow, Deny, Deny, Deny]),
        (PermissionMode::Ask, [Allow, Ask, Ask, Ask]),
        (PermissionMode::AcceptEdits, [Allow, Allow, Ask, Ask]),
        (PermissionMode::Auto, [Allow, Allow, Ask, Ask]),
        (PermissionMode::Yolo, [Allow, Allow, Allow, Allow]),
    ] {
        assert_eq!(
            decisions(&permissions::<&str>(mode, &[], &[], &[]), &project),
            expected,
            "{mode}"
        );
    }
    let mut sandboxed = permissions::<&str>(PermissionMode::Auto, &[], &[], &[]);
    sandboxed.confinement = Confinement::Sandbox;
    assert_eq!(decisions(&sandboxed, &project), [Allow, Allow, Allow, Ask]);
}

/// Nothing needs approval, regardless of the file's place; denied files stay denied.
#[test]
fn yolo_asks_for_no_file_and_no_command() {
    let project = Project::new();
    let yolo = permissions::<&str>(
        PermissionMode::Yolo,
        &[],
        &["read_file(notes/**)"],
        &["read_file(**/.env)"],
    );
    let file = |usage: fn(String) -> FileUse, path: &str| {
        let intent = Intent::Files(vec![usage(path.to_owned())]);
        let tool = "write_to_file";
        let call = PermissionRequest {
            tool,
            access: Access::Write,
            intent,
            requires_approval: true,
            leaves_sandbox: false,
            project_files: ProjectFiles::Unchanging,
        };
        yolo.decide(&call, &project.workspace).decision
    };
    for path in [
        "/etc/hosts",
        "../elsewhere/x",
        "away/x",
        ".git/config",
        "AGENTS.md",
        "notes/a",
        "src/a",
    ] {
        assert_eq!(file(FileUse::Read, path), Decision::Allow, "{path}");
        assert_eq!(file(FileUse::Write, path), Decision::Allow, "{path}");
    }
    assert_eq!(file(FileUse::Read, "sub/.env"), Decision::Deny);
    for line in [
        "echo x > /tmp/f",
        "cat $x",
        "cat .e?v",
        "tee .git/config",
        "cd / && rm x",
        "git --unknown x",
        "grep -r x .",
    ] {
        let decided = yolo.decide(&PermissionRequest::for_command(line), &project.workspace);
        assert_eq!(
            decided.decision,
            Decision::Allow,
            "{line}: {}",
            decided.reason
        );
    }
    let decided = yolo.decide(
        &PermissionRequest::for_command("cat a $x .env"),
        &project.workspace,
    );
    assert_eq!(decided.decision, Decision::Deny, "{}", decided.reason);
}

/// Files that later runs obey need approval in every other mode, even inside a sandbox.
#[test]
fn files_that_configure_later_runs_need_approval() {
    let project = Project::new();
    let everything = ["execute_command", "write_to_file", "write_to_file(**)"];
    for mode in [
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
    ] {
        let mut permissions = permissions(mode, &everything, &[], &[]);
        for confinement in [
            Confinement::None,
            Confinement::Folders,
            Confinement::Sandbox,
        ] {
            permissions.confinement = confinement;
            for path in [
                "AGENTS.md",
                "sub/CLAUDE.md",
                "rust-toolchain.toml",
                ".cargo/config.toml",
                ".npmrc",
                ".envrc",
            ] {
                let intent = Intent::Files(vec![FileUse::Write(path.to_owned())]);
                let tool = "write_to_file";
                let access = Access::Write;
                let call = PermissionRequest {
                    tool,
                    access,
                    intent,
                    requires_approval: false,
                    leaves_sandbox: false,
                    project_files: ProjectFiles::Unchanging,
                };
                let verdict = permissions.decide(&call, &project.workspace);
                assert_eq!(
                    verdict.decision,
                    Decision::Ask,
                    "{mode} {path}: {}",
                    verdict.reason
                );
            }
            for (line, decision) in [
                ("echo x > AGENTS.md", Decision::Ask),
                ("cp a sub/CLAUDE.md", Decision::Ask),
                ("cat AGENTS.md", Decision::Allow),
                ("git diff AGENTS.md", Decision::Allow),
                ("cp a src/notes.md", Decision::Allow),
            ] {
                let verdict =
                    permissions.decide(&PermissionRequest::for_command(line), &project.workspace);
                assert_eq!(
                    verdict.decision, decision,
                    "{mode} {confinement:?} {line}: {}",
                    verdict.reason
                );
            }
        }
    }
}

#[test]
fn unreadable_lists_paths_of_read_deny_rules() {
    let project = Project::new();
    for file in [".env", "sub/.env", "secrets/deep/key", "src/a.rs"] {
        std::fs::create_dir_all(project.root().join(file).parent().unwrap()).unwrap();
        std::fs::write(project.root().join(file), "x").unwrap();
    }
    let deny = [
        "read_file(**/.env)",
        "read_file(secrets/**)",
        "read_file(/srv/keys/**)",
        "write_to_file(src/**)",
    ];
    let permissions = permissions::<&str>(PermissionMode::Auto, &[], &["read_file(src/**)"], &deny);
    let found = permissions.unreadable_paths(&project.workspace);
    assert!(found.is_complete);
    let mut hidden = found.paths;
    hidden.sort();
    let inside = |path: &str| project.root().join(path);
    let mut wanted = vec![
        "/srv/keys".into(),
        inside(".env"),
        inside("sub/.env"),
        inside("secrets/deep"),
    ];
    wanted.sort();
    assert_eq!(hidden, wanted);
}

#[test]
fn unreadable_is_incomplete_if_entries_are_left_out() {
    let project = Project::new();
    for number in 0..20 {
        std::fs::create_dir(project.root().join(format!("folder-{number:02}"))).unwrap();
    }
    let secret = project.root().join("folder-19/.env");
    std::fs::write(&secret, "x").unwrap();
    let deny = ["read_file(**/.env)"];
    let denying = permissions::<&str>(PermissionMode::Auto, &[], &[], &deny);
    let cut_off = denying.find_unreadable_paths(&project.workspace, 20);
    assert!(
        !cut_off.is_complete && cut_off.paths.is_empty(),
        "{cut_off:?}"
    );
    let whole = denying.find_unreadable_paths(&project.workspace, 500);
    assert!(
        whole.is_complete && whole.paths.contains(&secret),
        "{whole:?}"
    );
    let without_rules = permissions::<&str>(PermissionMode::Auto, &[], &[], &[]);
    assert!(
        without_rules
            .find_unreadable_paths(&project.workspace, 1)
            .is_complete,
        "nothing to find"
    );
}

#[test]
fn auto_mode_in_a_sandbox_honors_rules() {
    let project = Project::new();
    let mut sandboxed = permissions(
        PermissionMode::Auto,
        &[],
        &["execute_command(git push:*)"],
        &["execute_command(rm:*)"],
    );
    sandboxed.confinement = Confinement::Sandbox;
    for (line, decision) in [
        ("make > x", Decision::Allow),
        ("$x y", Decision::Ask),
        ("git push", Decision::Ask),
        ("rm x", Decision::Deny),
        ("echo $((x))", Decision::Ask),
    ] {
        let verdict = sandboxed.decide(&PermissionRequest::for_command(line), &project.workspace);
        assert_eq!(verdict.decision, decision, "{line}: {}", verdict.reason);
    }
}

#[test]
fn sandbox_that_cannot_protect_files_asks_for_writes() {
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
        let verdict = permissions.decide(&PermissionRequest::for_command(line), &project.workspace);
        assert_eq!(verdict.decision, decision, "{line}: {}", verdict.reason);
    }
}

#[test]
fn leaving_the_sandbox_needs_approval_despite_rules() {
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
        let leaving = PermissionRequest {
            leaves_sandbox: true,
            ..PermissionRequest::for_command("make")
        };
        let verdict = permissions.decide(&leaving, &project.workspace);
        assert_eq!(
            verdict.decision, decision,
            "{mode} {confinement:?}: {}",
            verdict.reason
        );
        assert!(verdict.remember.is_empty(), "it is asked each time");
    }
}

/// A request with two reasons names both, and offers no rule that would not prevent the next
/// request.
#[test]
fn decide_gives_every_reason_of_an_approval_request() {
    let project = Project::new();
    let mut permissions = permissions::<&str>(PermissionMode::Ask, &[], &[], &[]);
    permissions.confinement = Confinement::Sandbox;
    for (leaves_sandbox, requires_approval, line, expected) in [
        (false, false, "make", "no rule allows `make`"),
        (
            true,
            false,
            "make",
            "it would run outside the sandbox; no rule allows `make`",
        ),
        (
            false,
            true,
            "make",
            "the model itself asks for the user's approval; no rule allows `make`",
        ),
        (
            true,
            true,
            "make",
            "it would run outside the sandbox; the model itself asks for the user's approval; no rule",
        ),
        (
            true,
            false,
            "touch .git/zz",
            "it would run outside the sandbox; ",
        ),
        (
            false,
            false,
            "make | sh",
            "no rule allows `make`; `sh` is a shell that reads commands from its input",
        ),
    ] {
        let call = PermissionRequest {
            requires_approval,
            leaves_sandbox,
            ..PermissionRequest::for_command(line)
        };
        let verdict = permissions.decide(&call, &project.workspace);
        assert_eq!(verdict.decision, Decision::Ask, "{line}");
        assert!(
            verdict.reason.starts_with(expected),
            "{line}: {}",
            verdict.reason
        );
        assert_eq!(verdict.leaves_sandbox, leaves_sandbox, "{line}");
        if leaves_sandbox || requires_approval {
            assert!(
                verdict.remember.is_empty(),
                "{line}: {:?}",
                verdict.remember
            );
        }
    }
}

#[test]
fn requires_approval_asks_but_never_allows() {
    let project = Project::new();
    for mode in [
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
    ] {
        let mut permissions = permissions(mode, &["execute_command(make:*)"], &[], &[]);
        permissions.confinement = Confinement::Sandbox;
        let doubtful = PermissionRequest {
            requires_approval: true,
            ..PermissionRequest::for_command("make")
        };
        assert_eq!(
            permissions.decide(&doubtful, &project.workspace).decision,
            Decision::Ask,
            "{mode}"
        );
    }
    let asks = permissions::<&str>(PermissionMode::Ask, &[], &[], &[]);
    assert_eq!(
        asks.decide(&PermissionRequest::for_command("make"), &project.workspace)
            .decision,
        Decision::Ask
    );
    let yolo = permissions::<&str>(PermissionMode::Yolo, &[], &[], &[]);
    let doubtful = PermissionRequest {
        requires_approval: true,
        ..PermissionRequest::for_command("make")
    };
    assert_eq!(
        yolo.decide(&doubtful, &project.workspace).decision,
        Decision::Allow
    );
}

#[test]
fn folder_outside_the_project_needs_approval() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &[
            "execute_command(make)",
            "write_to_file(out/**)",
            "execute_command(echo:*)",
        ],
        &[],
        &[],
    );
    let at = |cwd: &str, line: &str| {
        let intent = Intent::Command {
            line: line.to_owned(),
            cwd: Some(cwd.to_owned()),
        };
        permissions
            .decide(
                &PermissionRequest {
                    intent,
                    ..PermissionRequest::for_command(line)
                },
                &project.workspace,
            )
            .decision
    };
    assert_eq!(at("src", "make"), Decision::Allow);
    assert_eq!(at("away", "make"), Decision::Ask);
    assert_eq!(at("/", "make"), Decision::Ask);
    assert_eq!(at("out", "echo x > f"), Decision::Allow);
    assert_eq!(at("src", "echo x > out/f"), Decision::Ask);
}

#[test]
fn long_command_lines_need_approval() {
    let project = Project::new();
    let permissions = permissions(PermissionMode::Ask, &["execute_command(ls:*)"], &[], &[]);
    let line = |parts: usize| vec!["ls"; parts].join("; ");
    assert_eq!(
        permissions
            .decide(
                &PermissionRequest::for_command(&line(50)),
                &project.workspace
            )
            .decision,
        Decision::Allow
    );
    let verdict = permissions.decide(
        &PermissionRequest::for_command(&line(51)),
        &project.workspace,
    );
    assert_eq!(verdict.decision, Decision::Ask, "{}", verdict.reason);
}

/// Work is counted as the number of texts and of commands around them.
#[test]
fn effects_of_nested_commands_are_examined_once_per_level() {
    let project = Project::new();
    let work = |wrapper: &str, count: usize| -> usize {
        let line = format!("{}ls", wrapper.repeat(count));
        let script = shell::parse_line(&line).unwrap();
        let effects = effects::collect_effects(
            &script,
            &project.workspace,
            WorkingFolders::from_folder(project.root()),
        );
        effects
            .iter()
            .map(|effect| effect.shown.len() + effect.enclosing.len())
            .sum()
    };
    for wrapper in [
        "nice ",
        "env ",
        "env A=1 ",
        "sudo ",
        "timeout 5 ",
        "xargs ",
        "eval ",
        "command ",
        "find . -exec ",
        "watch ",
        "find . -exec ls \\; -exec ",
    ] {
        let half = work(wrapper, 1_000);
        let whole = work(wrapper, 2_000);
        assert!(
            whole <= half * 2 + 1_000,
            "{wrapper}: {half} and then {whole}"
        );
    }
    let allow = ["env", "sudo", "nice", "ls", "find . -exec"]
        .map(|name| format!("execute_command({name}:*)"));
    let permissions = permissions(PermissionMode::Ask, &allow, &[], &[]);
    for (wrapper, count, decision) in [
        ("env ", 5, Decision::Allow),
        ("env ", 20, Decision::Ask),
        ("nice ", 20, Decision::Ask),
        ("sudo ", 2_000, Decision::Ask),
        ("find . -exec ", 30, Decision::Ask),
    ] {
        let verdict = permissions.decide(
            &PermissionRequest::for_command(&format!("{}ls", wrapper.repeat(count))),
            &project.workspace,
        );
        assert_eq!(
            verdict.decision, decision,
            "{wrapper} {count}: {}",
            verdict.reason
        );
    }
}

#[test]
fn decide_ends_quickly_for_deep_and_long_lines() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &["execute_command(ls:*)"],
        &[],
        &["execute_command(git push:*)"],
    );
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
            permissions
                .decide(&PermissionRequest::for_command(&line), &project.workspace)
                .decision,
            Decision::Allow
        );
    }
}
