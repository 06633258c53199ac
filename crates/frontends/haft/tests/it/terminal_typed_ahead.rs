//! Input typed before a question is on the screen never answers it.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::mcp::{add_shell_server, count_starts};
use crate::permissions::run_at_terminal;
use crate::rig::Rig;
use crate::terminal::{Terminal, rig, write_a};

/// Every form of yes that a question accepts, in one piece.
const TYPED_AHEAD: &str = "y\ryes\ra\r1\rp\r";

fn rig_with_mcp_call() -> Rig {
    let call = json!({"server_name": "s", "tool_name": "show", "arguments": {}});
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::call("use_mcp_tool", call), Reply::text("So be it.")]).unwrap(),
    );
    add_shell_server(&rig);
    rig
}

#[test]
fn approval_of_mcp_calls_ignores_input_typed_ahead() {
    let rig = rig_with_mcp_call();
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.press("ya");
    terminal.until_armed();
    assert!(terminal.text().contains("? Call "), "{}", terminal.text());
    terminal.press("n");
    terminal.until_text("So be it.");
    assert_eq!(count_starts(&rig), 0, "at the terminal");

    let rig = rig_with_mcp_call();
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (120, 30));
    terminal.press("y\ra\r");
    terminal.until_text("answer:");
    terminal.answer_plain("n");
    terminal.until_text("So be it.");
    assert_eq!(count_starts(&rig), 0, "in plain lines");

    let rig = rig_with_mcp_call();
    let Some((ran, shown)) = run_at_terminal(&rig, &["run", "--ask", "go"], "y\na\n", &["n"])
    else {
        return;
    };
    assert_eq!((ran.code(), count_starts(&rig)), (0, 0), "{shown}");
}

#[test]
fn undo_and_rewind_ignore_input_typed_ahead() {
    for (command, question, answered) in [
        ("/undo", "▸ 1 Undo", "Undid"),
        ("/rewind", "▸ 2 messages and files", "(rewound)"),
    ] {
        let rig = rig([write_a(), Reply::text("Written.")]);
        let mut terminal = Terminal::start(
            &rig,
            &["--permission-mode", "accept-edits", "--", "go"],
            (80, 40),
        );
        terminal.until_text("Written.");
        terminal.until_idle();
        terminal.press(&format!("{command}\r\r\r"));
        if command == "/rewind" {
            terminal.until_text("Rewind to before which message?");
            terminal.press("\r\u{1b}[B\r\r");
        }
        terminal.until_text(question);
        assert!(
            rig.project().join("a.txt").exists(),
            "{command}: {}",
            terminal.text()
        );
        terminal.press("\r");
        terminal.until_text(answered);
        assert!(!rig.project().join("a.txt").exists(), "{command}");
    }
}

#[test]
fn purge_and_typo_questions_ignore_input_typed_ahead() {
    let rig = rig([Reply::text("Kept.")]);
    assert_eq!(rig.task(&["say it"]).code(), 0);
    let id = rig.run(&["conversations", "list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for (arguments, question) in [
        (&["conversations", "purge", &id][..], "(y/n)"),
        (&["comit"], "Enter leaves:"),
    ] {
        let mut terminal = Terminal::start(&rig, arguments, (160, 30));
        terminal.press(&TYPED_AHEAD.replace("yes", &format!("y\r{}", &id[..8])));
        terminal.until_text(question);
        terminal.press("n\r");
        let (ended, shown) = terminal.wait_for_exit();
        assert_eq!(ended, 2, "{shown}");
        assert_eq!(
            rig.run(&["conversations", "list", "--json"]).json()[0]["id"],
            json!(id),
            "{arguments:?}"
        );
        assert_eq!(rig.server.generation_requests().len(), 1, "{arguments:?}");
    }
}
