//! Tests permissions with the real tools: every file that a call reads or writes is checked, for
//! every spelling of its path.

use std::fs;
use std::os::unix::fs::symlink;

use haft_permission::{
    Confinement, PermissionRequest, PermissionRule, PermissionRules, Permissions,
    PermissionsConfig, Verdict,
};
use haft_types::{Decision, PermissionMode};
use serde_json::{Value, json};

use crate::testing::{Bench, builtin};

/// An alias in a rule refers to the tool that has the alias.
#[test]
fn rule_aliases_agree_with_the_tools() {
    for tool in builtin() {
        for alias in tool.manual().aliases {
            if alias.name.starts_with("Todo") {
                continue;
            }
            let rule = PermissionRule::parse(alias.name, None).unwrap();
            assert_eq!(rule.tool(), tool.spec().name, "{}", alias.name);
        }
    }
}

/// Returns a project with the folders of the calls below.
fn project() -> Bench {
    let bench = Bench::new();
    for inside in ["src", "sub", "out", ".git/hooks"] {
        fs::create_dir_all(bench.path(inside)).unwrap();
    }
    bench
}

fn permissions(mode: PermissionMode, allow: &[&str], deny: &[&str]) -> Permissions {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    let config = PermissionsConfig {
        mode,
        allow: owned(allow),
        deny: owned(deny),
        ..PermissionsConfig::default()
    };
    Permissions {
        mode,
        rules: PermissionRules::load(&config, None).unwrap(),
        confinement: Confinement::None,
    }
}

fn decide_call(
    permissions: &Permissions,
    project: &Bench,
    tool: &str,
    arguments: &Value,
) -> Verdict {
    let tools = builtin();
    let tool = tools.iter().find(|one| one.spec().name == tool).unwrap();
    permissions.decide(
        &PermissionRequest::for_tool(tool.as_ref(), arguments),
        project.workspace(),
    )
}

fn decide_extraction(permissions: &Permissions, project: &Bench, output: &str) -> Verdict {
    decide_call(
        permissions,
        project,
        "extract_to_text",
        &json!({"path": "src/a.ipynb", "output": output}),
    )
}

#[test]
fn protected_files_need_approval_in_every_mode_that_edits() {
    let project = project();
    symlink(".git", project.path("plain")).unwrap();
    symlink(".git/config", project.path("note.txt")).unwrap();
    let absolute = project.path(".git/config").display().to_string();
    for mode in [PermissionMode::AcceptEdits, PermissionMode::Auto] {
        let permissions = permissions(mode, &["extract_to_text", "extract_to_text(**)"], &[]);
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
            assert_eq!(
                decide_extraction(&permissions, &project, output).decision,
                Decision::Ask,
                "{mode} {output}"
            );
        }
        assert_eq!(
            decide_extraction(&permissions, &project, "out/notes.txt").decision,
            Decision::Allow,
            "{mode}"
        );
    }
    // Without an output path, the text is written beside the document.
    let permissions = permissions(PermissionMode::AcceptEdits, &[], &[]);
    let hidden = decide_call(
        &permissions,
        &project,
        "extract_to_text",
        &json!({"path": ".git/a.ipynb"}),
    );
    assert_eq!(hidden.decision, Decision::Ask);
    let plain = decide_call(
        &permissions,
        &project,
        "extract_to_text",
        &json!({"path": "src/a.ipynb"}),
    );
    assert_eq!(plain.decision, Decision::Allow);
}

#[test]
fn deny_rules_on_other_tools_apply_to_reads_and_writes() {
    let project = project();
    symlink("secrets", project.path("open")).unwrap();
    let deny = ["write_to_file(secrets/**)", "read_file(private/**)"];
    for mode in [
        PermissionMode::AcceptEdits,
        PermissionMode::Auto,
        PermissionMode::Yolo,
    ] {
        let permissions = permissions(mode, &["extract_to_text"], &deny);
        for output in [
            "secrets/a.txt",
            "./secrets/deep/a",
            "open/a.txt",
            "src/../secrets/a.txt",
            "SECRETS/a.txt",
        ] {
            assert_eq!(
                decide_extraction(&permissions, &project, output).decision,
                Decision::Deny,
                "{mode} {output}"
            );
        }
        for (tool, arguments) in [
            (
                "extract_to_text",
                json!({"path": "private/a.ipynb", "output": "out/a.txt"}),
            ),
            ("extract_to_text", json!({"path": "src/../private/a.ipynb"})),
            ("count_tokens", json!({"path": "private/a.txt"})),
            (
                "useful_info_add",
                json!({"path": "private/a.txt", "start_line": 1, "end_line": 9, "description": "d"}),
            ),
            ("ac_mod_read", json!({"path": "private"})),
            (
                "search_files",
                json!({"path": "private/a.txt", "regex": "."}),
            ),
        ] {
            let verdict = decide_call(&permissions, &project, tool, &arguments);
            assert_eq!(
                verdict.decision,
                Decision::Deny,
                "{mode} {tool} {arguments}: {}",
                verdict.reason
            );
        }
    }
    let denied_by_own_name = permissions(
        PermissionMode::AcceptEdits,
        &[],
        &["extract_to_text(secrets/**)"],
    );
    assert_eq!(
        decide_extraction(&denied_by_own_name, &project, "secrets/a.txt").decision,
        Decision::Deny
    );
}

/// A folder may be readable though its files are denied: tools that walk it omit them and report
/// that.
#[tokio::test]
async fn walks_omit_files_that_rules_deny() {
    let mut bench = Bench::new();
    for file in [
        "open/a.rs",
        "private/b.rs",
        "deep/private/c.rs",
        "open/.env",
    ] {
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
        let permissions = permissions(
            mode,
            &[],
            &["read_file(**/private/**)", "read_file(**/.env)"],
        );
        bench.context.read_filter = permissions.read_filter(bench.workspace());
        for walk in &walks {
            let shown = run(&bench, walk).await;
            for hidden in ["b.rs", "c.rs", ".env", "private module"] {
                assert!(!shown.contains(hidden), "{walk:?} showed {hidden}: {shown}");
            }
            assert!(shown.contains("[Left out: "), "{walk:?}: {shown}");
        }
        assert!(run(&bench, &walks[0]).await.contains("open/a.rs"));
    }
    let none = permissions(PermissionMode::Auto, &[], &["write_to_file(private/**)"]);
    assert!(none.read_filter(bench.workspace()).is_none());
}
