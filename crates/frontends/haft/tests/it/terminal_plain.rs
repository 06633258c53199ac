//! Plain mode: lines and words only, for screen readers.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::terminal::{Terminal, rig, slow_reply, write_a};

#[test]
fn plain_mode_runs_a_task_with_approval() {
    let todo = json!({"todos": [{"content": "Write it", "status": "in_progress"}]});
    let rig = rig([
        Reply::call("todo_write", todo),
        write_a().with_text("I will **write** it."),
        Reply::text("# Done\n\n- It is `there`.\n\n---\n\n> quoted"),
    ]);
    let mut terminal = Terminal::start(&rig, &["--plain"], (100, 40));
    terminal.until_text("you: ");
    assert!(terminal.is_restored(), "the terminal is left as it is");
    terminal.press("write a file\r");
    terminal.until_text("answer: ");
    let asked = terminal.text();
    for line in [
        "todo, in progress: Write it",
        "I will write it.",
        "approval: Write a.txt (+2 −0)?",
        "approval: Write a.txt",
        "+one",
    ] {
        assert!(
            asked.contains(&format!("\n{line}")) || asked.contains(&format!("\n  {line}")),
            "{line}: {asked}"
        );
    }
    assert!(!rig.project().join("a.txt").exists());
    terminal.answer_plain("perhaps");
    terminal.until("the question again", |screen| {
        screen
            .contents()
            .rsplit_once("perhaps")
            .is_some_and(|(_, after)| after.contains("answer: "))
    });
    terminal.press("y\r");
    terminal.until_text("\nallowed\n");
    terminal.until("the next prompt", |screen| {
        screen.contents().matches("you: ").count() == 2
    });
    let done = terminal.text();
    for line in ["done: Write a.txt", "- It is there.", "quote: quoted"] {
        assert!(done.contains(line), "{line}: {done}");
    }
    assert!(!done.contains(['─', '│', '✓', '•']), "{done}");
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "one\ntwo\n"
    );
    terminal.press("/cost\r");
    terminal.until_text("3 requests:");
    terminal.press("\u{4}");
    assert!(
        !terminal.written().contains('\u{1b}'),
        "nothing is drawn: {:?}",
        terminal.written()
    );
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn ctrl_c_interrupts_and_then_quits() {
    let replies = [slow_reply(&"many words.\n\n".repeat(400))];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    let mut terminal = Terminal::start_with(&rig, &["--", "talk"], (80, 24), &[("TERM", "dumb")]);
    terminal.until_text("many words.");
    terminal.press("\u{3}");
    terminal.until_text("Interrupted. Tell haft what to do instead.");
    terminal.until_text("you: ");
    terminal.press("\u{3}");
    terminal.until_text("Press Ctrl-C again to quit");
    terminal.press("\u{3}");
    assert!(!terminal.written().contains('\u{1b}'));
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn plain_approval_takes_a_reason_or_an_edited_command() {
    let call = |command: &str| {
        Reply::call(
            "execute_command",
            json!({"command": command, "requires_approval": true}),
        )
    };
    let rig = rig([call("touch one"), call("touch two"), Reply::text("Well.")]);
    rig.configure(
        &(std::fs::read_to_string(rig.home().join("config.toml")).unwrap()
            + "[tui]\nplain = true\n"),
    );
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 40));
    terminal.until_text("answer: ");
    terminal.answer_plain("w");
    terminal.until_text("reason for the model: ");
    terminal.press("not that one\r");
    terminal.until("the next question", |screen| {
        screen
            .contents()
            .rsplit_once("touch two")
            .is_some_and(|(_, after)| after.contains("answer: "))
    });
    terminal.answer_plain("e");
    terminal.until_text("now: touch two");
    terminal.until_text("new text: ");
    terminal.press("touch three\r");
    terminal.until_text("Well.");
    assert!(rig.project().join("three").exists() && !rig.project().join("one").exists());
    assert!(
        rig.server.generation_requests()[1]
            .json()
            .unwrap()
            .to_string()
            .contains("not that one")
    );
    terminal.press("/quit\r");
    assert_eq!(terminal.wait_for_exit().0, 0);
}
