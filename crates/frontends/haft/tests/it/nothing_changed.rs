//! Turns that changed nothing: only failed writes and edits are followed by a nudge, never commands
//! and refusals.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::terminal::{self, Terminal, write_a};

/// The exit code of a run that waits for the user.
const WAITING: i32 = 3;

fn rig(replies: Vec<Reply>) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::turns(replies).unwrap());
    rig.write("a.txt", "one\n");
    rig
}

fn command(line: &str) -> Reply {
    Reply::call("execute_command", json!({"command": line}))
}

fn edit(old: &str) -> Reply {
    Reply::call(
        "edit_file",
        json!({"path": "a.txt", "old_text": old, "new_text": "two"}),
    )
}

fn done() -> Reply {
    Reply::text("Done.")
}

/// Returns the number of requests, the mark of the result, and the number of notices about it.
fn observe(rig: &Rig, ran: &Ran) -> (usize, Option<Value>, usize) {
    observe_exit(rig, ran, 0)
}

/// Like [`observe`], but for a run that ends with the exit code `code`.
fn observe_exit(rig: &Rig, ran: &Ran, code: i32) -> (usize, Option<Value>, usize) {
    assert_eq!(ran.code(), code, "{}", ran.stdout());
    let notices = ran
        .events()
        .iter()
        .filter(|event| event["type"] == "notice" && event["code"] == "nothing_changed")
        .count();
    let requests = rig.server.generation_requests().len();
    (
        requests,
        ran.result().get("nothing_changed").cloned(),
        notices,
    )
}

#[test]
fn failing_command_is_no_attempt() {
    for replies in [
        vec![command("exit 1"), done()],
        vec![command("exit 1"), command("exit 2"), done()],
        vec![command("ls nowhere"), edit("one"), done()],
        // A command that was malformed.
        vec![
            Reply::call("execute_command", json!({"line": "ls"})),
            done(),
        ],
    ] {
        let expected = replies.len();
        let rig = rig(replies);
        let ran = rig.task(&["run the tests"]);
        assert_eq!(observe(&rig, &ran), (expected, None, 0));
    }
}

#[test]
fn failing_command_is_no_attempt_of_small_models() {
    let rig = rig(vec![command("exit 1"), done()]);
    let profile = format!("models.\"mock/{}\".profile=\"small\"", crate::rig::MODEL);
    let ran = rig.task(&["--set", &profile, "Run the tests of a.txt."]);
    assert_eq!(observe(&rig, &ran), (2, None, 0));
}

#[test]
fn attempts_that_all_failed_are_nudged_once_and_marked() {
    for replies in [
        vec![edit("three"), done(), done()],
        vec![edit("three"), edit("four"), done(), done()],
        // A malformed attempt, and a command that changes nothing.
        vec![
            Reply::call("edit_file", json!({"file": "a.txt"})),
            done(),
            done(),
        ],
        vec![edit("three"), command("true"), done(), done()],
        vec![command("exit 1"), edit("three"), done(), done()],
    ] {
        let expected = replies.len();
        let rig = rig(replies);
        let ran = rig.task(&["correct it"]);
        assert_eq!(observe(&rig, &ran), (expected, Some(json!(true)), 1));
    }
}

#[test]
fn command_that_changes_a_file_counts_as_a_change() {
    let rig = rig(vec![edit("three"), command("echo two > a.txt"), done()]);
    let ran = rig.task(&["correct it"]);
    assert_eq!(observe(&rig, &ran), (3, None, 0));
}

#[test]
fn refusal_by_the_user_is_no_failed_attempt() {
    let call = json!({"command": "touch b.txt", "requires_approval": false});
    for replies in [
        vec![write_a(), done()],
        vec![Reply::call("execute_command", call), done()],
    ] {
        let rig = terminal::rig(replies);
        let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
        terminal.until_armed();
        terminal.press("n");
        terminal.until_text("Done.");
        terminal.until_idle();
        terminal.press("\u{4}");
        let (code, shown) = terminal.wait_for_exit();
        assert_eq!(code, 0);
        assert!(!shown.contains("No file was changed"), "{shown}");
        assert_eq!(rig.server.generation_requests().len(), 2, "{shown}");
    }
}

#[test]
fn refusal_by_a_rule_is_no_failed_attempt() {
    let rig = rig(vec![write_a(), edit("one"), done()]);
    let ran = rig.task(&["--deny", "write_to_file(a.txt)", "go"]);
    assert_eq!(ran.result()["code"], "denied");
    assert_eq!(observe_exit(&rig, &ran, WAITING), (3, None, 0));
}
