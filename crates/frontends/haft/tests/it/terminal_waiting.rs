//! Slow and failing work at a real terminal: shell commands of the user, retries, failed commands,
//! open TODO items.

use haft_testkit::{Gate, Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::terminal::{Terminal, rig};

const ESC: &str = "\u{1b}";
const CONTROL_C: &str = "\u{3}";

fn rig_in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

fn quit(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

/// A shell line that starts another program, stores its process id, and waits.
const WAITING_LINE: &str = "sleep 300 & echo $! > pid; echo begun; wait";

/// Waits until the program of [`WAITING_LINE`] runs, and returns its process id.
fn wait_for_child(rig: &Rig, terminal: &Terminal) -> String {
    let file = rig.project().join("pid");
    terminal.until("the program", |_| {
        std::fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n'))
    });
    std::fs::read_to_string(&file).unwrap().trim().to_owned()
}

/// True if a process runs; a zombie does not.
fn is_running(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
}

#[test]
fn shell_command_is_shown_and_stopped_with_its_children() {
    for (line, key) in [
        (WAITING_LINE.to_owned(), ESC),
        (WAITING_LINE.to_owned(), CONTROL_C),
        (format!("trap '' TERM; {WAITING_LINE}"), ESC),
    ] {
        let rig = rig([Reply::text("Hello.")]);
        let mut terminal = Terminal::start(&rig, &[], (100, 24));
        terminal.until_text("> ");
        terminal.press(&format!("!{line}\r"));
        let pid = wait_for_child(&rig, &terminal);
        terminal.until_text("s, Esc to stop");
        terminal.press(key);
        terminal.until("its end", |screen| {
            !screen.contents().contains("Esc to stop")
        });
        terminal.until("no program", |_| !is_running(&pid));
        terminal.until_text("begun");
        terminal.press("hi\r");
        terminal.until_text("Hello.");
        quit(terminal);
    }
}

#[test]
fn quitting_kills_a_shell_command_that_ignores_signals() {
    let rig = rig([]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press(&format!("!trap '' TERM; {WAITING_LINE}\r"));
    let pid = wait_for_child(&rig, &terminal);
    terminal.press("\u{4}");
    terminal.until_text("▸ 1 no, stay");
    terminal.press("2\r");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert!(!is_running(&pid));
}

#[test]
fn shell_command_output_follows_the_running_reply() {
    let paragraphs: String = (0..40)
        .map(|number| format!("Paragraph {number} of it.\n\n"))
        .collect();
    let gate = Gate::default();
    let rig = rig([Reply::text(paragraphs).held_halfway_by(&gate)]);
    let mut terminal = Terminal::start(&rig, &["--", "talk"], (80, 100));
    terminal.until_text("Paragraph 2 of");
    terminal.press("!echo from; echo the shell\r");
    terminal.until_text("its output follows the answer");
    gate.open();
    terminal.until_text("Paragraph 39 of");
    terminal.until_idle();
    terminal.until_text("the shell");
    let shown = terminal.text();
    let lines: Vec<_> = shown.lines().filter(|line| !line.is_empty()).collect();
    let first = lines
        .iter()
        .position(|line| *line == "Paragraph 0 of it.")
        .unwrap();
    assert!(
        (0..40).all(|number| lines[first + number] == format!("Paragraph {number} of it.")),
        "{shown}"
    );
    assert_eq!(
        lines[first + 40..first + 43],
        ["> !echo from; echo the shell", "from", "the shell"],
        "{shown}"
    );
    quit(terminal);
}

#[test]
fn custom_command_shell_line_can_be_stopped() {
    for key in [ESC, CONTROL_C] {
        let rig = rig([Reply::text("Hello.")]);
        rig.write(
            ".haft/commands/wait.md",
            format!("Look: !`{WAITING_LINE}`\n"),
        );
        assert_eq!(rig.run(&["trust"]).code(), 0);
        let mut terminal = Terminal::start(&rig, &["--permission-mode", "auto"], (100, 24));
        terminal.until_text("> ");
        terminal.press("/wait\r");
        wait_for_child(&rig, &terminal);
        terminal.until_text("s, Esc to stop");
        terminal.press(key);
        terminal.until_text("Interrupted while");
        terminal.until_idle();
        assert!(
            rig.server.generation_requests().is_empty(),
            "nothing was sent"
        );
        terminal.press("hi\r");
        terminal.until_text("Hello.");
        quit(terminal);
    }
}

fn todo_call(status: &str) -> Reply {
    let item = |content: &str| json!({"content": content, "status": status});
    Reply::call(
        "todo_write",
        json!({"todos": [item("first"), item("second")]}),
    )
}

#[test]
fn todo_nudges_are_shown_and_separate_replies() {
    let rig = rig_in_order([
        todo_call("pending"),
        Reply::text("Half."),
        Reply::text("Still half."),
        todo_call("completed"),
        Reply::text("All."),
    ]);
    let terminal = Terminal::start(&rig, &["--", "do it"], (100, 30));
    terminal.until_text("All.");
    terminal.until_idle();
    let shown = terminal.text();
    for text in [
        "2 TODO items open; asking the model to continue (1 of 3)",
        "continue (2 of 3)",
    ] {
        assert!(shown.contains(text), "{shown}");
    }
    for reply in ["Half.", "Still half.", "All."] {
        assert!(
            shown.lines().any(|line| line == reply),
            "{reply} stands alone: {shown}"
        );
    }
    quit(terminal);
}

#[test]
fn todo_nudges_need_a_turn_that_used_the_list() {
    let read = Reply::call("read_file", json!({"path": "a.txt"}));
    let rig = rig_in_order([
        todo_call("pending"),
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three."),
        Reply::text("Four."),
        Reply::text("Five."),
        read,
        Reply::text("Six."),
    ]);
    rig.write("a.txt", "hello\n");
    let mut terminal = Terminal::start(&rig, &["--", "do it"], (100, 40));
    terminal.until_text("Four.");
    terminal.until_idle();
    assert_eq!(
        rig.server.generation_requests().len(),
        5,
        "three times, then it is an answer"
    );
    for (prompt, answer, requests) in [("and otherwise?", "Five.", 6), ("read it", "Six.", 8)] {
        terminal.press(&format!("{prompt}\r"));
        terminal.until_text(answer);
        terminal.until_idle();
        assert_eq!(
            rig.server.generation_requests().len(),
            requests,
            "{}",
            terminal.text()
        );
    }
    quit(terminal);
}

#[test]
fn fatal_error_is_shown_once() {
    for (reply, text) in [
        (
            Reply::error(401, "the key is not known here"),
            "the key is not known here",
        ),
        (
            Reply::error(400, "prompt is malformed"),
            "prompt is malformed",
        ),
    ] {
        let rig = rig_in_order([reply]);
        let mut terminal = Terminal::start(&rig, &[], (100, 24));
        terminal.until_text("> ");
        terminal.press("hi\r");
        terminal.until_text(text);
        terminal.until_idle();
        assert_eq!(
            terminal.text().matches(text).count(),
            1,
            "{}",
            terminal.text()
        );
        quit(terminal);
    }
}

#[test]
fn dropped_stream_shows_one_answer() {
    let answer = "First paragraph.\n\nSecond paragraph.\n\nThird paragraph.";
    for bytes in [600, 900, 1_200] {
        let lost = || Reply {
            drop_after_bytes: Some(bytes),
            delta_chars: Some(6),
            ..Reply::text(answer)
        };
        let rig = rig_in_order([Reply::text("Hello."), lost(), lost(), Reply::text(answer)]);
        let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 24));
        terminal.until_text("Hello.");
        terminal.until_idle();
        terminal.press("talk\r");
        terminal.until_text("Third paragraph.");
        terminal.until_idle();
        let shown = terminal.text();
        let lines: Vec<_> = shown.lines().filter(|line| !line.is_empty()).collect();
        let from = lines.iter().position(|line| *line == "> talk").unwrap();
        let expected = [
            "> talk",
            "First paragraph.",
            "Second paragraph.",
            "Third paragraph.",
            "> ",
        ];
        assert_eq!(lines[from..from + 5], expected, "{bytes}: {shown}");
        assert!(
            !shown.contains("error") && !shown.contains("body") && !shown.contains("retry"),
            "{shown}"
        );
        quit(terminal);
    }
}

#[test]
fn dropped_stream_announces_a_different_answer() {
    let cut = Reply {
        drop_after_bytes: Some(1_600),
        delta_chars: Some(6),
        ..Reply::text("One way.\n\nAnd on.\n\n".repeat(9))
    };
    let rig = rig_in_order([Reply::text("Hello."), cut, Reply::text("Another way.")]);
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 40));
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("talk\r");
    terminal.until_text("Another way.");
    terminal.until_text("it starts over");
    quit(terminal);
}

#[test]
fn retry_countdown_takes_one_line() {
    let busy = || Reply {
        retry_after: Some(2.2),
        ..Reply::error(429, "slow down please")
    };
    let rig = rig_in_order([busy(), busy(), Reply::text("Hello.")]);
    let terminal = Terminal::start(&rig, &["--", "hi"], (100, 24));
    terminal.until_text("Hello.");
    terminal.until_idle();
    // The seconds that appear depend on how often the machine draws the screen.
    let screens = terminal.shown_screens();
    let seconds = |retry: &str| -> Vec<u32> {
        let left = |screen: &String| {
            screen
                .split_once(retry)?
                .1
                .split_once(" s")
                .and_then(|(left, _)| left.parse().ok())
        };
        screens.iter().filter_map(left).collect()
    };
    for retry in ["retry 1 of 5 in ", "retry 2 of 5 in "] {
        let seconds = seconds(retry);
        assert!(
            seconds.is_sorted_by(|before, after| before >= after),
            "{seconds:?}"
        );
        assert!(
            !seconds.is_empty() && seconds.iter().all(|left| (1..=3).contains(left)),
            "{seconds:?}"
        );
    }
    let repeated: Vec<_> = screens
        .iter()
        .filter(|screen| screen.matches("slow down please").count() > 1)
        .collect();
    assert!(repeated.is_empty(), "{repeated:#?}");
    assert!(
        !terminal.text().contains("slow down"),
        "{}",
        terminal.text()
    );
    quit(terminal);
}

#[test]
fn failed_command_shows_its_last_lines_and_errors() {
    let many = "for i in $(seq 60); do echo out $i; done; for i in $(seq 60); do echo err $i >&2; done; exit 3";
    let cases = [
        (many, vec!["Exit code 3", "out 60", "err 60"], "err 1\n"),
        (
            "seq 60; echo the reason >&2; exit 1",
            vec!["Exit code 1", "60", "the reason"],
            "\n  1\n",
        ),
        ("seq 60; exit 4", vec!["Exit code 4", "60"], "\n  1\n"),
    ];
    for (line, shown, hidden) in cases {
        let call = Reply::call(
            "execute_command",
            json!({"command": line, "requires_approval": false}),
        );
        let rig = rig([call, Reply::text("It failed.")]);
        let terminal = Terminal::start(&rig, &["--permission-mode", "auto", "--", "go"], (100, 60));
        terminal.until_text("It failed.");
        let text = terminal.text();
        assert!(
            shown.iter().all(|part| text.contains(part)) && !text.contains(hidden),
            "{text}"
        );
        quit(terminal);
        drop(rig);
    }
}
