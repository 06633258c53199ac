//! Commands that only read: in mode `ask` they need no approval, and all other commands do.

use std::process::Command;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::sandbox::has_namespaces;
use crate::terminal::{Terminal, write_a};

/// Commands with which a model explores a folder.
const READING_COMMANDS: [&str; 6] = [
    "ls -la",
    "cat README.md",
    "git status --short",
    "grep -rn TODO src",
    "find . -name '*.rs' | wc -l",
    "cd src && cat a.rs",
];

fn command_call(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({ "command": line, "requires_approval": false }),
    )
}

fn with_sample_files(rig: Rig) -> Rig {
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

fn commands_script(lines: &[&str]) -> Script {
    Script::replies(
        lines
            .iter()
            .map(|line| command_call(line))
            .chain([Reply::text("It is a library.").times(2)]),
    )
    .unwrap()
}

fn ask_about_folder(rig: &Rig) -> Ran {
    rig.run(&["run", "--output-format", "stream-json", "what is this?"])
}

fn tool_results(ran: &Ran) -> Vec<(String, String)> {
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
fn reading_commands_run_headless() {
    let rig = with_sample_files(Rig::new(
        Api::OpenaiChat,
        commands_script(&READING_COMMANDS),
    ));
    if !has_namespaces(&rig) {
        return;
    }
    let ran = ask_about_folder(&rig);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    for (line, (status, text)) in READING_COMMANDS.iter().zip(tool_results(&ran)) {
        assert_eq!(status, "success", "{line}: {text}");
    }
    assert!(tool_results(&ran)[1].1.contains("A small library."));
    assert!(
        tool_results(&ran)[2].1.contains("README.md"),
        "{:?}",
        tool_results(&ran)[2]
    );
}

#[test]
fn other_commands_are_denied_headless() {
    for line in [
        "ls > listing",
        "cat /etc/passwd",
        "find . -delete",
        "git log --output=x",
        "A=1 ls",
        "touch x",
        "rm README.md",
    ] {
        let rig = with_sample_files(Rig::new(Api::OpenaiChat, commands_script(&[line])));
        let ran = ask_about_folder(&rig);
        let (status, text) = tool_results(&ran).remove(0);
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
fn git_commands_need_a_trusted_folder() {
    let rig = with_sample_files(Rig::untrusted(
        Api::OpenaiChat,
        commands_script(&["ls", "git status"]),
    ));
    if !has_namespaces(&rig) {
        return;
    }
    let results = tool_results(&ask_about_folder(&rig));
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
fn reading_commands_need_their_setting_and_the_sandbox() {
    for setting in [
        ("HAFT_PERMISSIONS__READING_COMMANDS", "false"),
        ("HAFT_SANDBOX__MODE", "off"),
        ("HAFT_SANDBOX__MODE", "landlock"),
    ] {
        let rig =
            with_sample_files(Rig::new(Api::OpenaiChat, commands_script(&["ls"]))).with([setting]);
        let (status, text) = tool_results(&ask_about_folder(&rig)).remove(0);
        assert!(
            status == "error" && text.contains("needs the user's permission"),
            "{setting:?}: {text}"
        );
    }
}

#[test]
fn permissions_list_and_explain_show_reading_commands() {
    let rig = Rig::new(Api::OpenaiChat, commands_script(&["ls"]));
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
fn terminal_asks_only_about_trust_and_an_edit() {
    let replies = READING_COMMANDS
        .iter()
        .map(|line| command_call(line))
        .chain([write_a(), Reply::text("It is a library.").times(2)]);
    let rig = with_sample_files(Rig::untrusted(
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
    let question = "? Write a.txt (+2 −0)?\n  1 +one\n  2 +two\n";
    assert!(terminal.text().contains(question), "{}", terminal.text());
    assert_eq!(
        rig.server.generation_requests().len(),
        READING_COMMANDS.len() + 1,
        "nothing was asked before"
    );
    terminal.press("y");
    terminal.until_text("It is a library.");
    terminal.until_idle();
    assert!(rig.project().join("a.txt").exists());
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}
