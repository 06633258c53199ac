//! The policy of a trusted project restricts permissions and never extends them.

use std::fs;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::sandbox::has_namespaces;

const PROJECT_CONFIG: &str = r#"
[permissions]
deny = ["execute_command(touch:*)", "read_file(secret/**)"]
ask = ["write_to_file(docs/**)"]
allow = ["execute_command(:*)"]
mode = "yolo"
[sandbox]
hidden = ["private"]
writable = ["/"]
[providers.mock]
base_url = "http://127.0.0.1:9"
"#;

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::untrusted(Api::OpenaiChat, Script::replies(replies).unwrap())
}

fn command_call(command: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({ "command": command, "requires_approval": false }),
    )
}

fn tool_results(ran: &Ran) -> Vec<Value> {
    ran.events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect()
}

fn policy_warnings(ran: &Ran) -> Vec<String> {
    let told = ran
        .events()
        .into_iter()
        .filter(|event| event["code"] == "project_policy");
    told.map(|event| event["message"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn project_rules_deny_and_ask_once_trusted() {
    let replies = || {
        [
            command_call("touch made"),
            command_call("echo fine > other"),
            Reply::text("Done."),
        ]
    };
    let rig = rig(replies().into_iter().chain(replies()));
    rig.write(".haft/config.toml", PROJECT_CONFIG);
    let before = rig.task(&["go"]);
    assert!(
        rig.project().join("made").exists(),
        "nothing of it counts before"
    );
    assert!(policy_warnings(&before).is_empty());
    fs::remove_file(rig.project().join("made")).unwrap();
    rig.run(&["trust"]);
    let ran = rig.task(&["go"]);
    assert!(!rig.project().join("made").exists(), "even in `yolo`");
    let results = tool_results(&ran);
    assert_eq!(
        (&results[0]["status"], &results[1]["status"]),
        (&json!("error"), &json!("success")),
        "{results:?}"
    );
    let told = policy_warnings(&ran);
    for (key, line) in [
        ("permissions.allow", 5),
        ("permissions.mode", 6),
        ("sandbox.writable", 9),
        ("providers.mock", 10),
    ] {
        let place = format!(".haft/config.toml, line {line}: `{key}`");
        assert!(
            told.iter().any(|text| text.contains(&place)),
            "{key}: {told:?}"
        );
    }
    assert_eq!(told.len(), 4, "{told:?}");
    let listed = rig.run(&["permissions", "list", "--json"]).json();
    let of_project = |rule: &&Value| rule["source"] == "project";
    assert_eq!(
        listed["rules"]
            .as_array()
            .unwrap()
            .iter()
            .filter(of_project)
            .count(),
        3,
        "{listed}"
    );
    let explained = rig
        .run(&[
            "permissions",
            "explain",
            "touch x",
            "--permission-mode",
            "yolo",
        ])
        .stdout();
    assert!(explained.contains("deny"), "{explained}");
    let shown = rig.run(&["trust", "--show"]).stdout();
    assert!(
        shown.contains("deny execute_command(touch:*) (.haft/config.toml, line 3)"),
        "{shown}"
    );
    assert!(
        shown.contains("hide private (.haft/config.toml, line 8)"),
        "{shown}"
    );
}

#[test]
fn project_hidden_files_are_unreadable_in_the_sandbox() {
    let rig = rig([command_call("cat private/key"), Reply::text("Done.")]);
    if !has_namespaces(&rig) {
        return;
    }
    rig.write(".haft/config.toml", PROJECT_CONFIG);
    rig.write("private/key", "hush");
    rig.run(&["trust"]);
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "go",
    ]);
    assert!(
        !tool_results(&ran)[0].to_string().contains("hush"),
        "{}",
        ran.stdout()
    );
}

#[test]
fn claude_code_settings_deny_and_ask_but_never_allow() {
    let rig = rig([
        Reply::call("read_file", json!({"path": ".env"})),
        command_call("curl https://example.com"),
        command_call("touch made"),
        Reply::text("Done."),
    ]);
    let settings = r#"{
  "env": {"A": "1"},
  "permissions": {
    "allow": ["Bash(touch:*)"],
    "deny": ["Read(./.env)", "Bash(curl:*)"],
    "ask": ["WebFetch"]
  }
}"#;
    rig.write(".claude/settings.json", settings);
    rig.write(".env", "KEY=hush");
    rig.run(&["trust"]);
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "accept-edits",
        "go",
    ]);
    let results = tool_results(&ran);
    assert!(
        results
            .iter()
            .take(2)
            .all(|result| result["status"] == "error"),
        "{results:?}"
    );
    assert!(!results[0].to_string().contains("hush"));
    assert!(
        !rig.project().join("made").exists(),
        "its allow rule does not count"
    );
    let told = policy_warnings(&ran);
    assert!(
        told.iter()
            .any(|text| text.contains("`env` (line 2)")
                && text.contains("`permissions.allow` (line 4)")),
        "{told:?}"
    );
}

/// Rules of another agent that haft cannot express are widened, so that they forbid at least as
/// much.
#[test]
fn claude_code_rules_that_haft_cannot_express_are_widened() {
    let rig = rig([
        command_call("rm -rf build"),
        command_call("rm one"),
        command_call("seq 3 >made && ls"),
        Reply::text("Done."),
    ]);
    let deny = [
        "Read(~/.ssh/**)",
        "Task(Explore)",
        "Skill(deploy)",
        "SlashCommand(/release:*)",
        "NotebookEdit(src/**)",
        "Bash(rm -rf /*)",
        "Bash(seq 3 > $HOME && ls)",
        "KillShell",
    ];
    rig.write(
        ".claude/settings.json",
        json!({"permissions": {"deny": deny}}).to_string(),
    );
    rig.write("one", "");
    rig.run(&["trust"]);
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        "go",
    ]);
    assert_eq!(
        ran.code(),
        3,
        "a refused call, not a refused run: {}{}",
        ran.stdout(),
        ran.stderr()
    );
    let ended: Vec<_> = tool_results(&ran)
        .iter()
        .map(|result| result["status"].clone())
        .collect();
    assert_eq!(ended, ["error", "success", "error"], "{}", ran.stdout());
    let told = policy_warnings(&ran).join("\n");
    for wider in [
        "`Bash(rm -rf:*)`",
        "`Bash(seq 3:*)`",
        "`Task`",
        "`Skill`",
        "`NotebookEdit`",
        "`SlashCommand`",
    ] {
        assert!(
            told.contains(&format!("taken as {wider}")),
            "{wider} in {told}"
        );
    }
    assert!(!told.contains("~/.ssh"), "{told}");
}

/// A deny rule that cannot be parsed stops the run, because its scope is unknown.
#[test]
fn unreadable_deny_rule_stops_the_run() {
    let long = format!(
        "# {}\n[permissions]\ndeny = [\"read_file\"]\n",
        "x".repeat(300 * 1024)
    );
    for (file, text, named) in [
        (
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["Bash(("]}}"#,
            "Bash((",
        ),
        (
            ".claude/settings.json",
            r#"{"permissions": {"deny": "Read(.env)"}}"#,
            "not a list",
        ),
        (
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["Read(.env)", 7]}}"#,
            "not a list",
        ),
        (
            ".claude/settings.json",
            r#"{"permissions": ["Read(.env)"]}"#,
            "holds no keys",
        ),
        (
            ".claude/settings.json",
            r#"{"permissions": {"deny": ["Read(.env)"]}"#,
            "cannot be read",
        ),
        (
            ".claude/settings.local.json",
            "// note\n{}",
            "cannot be read",
        ),
        (
            ".haft/config.toml",
            "[permissions]\ndeny = [\"execute_command((\"]\n",
            "execute_command((",
        ),
        (
            ".haft/config.toml",
            "[permissions]\ndeny = [\"web_crawl(example.com)\"]\n",
            "names no host",
        ),
        (
            ".haft/config.toml",
            "[permissions]\ndeny = \"read_file\"\n",
            "not a list",
        ),
        (
            ".haft/config.toml",
            "[permissions]\nask = [[\"read_file\"]]\n",
            "not a list",
        ),
        (
            ".haft/config.toml",
            "[permissions\ndeny = [\"read_file\"]\n",
            "cannot be read",
        ),
        (
            ".haft/config.toml",
            "permissions = \"deny\"\n",
            "holds no keys",
        ),
        (
            ".haft/config.toml",
            "[sandbox]\nhidden = \"private\"\n",
            "not a list",
        ),
        (
            ".haft/config.toml",
            "[tools]\noffer = \"read_file\"\n",
            "not a list",
        ),
        (".haft/config.toml", long.as_str(), "larger"),
    ] {
        for mode in ["ask", "yolo"] {
            let rig = rig([command_call("touch made"), Reply::text("Done.").times(3)]);
            rig.write(file, text);
            let before = rig.run(&["run", "--permission-mode", mode, "go"]);
            assert_ne!(
                before.code(),
                2,
                "nothing of it counts before it is trusted: {}",
                before.stderr()
            );
            let _ = fs::remove_file(rig.project().join("made"));
            rig.run(&["trust"]);
            let ran = rig.run(&["run", "--permission-mode", mode, "go"]);
            assert_eq!(ran.code(), 2, "{file} {text:.80} {mode}: {}", ran.stdout());
            let told = ran.stderr();
            assert!(
                told.contains(named) && told.contains(file),
                "{file} {text:.80}: {told}"
            );
            assert!(!rig.project().join("made").exists(), "{text:.80}");
            assert!(
                rig.run(&["trust", "--show"])
                    .stdout()
                    .contains("Would stop haft from starting"),
                "{text:.80}"
            );
        }
    }
}

/// Puts something in the place of a settings file; the second folder is outside the project.
type Plant = fn(&std::path::Path, &std::path::Path);

#[test]
fn settings_file_outside_the_project_or_not_text_stops_the_run() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("settings.json"), "{}").unwrap();
    let plants: [Plant; 3] = [
        |at, out| std::os::unix::fs::symlink(out.join("settings.json"), at).unwrap(),
        |at, _| fs::write(at, [0xff, 0xfe, 0x00]).unwrap(),
        |at, _| fs::create_dir(at).unwrap(),
    ];
    for plant_it in plants {
        let rig = rig([Reply::text("Done.")]);
        fs::create_dir(rig.project().join(".claude")).unwrap();
        plant_it(&rig.project().join(".claude/settings.json"), outside.path());
        rig.run(&["trust"]);
        let ran = rig.run(&["run", "go"]);
        assert_eq!(ran.code(), 2, "{}", ran.stdout());
    }
}

/// Rules for tools of other programs, and settings that forbid nothing, are ignored.
#[test]
fn rules_for_foreign_tools_are_ignored() {
    let rig = rig([Reply::text("Done.")]);
    let settings = r#"{"permissions": {"deny": ["KillShell", "mcp__other__x", "Agent"], "allow": ["Bash(("]}, "env": []}"#;
    rig.write(".claude/settings.json", settings);
    rig.run(&["trust"]);
    let ran = rig.run(&["run", "go"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
}

/// Files that the rules of a project forbid to read are hidden from commands, too.
#[test]
fn project_deny_rules_hide_files_from_commands() {
    let rig = rig([command_call("sh ./look"), Reply::text("Done.")]);
    if !has_namespaces(&rig) {
        return;
    }
    rig.write(
        ".haft/config.toml",
        "[permissions]\ndeny = [\"read_file(secret/**)\"]\n",
    );
    rig.write("secret/key", "hush");
    rig.write("look", "cat sec*/k*; cat open");
    rig.write("open", "visible");
    rig.run(&["trust"]);
    let ran = rig.run(&[
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "auto",
        "go",
    ]);
    let result = tool_results(&ran)[0].to_string();
    assert!(
        !result.contains("hush") && result.contains("visible"),
        "{result}"
    );
}

#[test]
fn project_offer_narrows_the_tools_but_never_widens_them() {
    let offered = |offer: &str, further: &[&str]| -> Vec<String> {
        let rig = rig([Reply::text("Done.")]);
        rig.write(".haft/config.toml", format!("[tools]\noffer = {offer}\n"));
        rig.run(&["trust"]);
        let mut all = vec!["go"];
        all.splice(0..0, further.iter().copied());
        assert_eq!(rig.task(&all).code(), 0);
        let seen = rig.server.generation_requests()[0].decode().unwrap();
        let mut names: Vec<_> = seen.tools.iter().map(|tool| tool.name.clone()).collect();
        names.sort();
        names
    };
    let few = offered("[\"read_file\", \"list_files\"]", &[]);
    assert!(
        few.contains(&"read_file".to_owned()) && !few.contains(&"execute_command".to_owned()),
        "{few:?}"
    );
    let both = offered(
        "[\"read_file\", \"list_files\"]",
        &["--allowed-tools", "read_file,execute_command"],
    );
    assert!(both.contains(&"read_file".to_owned()), "{both:?}");
    let wide = offered("[\"*\"]", &["--allowed-tools", "read_file"]);
    assert!(
        wide.contains(&"read_file".to_owned()) && !wide.contains(&"list_files".to_owned()),
        "{wide:?}"
    );
    assert!(
        !both.contains(&"list_files".to_owned()) && !both.contains(&"execute_command".to_owned()),
        "{both:?}"
    );
}

#[test]
fn trust_show_lists_every_file_that_would_be_obeyed() {
    let rig = rig([]);
    for (name, text) in [
        ("AGENTS.md", "See @docs/style.md"),
        ("docs/style.md", "Style. @deep/more.md"),
        ("docs/deep/more.md", "More."),
        ("code_law.md", "Law."),
        ("src/inner/AGENTS.md", "Inner."),
        ("src/CLAUDE.md", "See @../notes.md"),
        ("notes.md", "Notes."),
        (".haft/rules/all.md", "---\nalwaysApply: true\n---\nRule."),
        ("README.md", "Not obeyed."),
    ] {
        rig.write(name, text);
    }
    let shown = rig.run(&["trust", "--show", "--json"]).json();
    assert_eq!(
        shown["would_obey"],
        json!([
            ".haft/rules/all.md",
            "AGENTS.md",
            "code_law.md",
            "docs/deep/more.md",
            "docs/style.md",
            "notes.md",
            "src/CLAUDE.md",
            "src/inner/AGENTS.md"
        ])
    );
}

/// Covers the other kinds of sessions: the preview of the next request, and the steps of a
/// workflow. Runs are tested above.
#[cfg(feature = "workflows")]
#[test]
fn project_offer_limits_every_kind_of_session() {
    let rig = rig([Reply::text("Looked.")]);
    rig.write(".haft/config.toml", "[tools]\noffer = [\"read_file\"]\n");
    rig.write(
        ".haft/workflows/look.yaml",
        "steps:\n  - name: look\n    prompt: Look.\n",
    );
    rig.run(&["trust"]);
    let names = |body: &[u8]| -> Vec<String> {
        let body: Value = serde_json::from_slice(body).unwrap();
        let tools = body["tools"].as_array().into_iter().flatten();
        tools
            .map(|tool| tool["function"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let next = rig.run(&["context", "render", "--input", "hi"]);
    assert_eq!(names(&next.0.stdout), ["read_file"], "{}", next.stderr());
    let ran = rig.run(&["workflow", "run", "look"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert_eq!(
        names(&rig.server.generation_requests()[0].body),
        ["read_file"]
    );
}
