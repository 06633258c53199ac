//! Trust at a real terminal: asked once in every new folder, with what would be read and run, and
//! again with `/trust`.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::terminal::Terminal;

fn rig() -> Rig {
    Rig::untrusted(
        Api::Anthropic,
        Script::replies([Reply::text("Hello.").times(9)]).unwrap(),
    )
}

fn state(rig: &Rig) -> String {
    rig.run(&["trust", "--show", "--json"]).json()["standing"].to_string()
}

fn quit(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn trust_is_asked_once_in_a_folder_without_files() {
    for (answer, expected) in [("\r", "\"untrusted\""), ("y\r", "\"trusted\"")] {
        let rig = rig();
        rig.write("src/main.rs", "fn main() {}\n");
        let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 24));
        terminal.until_text("Trust the folder?");
        let asked = terminal.text();
        assert!(asked.contains("Nothing in it runs by itself"), "{asked}");
        assert!(rig.server.requests().is_empty());
        terminal.press(answer);
        terminal.until_text("Hello.");
        terminal.until_idle();
        quit(terminal);
        assert_eq!(state(&rig), expected);
        let terminal = Terminal::start(&rig, &["--", "hi"], (80, 24));
        terminal.until_text("Hello.");
        terminal.until_idle();
        assert!(!terminal.written().contains("Trust the folder?"));
        quit(terminal);
    }
}

#[test]
fn trust_is_asked_again_when_something_new_would_run() {
    let rig = rig();
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 24));
    terminal.until_text("Trust the folder?");
    terminal.press("\r");
    terminal.until_text("Hello.");
    terminal.until_idle();
    quit(terminal);
    rig.write(
        ".mcp.json",
        json!({"mcpServers": {"files": {"command": "python3", "args": ["server.py"]}}}).to_string(),
    );
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 24));
    terminal.until_text("Trust the folder?");
    terminal.press("\r");
    terminal.until_text("Hello.");
    terminal.until_idle();
    quit(terminal);
}

#[test]
fn trust_shows_command_lines_of_what_would_run() {
    let rig = rig();
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch owned"}]}]}});
    rig.write(".claude/settings.json", hook.to_string());
    rig.write(
        ".mcp.json",
        json!({"mcpServers": {"files": {"command": "python3", "args": ["tools/server.py", "--fast"]}}})
            .to_string(),
    );
    rig.write(
        ".haft/agents/reviewer.md",
        "---\nname: reviewer\n---\nYou review.\n",
    );
    rig.write("AGENTS.md", "Be kind.");
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (100, 40));
    terminal.until_text("Trust the folder?");
    let asked = terminal.text();
    let (before, after) = asked.split_once("Would run:").unwrap();
    let (runs, read) = after.split_once("Files that would be read:").unwrap();
    let before: Vec<_> = before.split_whitespace().collect();
    assert!(
        before
            .join(" ")
            .contains("runs the commands below by itself"),
        "{asked}"
    );
    assert!(
        runs.contains("touch owned (.claude/settings.json)")
            && runs.contains("MCP server files: python3 tools/server.py --fast (.mcp.json)"),
        "{asked}"
    );
    assert!(
        !runs.contains("reviewer") && read.contains(".haft/agents/reviewer.md"),
        "{asked}"
    );
    assert!(read.contains("AGENTS.md"), "{asked}");
    terminal.press("\r");
    terminal.until_text("Hello.");
    assert!(!rig.project().join("owned").exists());
}

#[test]
fn trust_command_trusts_the_folder_of_the_open_conversation() {
    let rig = rig();
    rig.write("AGENTS.md", "Always say Moo.");
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 40));
    terminal.until_text("Trust the folder?");
    terminal.press("\r");
    terminal.until_text("/trust shows");
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("/trust\r");
    terminal.until("the question", |screen| {
        screen.contents().contains("▸ 1 no") && screen.contents().contains("AGENTS.md")
    });
    assert_eq!(state(&rig), "\"untrusted\"");
    terminal.press("\r");
    terminal.until("no question", |screen| {
        !screen.contents().contains("▸ 1 no")
    });
    assert_eq!(state(&rig), "\"untrusted\"");
    terminal.press("/trust\r");
    terminal.until_text("▸ 1 no");
    terminal.press("2\r");
    terminal.until_text("Its files apply from your next message on");
    assert_eq!(state(&rig), "\"trusted\"");
    terminal.press("again\r");
    terminal.until("the second request", |_| {
        rig.server.generation_requests().len() == 2
    });
    terminal.until_idle();
    let requests = rig.server.generation_requests();
    let body = |at: usize| requests[at].json().unwrap().to_string();
    assert!(!body(0).contains("Always say Moo.") && body(1).contains("Always say Moo."));
    assert!(
        body(1).contains("again") && body(1).contains("Hello."),
        "one conversation"
    );
    quit(terminal);
}

#[test]
fn trust_command_notices_files_that_changed_meanwhile() {
    let rig = rig();
    let mut terminal = Terminal::start(&rig, &[], (80, 40));
    terminal.until_text("Trust the folder?");
    terminal.press("\r");
    terminal.until_text("> ");
    terminal.press("/trust\r");
    terminal.until_text("▸ 1 no");
    rig.write(".mcp.json", "{}");
    terminal.press("2\r");
    terminal.until_text("The files changed before you answered");
    assert_eq!(state(&rig), "\"untrusted\"");
    quit(terminal);
}

#[test]
fn trust_question_in_chinese() {
    let rig = rig();
    let arguments = ["--set", "language=zh-CN", "--", "hi"];
    let mut terminal = Terminal::start(&rig, &arguments, (60, 24));
    terminal.until("the question", |screen| {
        screen
            .contents()
            .replace('\n', "")
            .contains("信任此目录吗？")
    });
    assert!(
        terminal
            .text()
            .replace('\n', "")
            .contains("其中没有会自行运行的内容"),
        "{}",
        terminal.text()
    );
    terminal.press("y\r");
    terminal.until_text("Hello.");
    assert_eq!(state(&rig), "\"trusted\"");
}
