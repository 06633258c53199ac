use haft_tool::{Access, FileUse, Intent};
use haft_types::{Decision, PermissionMode};

use super::{Project, permissions};
use crate::{PermissionRequest, Permissions, ProjectFiles, Verdict};

fn call<'a>(tool: &'a str, access: Access, paths: &[&str]) -> PermissionRequest<'a> {
    let usage = if access == Access::Read {
        FileUse::Read
    } else {
        FileUse::Write
    };
    let files = paths.iter().map(|path| usage((*path).to_owned())).collect();
    PermissionRequest {
        tool,
        access,
        intent: Intent::Files(files),
        requires_approval: false,
        leaves_sandbox: false,
        project_files: ProjectFiles::Unchanging,
    }
}

fn write(permissions: &Permissions, project: &Project, path: &str) -> Verdict {
    permissions.decide(
        &call("write_to_file", Access::Write, &[path]),
        &project.workspace,
    )
}

fn read(permissions: &Permissions, project: &Project, path: &str) -> Verdict {
    permissions.decide(
        &call("read_file", Access::Read, &[path]),
        &project.workspace,
    )
}

#[test]
fn ask_mode_allows_reads_in_the_project_and_asks_for_writes() {
    let project = Project::new();
    let permissions = permissions::<&str>(PermissionMode::Ask, &[], &[], &[]);
    assert_eq!(
        read(&permissions, &project, "src/a.rs").decision,
        Decision::Allow
    );
    assert_eq!(
        read(&permissions, &project, ".git/config").decision,
        Decision::Allow
    );
    assert_eq!(
        write(&permissions, &project, "src/a.rs").decision,
        Decision::Ask
    );
}

#[test]
fn files_of_haft_in_the_project_need_an_approval() {
    let mut project = Project::new();
    let root = project.root().to_owned();
    let own = root.join(".config/haft");
    std::fs::create_dir_all(&own).unwrap();
    std::os::unix::fs::symlink(&own, root.join("link")).unwrap();
    project.workspace.spill = own.join("spill/mine");
    let linked = root.join("dotfiles/config.toml");
    for mode in [
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
    ] {
        let mut permissions = permissions(mode, &["read_file", "write_to_file"], &[], &[]);
        permissions.rules = permissions.rules.with_own_paths(vec![
            own.clone(),
            linked.clone(),
            "/elsewhere/haft".into(),
        ]);
        for path in [
            ".config/haft/config.toml",
            ".config/haft/agents/new.md",
            ".CONFIG/Haft/config.toml",
            "link/trust.toml",
            "dotfiles/config.toml",
            ".config/haft/spill/other/output",
        ] {
            for verdict in [
                write(&permissions, &project, path),
                read(&permissions, &project, path),
            ] {
                assert_eq!(verdict.decision, Decision::Ask, "{mode} {path}");
                assert!(verdict.remember.is_empty(), "{mode} {path}");
            }
        }
        let filter = permissions.read_filter(&project.workspace).unwrap();
        assert!(!filter(&own.join("config.toml")) && filter(&root.join("src/a.rs")));
        for path in [
            "dotfiles/other",
            ".config/other",
            ".config/haft/spill/mine/output",
        ] {
            assert_eq!(
                read(&permissions, &project, path).decision,
                Decision::Allow,
                "{mode} {path}"
            );
        }
        // A sub-agent works in a copy of the project in haft's folder.
        let mut copy = Project::new();
        copy.workspace.root = own.join("worktrees/1");
        copy.workspace.cwd = copy.workspace.root.clone();
        assert_eq!(
            read(&permissions, &copy, "src/a.rs").decision,
            Decision::Allow
        );
        assert!(permissions.read_filter(&copy.workspace).is_none());
    }
}

#[test]
fn file_rules_match_the_resolved_path() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &["write_to_file(src/**)", "write_to_file(*.md)"],
        &[],
        &[],
    );
    for (path, decision) in [
        ("src/a.rs", Decision::Allow),
        ("src/deep/er/a.rs", Decision::Allow),
        ("./src/a.rs", Decision::Allow),
        ("sub/up/src/a.rs", Decision::Allow),
        ("README.md", Decision::Allow),
        ("sub/README.md", Decision::Ask),
        ("src/../sub/a.rs", Decision::Ask),
        ("src", Decision::Ask),
        ("srcx/a.rs", Decision::Ask),
        ("SRC/a.rs", Decision::Ask),
        ("src/../../elsewhere/a", Decision::Ask),
        ("away/a.md", Decision::Ask),
    ] {
        let verdict = write(&permissions, &project, path);
        assert_eq!(verdict.decision, decision, "{path}: {}", verdict.reason);
    }
}

#[test]
fn allow_rules_cover_one_tool_and_deny_rules_all_of_its_kind() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &["write_to_file(src/**)", "write_to_file(sub/**)"],
        &["replace_in_file(sub)"],
        &["read_file(**/.env)"],
    );
    let edit = |path| {
        permissions
            .decide(
                &call("replace_in_file", Access::Write, &[path]),
                &project.workspace,
            )
            .decision
    };
    assert_eq!(edit("src/a.rs"), Decision::Ask);
    assert_eq!(
        write(&permissions, &project, "sub/a.rs").decision,
        Decision::Ask
    );
    let search = permissions.decide(
        &call("search_files", Access::Read, &["src/.env"]),
        &project.workspace,
    );
    assert_eq!(search.decision, Decision::Deny);
}

#[test]
fn protected_files_match_no_allow_rule() {
    let project = Project::new();
    let rules = ["write_to_file(**)", "write_to_file"];
    for mode in [
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
    ] {
        let permissions = permissions(mode, &rules, &[], &[]);
        for path in [
            ".git/hooks/pre-commit",
            ".GIT/config",
            "sub/up/.git/config",
            ".haft/config.toml",
            ".mcp.json",
            "sub/.bashrc",
            ".g\u{200d}it/x",
        ] {
            let verdict = write(&permissions, &project, path);
            assert_eq!(verdict.decision, Decision::Ask, "{path} in {mode}");
            assert!(verdict.reason.contains("protected"), "{}", verdict.reason);
            assert!(verdict.remember.is_empty(), "{path}");
        }
        assert_eq!(
            write(&permissions, &project, "src/a").decision,
            Decision::Allow
        );
    }
    let yolo = permissions::<&str>(PermissionMode::Yolo, &[], &[], &[]);
    assert_eq!(
        write(&yolo, &project, ".git/hooks/pre-commit").decision,
        Decision::Allow
    );
}

#[test]
fn deny_rules_match_every_spelling_of_a_path() {
    let project = Project::new();
    for mode in [PermissionMode::Ask, PermissionMode::Yolo] {
        let permissions = permissions(
            mode,
            &["read_file"],
            &[],
            &["read_file(secrets/**)", "read_file(**/*.pem)"],
        );
        for path in [
            "secrets/a",
            "SECRETS/a",
            "sub/up/secrets/a",
            "./secrets//a",
            "src/../secrets/a",
            "x/y/KEY.PEM",
            "key.pem",
        ] {
            let verdict = read(&permissions, &project, path);
            assert_eq!(verdict.decision, Decision::Deny, "{path} in {mode}");
            assert!(verdict.rule.is_some());
        }
        assert_eq!(
            read(&permissions, &project, "secretsx/a").decision,
            Decision::Allow
        );
    }
}

#[test]
fn files_outside_the_project_need_approval_and_are_listed() {
    let project = Project::new();
    let allowed = format!(
        "read_file({}/elsewhere/**)",
        project.root().parent().unwrap().display()
    );
    let permissions = permissions(
        PermissionMode::Ask,
        &["read_file", "read_file(**)", &allowed],
        &[],
        &[],
    );
    for path in ["/etc/passwd", "../x", "sub/up/../x"] {
        let verdict = read(&permissions, &project, path);
        assert_eq!(verdict.decision, Decision::Ask, "{path}");
        assert!(
            verdict.reason.contains("outside the project"),
            "{}",
            verdict.reason
        );
        assert_eq!(verdict.outside.len(), 1);
    }
    let verdict = read(&permissions, &project, "away/file");
    assert_eq!(
        (verdict.decision, verdict.outside.len()),
        (Decision::Allow, 1),
        "{}",
        verdict.reason
    );
}

#[test]
fn call_on_several_files_needs_a_rule_for_each() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &["apply_patch(src/**)"],
        &[],
        &["apply_patch(src/lock)"],
    );
    let decide = |paths: &[&str]| {
        permissions.decide(
            &call("apply_patch", Access::Write, paths),
            &project.workspace,
        )
    };
    assert_eq!(decide(&["src/a", "src/b"]).decision, Decision::Allow);
    assert_eq!(decide(&["src/a", "sub/b"]).decision, Decision::Ask);
    assert_eq!(decide(&["src/a", "src/lock"]).decision, Decision::Deny);
    let unknown = PermissionRequest {
        intent: Intent::Unknown,
        ..call("apply_patch", Access::Write, &[])
    };
    assert_eq!(
        permissions.decide(&unknown, &project.workspace).decision,
        Decision::Ask
    );
}

#[test]
fn undeclared_intent_needs_approval_in_every_mode_but_yolo() {
    let project = Project::new();
    for access in [Access::Read, Access::State, Access::Write, Access::Execute] {
        let opaque = PermissionRequest {
            intent: Intent::Unknown,
            ..call("mystery", access, &[])
        };
        for mode in [
            PermissionMode::Ask,
            PermissionMode::AcceptEdits,
            PermissionMode::Auto,
        ] {
            let verdict =
                permissions::<&str>(mode, &[], &[], &[]).decide(&opaque, &project.workspace);
            assert_eq!(verdict.decision, Decision::Ask, "{mode} {access:?}");
        }
        let yolo = permissions::<&str>(PermissionMode::Yolo, &[], &[], &[]);
        assert_eq!(
            yolo.decide(&opaque, &project.workspace).decision,
            Decision::Allow
        );
    }
}

#[test]
fn write_is_denied_for_files_denied_to_readers() {
    let project = Project::new();
    let secret = project.workspace.root.join("src/secret.key");
    std::fs::create_dir_all(secret.parent().unwrap()).unwrap();
    std::fs::write(&secret, "k").unwrap();
    std::os::unix::fs::symlink(&secret, project.workspace.root.join("alias")).unwrap();
    for mode in [
        PermissionMode::Ask,
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
        PermissionMode::Yolo,
    ] {
        let denied = permissions(mode, &["edit_file(src/**)"], &[], &["read_file(src/*.key)"]);
        for path in ["src/secret.key", "./src/../src/secret.key", "alias"] {
            for tool in [
                "edit_file",
                "replace_in_file",
                "multi_edit",
                "apply_patch",
                "write_to_file",
            ] {
                let verdict =
                    denied.decide(&call(tool, Access::Write, &[path]), &project.workspace);
                assert_eq!(
                    verdict.decision,
                    Decision::Deny,
                    "{mode} {tool} {path}: {}",
                    verdict.reason
                );
            }
        }
        // A new file has no content to reveal.
        assert_ne!(
            write(&denied, &project, "src/new.key").decision,
            Decision::Deny,
            "{mode}"
        );
    }
    let asked = permissions(
        PermissionMode::AcceptEdits,
        &[],
        &["read_file(src/*.key)"],
        &[],
    );
    assert_eq!(
        write(&asked, &project, "src/secret.key").decision,
        Decision::Ask
    );
    assert_eq!(
        write(&asked, &project, "src/other.txt").decision,
        Decision::Allow
    );
}
