//! Commands that only read: in mode `ask` they need no approval, and all other commands do.

use std::process::Command;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::sandbox::has_namespaces;
use crate::terminal::{Terminal, write_a};

/// Commands with which a model explores a folder.
const LOOKS: [&str; 6] = [
    "ls -la",
    "cat README.md",
    "git status --short",
    "grep -rn TODO src",
    "find . -name '*.rs' | wc -l",
    "cd src && cat a.rs",
];

fn call(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({ "command": line, "requires_approval": false }),
    )
}

fn filled(rig: Rig) -> Rig {
    rig.write("README.md", "A small library.\n");
    rig.write("src/a.rs", "// TODO: more\n");
    let ran = Command::new("git")
        .args(["init", "--quiet"])
        .current_dir(rig.project())
        .status()
        .unwrap();
    assert!(ran.success());
    rig
}

fn script(lines: &[&str]) -> Script {
    Script::replies(
        lines
            .iter()
            .map(|line| call(line))
            .chain([Reply::text("It is a library.").times(2)]),
    )
    .unwrap()
}

fn asked(rig: &Rig) -> Ran {
    rig.run(&["run", "--output-format", "stream-json", "what is this?"])
}

fn results(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result");
    events
        .map(|event| (text(&event["status"]), text(&event["text"])))
        .collect()
}

#[test]
fn a_question_about_a_folder_is_answered_headless() {
    let rig = filled(Rig::new(Api::OpenaiChat, script(&LOOKS)));
    if !has_namespaces(&rig) {
        return;
    }
    let ran = asked(&rig);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    for (line, (status, text)) in LOOKS.iter().zip(results(&ran)) {
        assert_eq!(status, "success", "{line}: {text}");
    }
    assert!(results(&ran)[1].1.contains("A small library."));
    assert!(
        results(&ran)[2].1.contains("README.md"),
        "{:?}",
        results(&ran)[2]
    );
}

#[test]
fn other_commands_are_refused_headless() {
    for line in [
        "ls > listing",
        "cat /etc/passwd",
        "find . -delete",
        "git log --output=x",
        "A=1 ls",
        "touch x",
        "rm README.md",
    ] {
        let rig = filled(Rig::new(Api::OpenaiChat, script(&[line])));
        let ran = asked(&rig);
        let (status, text) = results(&ran).remove(0);
        assert!(
            status == "error" && text.contains("needs the user's permission"),
            "{line}: {text}"
        );
        assert!(
            rig.project().join("README.md").exists() && !rig.project().join("x").exists(),
            "{line}"
        );
    }
}

#[test]
fn git_is_not_run_where_nobody_trusts_the_folder() {
    let rig = filled(Rig::untrusted(
        Api::OpenaiChat,
        script(&["ls", "git status"]),
    ));
    if !has_namespaces(&rig) {
        return;
    }
    let results = results(&asked(&rig));
    assert_eq!(results[0].0, "success", "{}", results[0].1);
    assert!(
        results[1].0 == "error" && results[1].1.contains("needs the user's permission"),
        "{}",
        results[1].1
    );
    let listed = rig.run(&["permissions", "list"]).stdout();
    assert!(
        listed.contains("execute_command(ls:*)") && !listed.contains("execute_command(git"),
        "{listed}"
    );
}

#[test]
fn one_key_switches_them_off_and_without_the_sandbox_they_do_not_hold() {
    for setting in [
        ("HAFT_PERMISSIONS__READING_COMMANDS", "false"),
        ("HAFT_SANDBOX__MODE", "off"),
        ("HAFT_SANDBOX__MODE", "landlock"),
    ] {
        let rig = filled(Rig::new(Api::OpenaiChat, script(&["ls"]))).with([setting]);
        let (status, text) = results(&asked(&rig)).remove(0);
        assert!(
            status == "error" && text.contains("needs the user's permission"),
            "{setting:?}: {text}"
        );
    }
}

#[test]
fn they_are_listed_and_explained() {
    let rig = Rig::new(Api::OpenaiChat, script(&["ls"]));
    let listed = rig.run(&["permissions", "list", "--json"]).json();
    let rules = listed["rules"].as_array().unwrap();
    let built_in =
        json!({ "decision": "allow", "rule": "execute_command(ls:*)", "source": "built-in" });
    assert!(rules.contains(&built_in), "{listed}");
    assert!(
        rig.run(&["permissions", "list"])
            .stdout()
            .contains("reading_commands = false")
    );
    if has_namespaces(&rig) {
        let told = rig
            .run(&["permissions", "explain", "--json", "ls src"])
            .json();
        assert_eq!(
            (&told["decision"], &told["rule"]),
            (&json!("allow"), &json!("execute_command(ls:*)"))
        );
    }
    let rig = rig.with([("HAFT_PERMISSIONS__READING_COMMANDS", "false")]);
    assert_eq!(
        rig.run(&["permissions", "list", "--json"]).json()["rules"],
        json!([])
    );
    assert_eq!(
        rig.run(&["permissions", "explain", "--json", "ls src"])
            .json()["decision"],
        "ask"
    );
}

/// Opening a folder asks for trust, reading in it asks nothing, and changing it asks once.
#[test]
fn at_the_terminal_only_trust_and_an_edit_are_asked() {
    let replies = LOOKS
        .iter()
        .map(|line| call(line))
        .chain([write_a(), Reply::text("It is a library.").times(2)]);
    let rig = filled(Rig::untrusted(
        Api::Anthropic,
        Script::replies(replies).unwrap(),
    ));
    if !has_namespaces(&rig) {
        return;
    }
    rig.write("AGENTS.md", "Be kind.");
    let mut terminal = Terminal::start(&rig, &["what is this?"], (100, 40));
    terminal.until_text("Trust the folder?");
    terminal.press("y\r");
    terminal.until_armed();
    assert!(terminal.text().contains("+++ a.txt"), "{}", terminal.text());
    assert_eq!(
        rig.server.generations().len(),
        LOOKS.len() + 1,
        "nothing was asked before"
    );
    terminal.press("y");
    terminal.until_text("It is a library.");
    terminal.until_idle();
    assert!(rig.project().join("a.txt").exists());
    terminal.press("\u{4}");
    assert_eq!(terminal.ended().0, 0);
}
