use haft_tool::{Access, FileUse, Intent};
use haft_types::{Decision, PermissionMode};

use super::super::{Call, Permissions, Verdict};
use super::{Project, permissions};

fn call<'a>(tool: &'a str, access: Access, paths: &[&str]) -> Call<'a> {
    let usage = if access == Access::Read { FileUse::Read } else { FileUse::Write };
    let files = paths.iter().map(|path| usage((*path).to_owned())).collect();
    Call { tool, access, intent: Intent::Files(files), requires_approval: false, leaves_sandbox: false }
}

fn write(permissions: &Permissions, project: &Project, path: &str) -> Verdict {
    permissions.decide(&call("write_to_file", Access::Write, &[path]), &project.workspace)
}

fn read(permissions: &Permissions, project: &Project, path: &str) -> Verdict {
    permissions.decide(&call("read_file", Access::Read, &[path]), &project.workspace)
}

#[test]
fn reading_in_the_project_is_allowed_and_writing_is_asked() {
    let project = Project::new();
    let permissions = permissions::<&str>(PermissionMode::Ask, &[], &[], &[]);
    assert_eq!(read(&permissions, &project, "src/a.rs").decision, Decision::Allow);
    assert_eq!(read(&permissions, &project, ".git/config").decision, Decision::Allow);
    assert_eq!(write(&permissions, &project, "src/a.rs").decision, Decision::Ask);
}

#[test]
fn globs_are_on_the_resolved_path() {
    let project = Project::new();
    let permissions = permissions(PermissionMode::Ask, &["write_to_file(src/**)", "write_to_file(*.md)"], &[], &[]);
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
fn a_rule_allows_only_the_tool_it_names_but_denies_all_of_its_kind() {
    let project = Project::new();
    let permissions = permissions(
        PermissionMode::Ask,
        &["write_to_file(src/**)", "write_to_file(sub/**)"],
        &["replace_in_file(sub)"],
        &["read_file(**/.env)"],
    );
    let edit = |path| permissions.decide(&call("replace_in_file", Access::Write, &[path]), &project.workspace).decision;
    assert_eq!(edit("src/a.rs"), Decision::Ask);
    assert_eq!(write(&permissions, &project, "sub/a.rs").decision, Decision::Ask);
    let search = permissions.decide(&call("search_files", Access::Read, &["src/.env"]), &project.workspace);
    assert_eq!(search.decision, Decision::Deny);
}

#[test]
fn protected_files_lie_outside_every_pattern() {
    let project = Project::new();
    let rules = ["write_to_file(**)", "write_to_file"];
    for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
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
        assert_eq!(write(&permissions, &project, "src/a").decision, Decision::Allow);
    }
    let yolo = permissions::<&str>(PermissionMode::Yolo, &[], &[], &[]);
    assert_eq!(write(&yolo, &project, ".git/hooks/pre-commit").decision, Decision::Allow);
}

#[test]
fn deny_knows_every_spelling() {
    let project = Project::new();
    for mode in [PermissionMode::Ask, PermissionMode::Yolo] {
        let permissions = permissions(mode, &["read_file"], &[], &["read_file(secrets/**)", "read_file(**/*.pem)"]);
        for path in
            ["secrets/a", "SECRETS/a", "sub/up/secrets/a", "./secrets//a", "src/../secrets/a", "x/y/KEY.PEM", "key.pem"]
        {
            let verdict = read(&permissions, &project, path);
            assert_eq!(verdict.decision, Decision::Deny, "{path} in {mode}");
            assert!(verdict.rule.is_some());
        }
        assert_eq!(read(&permissions, &project, "secretsx/a").decision, Decision::Allow);
    }
}

#[test]
fn outside_the_project_is_asked_and_told() {
    let project = Project::new();
    let allowed = format!("read_file({}/elsewhere/**)", project.root().parent().unwrap().display());
    let permissions = permissions(PermissionMode::Ask, &["read_file", "read_file(**)", &allowed], &[], &[]);
    for path in ["/etc/passwd", "../x", "sub/up/../x"] {
        let verdict = read(&permissions, &project, path);
        assert_eq!(verdict.decision, Decision::Ask, "{path}");
        assert!(verdict.reason.contains("outside the project"), "{}", verdict.reason);
        assert_eq!(verdict.outside.len(), 1);
    }
    let verdict = read(&permissions, &project, "away/file");
    assert_eq!((verdict.decision, verdict.outside.len()), (Decision::Allow, 1), "{}", verdict.reason);
}

#[test]
fn a_call_about_several_files_needs_every_one() {
    let project = Project::new();
    let permissions = permissions(PermissionMode::Ask, &["apply_patch(src/**)"], &[], &["apply_patch(src/lock)"]);
    let decide = |paths: &[&str]| permissions.decide(&call("apply_patch", Access::Write, paths), &project.workspace);
    assert_eq!(decide(&["src/a", "src/b"]).decision, Decision::Allow);
    assert_eq!(decide(&["src/a", "sub/b"]).decision, Decision::Ask);
    assert_eq!(decide(&["src/a", "src/lock"]).decision, Decision::Deny);
    let unknown = Call { intent: Intent::Unknown, ..call("apply_patch", Access::Write, &[]) };
    assert_eq!(permissions.decide(&unknown, &project.workspace).decision, Decision::Ask);
}

/// `extract_to_text` reads one file and writes another; both are looked at, whatever the spelling.
mod extraction {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Bench, builtin};

    fn decide(permissions: &Permissions, project: &Project, tool: &str, arguments: &Value) -> Verdict {
        let tools = builtin();
        let tool = tools.iter().find(|one| one.spec().name == tool).unwrap();
        permissions.decide(&Call::of(tool.as_ref(), arguments), &project.workspace)
    }

    fn extract(permissions: &Permissions, project: &Project, output: &str) -> Verdict {
        decide(permissions, project, "extract_to_text", &json!({"path": "src/a.ipynb", "output": output}))
    }

    #[test]
    fn protected_files_are_asked_about_in_every_mode_that_edits() {
        let project = Project::new();
        std::os::unix::fs::symlink(".git", project.root().join("plain")).unwrap();
        std::os::unix::fs::symlink(".git/config", project.root().join("note.txt")).unwrap();
        let absolute = project.root().join(".git/config").display().to_string();
        for mode in [PermissionMode::AcceptEdits, PermissionMode::Auto] {
            let permissions = permissions(mode, &["extract_to_text", "extract_to_text(**)"], &[], &[]);
            for output in [
                ".git/config",
                ".envrc",
                ".haft/config.toml",
                ".github/workflows/ci.yml",
                ".vscode/tasks.json",
                "./src/../.git/config",
                "plain/config",
                "note.txt",
                ".GIT/config",
                &absolute,
            ] {
                assert_eq!(extract(&permissions, &project, output).decision, Decision::Ask, "{mode} {output}");
            }
            assert_eq!(extract(&permissions, &project, "out/notes.txt").decision, Decision::Allow, "{mode}");
        }
        // Where no output is named, the text goes beside the document.
        let permissions = permissions::<&str>(PermissionMode::AcceptEdits, &[], &[], &[]);
        let hidden = decide(&permissions, &project, "extract_to_text", &json!({"path": ".git/a.ipynb"}));
        assert_eq!(hidden.decision, Decision::Ask);
        let plain = decide(&permissions, &project, "extract_to_text", &json!({"path": "src/a.ipynb"}));
        assert_eq!(plain.decision, Decision::Allow);
    }

    #[test]
    fn rules_on_other_tools_hold_for_what_is_read_and_written() {
        let project = Project::new();
        std::os::unix::fs::symlink("secrets", project.root().join("open")).unwrap();
        let deny = ["write_to_file(secrets/**)", "read_file(private/**)"];
        for mode in [PermissionMode::AcceptEdits, PermissionMode::Auto, PermissionMode::Yolo] {
            let permissions = permissions(mode, &["extract_to_text"], &[], &deny);
            for output in ["secrets/a.txt", "./secrets/deep/a", "open/a.txt", "src/../secrets/a.txt", "SECRETS/a.txt"] {
                assert_eq!(extract(&permissions, &project, output).decision, Decision::Deny, "{mode} {output}");
            }
            for (tool, arguments) in [
                ("extract_to_text", json!({"path": "private/a.ipynb", "output": "out/a.txt"})),
                ("extract_to_text", json!({"path": "src/../private/a.ipynb"})),
                ("count_tokens", json!({"path": "private/a.txt"})),
                (
                    "useful_info_add",
                    json!({"path": "private/a.txt", "start_line": 1, "end_line": 9, "description": "d"}),
                ),
                ("ac_mod_read", json!({"path": "private"})),
                ("search_files", json!({"path": "private/a.txt", "regex": "."})),
            ] {
                let verdict = decide(&permissions, &project, tool, &arguments);
                assert_eq!(verdict.decision, Decision::Deny, "{mode} {tool} {arguments}: {}", verdict.reason);
            }
        }
        let denied_by_own_name =
            permissions::<&str>(PermissionMode::AcceptEdits, &[], &[], &["extract_to_text(secrets/**)"]);
        assert_eq!(extract(&denied_by_own_name, &project, "secrets/a.txt").decision, Decision::Deny);
    }

    #[test]
    fn what_is_not_declared_is_asked_in_every_mode_but_yolo() {
        let project = Project::new();
        for access in [Access::Read, Access::State, Access::Write, Access::Execute] {
            let opaque = Call { intent: Intent::Unknown, ..call("mystery", access, &[]) };
            for mode in [PermissionMode::Ask, PermissionMode::AcceptEdits, PermissionMode::Auto] {
                let verdict = permissions::<&str>(mode, &[], &[], &[]).decide(&opaque, &project.workspace);
                assert_eq!(verdict.decision, Decision::Ask, "{mode} {access:?}");
            }
            let yolo = permissions::<&str>(PermissionMode::Yolo, &[], &[], &[]);
            assert_eq!(yolo.decide(&opaque, &project.workspace).decision, Decision::Allow);
        }
    }

    /// A folder may be read whose files may not: who walks through it leaves them out, and says so.
    #[tokio::test]
    async fn walks_leave_out_what_rules_keep_from_being_read() {
        let mut bench = Bench::new();
        for file in ["open/a.rs", "private/b.rs", "deep/private/c.rs", "open/.env"] {
            bench.write(file, format!("fn found() {{}} // {file}\n"));
        }
        bench.write("private/.ac.mod.md", "found in the private module\n");
        let walks = [
            ("search_files", json!({"path": ".", "regex": "found"})),
            ("search_files", json!({"path": "private", "regex": "found"})),
            ("list_files", json!({"path": ".", "recursive": true})),
            ("list_files", json!({"path": "private"})),
            ("glob", json!({"pattern": "**/*.rs"})),
            ("glob", json!({"pattern": "*", "path": "private"})),
            ("list_code_definition_names", json!({"path": "private"})),
            ("ac_mod_list", json!({})),
        ];
        let run = async |bench: &Bench, (tool, arguments): &(&str, Value)| {
            let tools = builtin();
            let tool = tools.iter().find(|one| one.spec().name == *tool).unwrap();
            let envelope = bench.run(tool.as_ref(), arguments.clone()).await.envelope;
            format!("{}\n{}", envelope.text, envelope.data)
        };
        for walk in &walks {
            assert!(run(&bench, walk).await.contains("private"), "{walk:?}");
        }
        for mode in [PermissionMode::Auto, PermissionMode::Yolo] {
            let permissions = permissions(mode, &[], &[], &["read_file(**/private/**)", "read_file(**/.env)"]);
            bench.context.readable = permissions.readable(bench.workspace());
            for walk in &walks {
                let shown = run(&bench, walk).await;
                for hidden in ["b.rs", "c.rs", ".env", "private module"] {
                    assert!(!shown.contains(hidden), "{walk:?} showed {hidden}: {shown}");
                }
                assert!(shown.contains("[Left out: "), "{walk:?}: {shown}");
            }
            assert!(run(&bench, &walks[0]).await.contains("open/a.rs"));
        }
        let none = permissions::<&str>(PermissionMode::Auto, &[], &[], &["write_to_file(private/**)"]);
        assert!(none.readable(bench.workspace()).is_none());
    }
}
