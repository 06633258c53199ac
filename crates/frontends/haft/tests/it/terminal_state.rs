//! The state shown at a real terminal: calls that wait or run, questions and plans of the model, and
//! work that goes on in the background.

use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::terminal::{Terminal, rig, write_a};

const DOWN: &str = "\u{1b}[B";

fn command(line: &str) -> Value {
    json!({"command": line, "requires_approval": false})
}

fn write(path: &str) -> ScriptCall {
    ScriptCall::new("write_to_file", json!({"path": path, "content": "x\n"}))
}

fn rig_in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

fn quit(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

/// Returns the row that contains `text` and is not printed yet: those begin with `…`.
fn live_row(shown: &str, text: &str) -> Option<String> {
    shown
        .lines()
        .find(|row| row.starts_with('…') && row.contains(text))
        .map(str::to_owned)
}

#[test]
fn calls_that_wait_for_an_approval_are_not_running() {
    for columns in [40, 80, 120] {
        let rig = rig([
            Reply::calls([
                write("a.txt"),
                write("b.txt"),
                ScriptCall::new("execute_command", command("echo hi > c.txt")),
            ]),
            Reply::text("So be it."),
        ]);
        let mut terminal = Terminal::start(&rig, &["--", "go"], (columns, 30));
        terminal.until_armed();
        let shown = terminal.text();
        assert!(live_row(&shown, "a.txt").is_none(), "{shown}");
        for waiting in ["b.txt", "c.txt"] {
            let row = live_row(&shown, waiting).unwrap_or_else(|| panic!("{waiting}: {shown}"));
            assert!(row.trim_end().ends_with("waiting"), "{shown}");
        }
        for headline in ["Write a.txt", "Write b.txt", "Run echo hi"] {
            terminal.until_armed_for(headline);
            terminal.press("n");
        }
        terminal.until_text("So be it.");
        for screen in terminal.shown_screens() {
            let counts = screen
                .lines()
                .any(|row| row.starts_with('…') && row.trim_end().ends_with(" s"));
            assert!(!counts, "nothing ran:\n{screen}");
        }
        assert!(!rig.project().join("c.txt").exists());
        quit(terminal);
    }
}

#[test]
fn time_of_a_call_begins_with_its_run() {
    let rig = rig([
        Reply::call("execute_command", command("touch made; cat fifo")),
        Reply::text("Done."),
    ]);
    std::process::Command::new("mkfifo")
        .arg(rig.project().join("fifo"))
        .status()
        .unwrap();
    let arguments = ["--permission-mode", "auto", "--", "go"];
    let mut terminal = Terminal::start(&rig, &arguments, (80, 30));
    if !terminal_has_sandbox(&rig) {
        return;
    }
    // The command runs as long as nobody writes to the pipe.
    terminal.until("the time of the command", |screen| {
        live_row(&screen.contents(), "cat fifo").is_some_and(|row| row.trim_end().ends_with(" s"))
    });
    terminal.press("\u{1b}");
    terminal.until_text("Interrupted");
    terminal.until_idle();
    quit(terminal);
}

fn terminal_has_sandbox(rig: &Rig) -> bool {
    crate::sandbox::has_namespaces(rig)
}

#[test]
fn long_command_shows_time_and_last_lines() {
    let line =
        "for i in 1 2 3 4 5; do echo tick number $i of a loop with a long line; done; cat fifo";
    for columns in [40, 80, 120] {
        let rig = rig([
            Reply::call("execute_command", command(line)),
            Reply::text("Done."),
        ]);
        if !terminal_has_sandbox(&rig) {
            return;
        }
        std::process::Command::new("mkfifo")
            .arg(rig.project().join("fifo"))
            .status()
            .unwrap();
        let arguments = ["--permission-mode", "auto", "--", "go"];
        let mut terminal = Terminal::start(&rig, &arguments, (columns, 30));
        terminal.until("the time and the last lines", |screen| {
            let shown = screen.contents();
            let row = live_row(&shown, "for i in");
            row.is_some_and(|row| row.trim_end().ends_with(" s"))
                && ["tick number 3", "tick number 4", "tick number 5"]
                    .iter()
                    .all(|tick| shown.contains(tick))
        });
        terminal.press("\u{1b}");
        terminal.until_text("Interrupted");
        terminal.until_idle();
        quit(terminal);
    }
}

#[test]
fn plan_mode_switched_on_later_ends_in_its_choice() {
    for (keys, mode) in [("\r", "accept-edits"), ("2\r", "ask"), (DOWN, "ask")] {
        let rig = rig_in_order([
            Reply::text("Hello."),
            Reply::text("First I would write a.txt."),
            write_a(),
            Reply::text("Done."),
        ]);
        let mut terminal = Terminal::start(&rig, &["--", "hi"], (80, 30));
        terminal.until_text("Hello.");
        terminal.until_idle();
        terminal.press("/mode plan\r");
        terminal.until_text("plan: ");
        terminal.press("plan it\r");
        terminal.until("the list", |screen| {
            screen.contents().contains("Carry out this plan?") && screen.contents().contains('▸')
        });
        assert!(!terminal.text().contains('✗'), "{}", terminal.text());
        terminal.press(keys);
        if keys == DOWN {
            terminal.press("\r");
        }
        if mode == "ask" {
            terminal.until_armed();
            terminal.press("y");
        }
        terminal.until_text("Done.");
        terminal.until_idle();
        assert!(rig.project().join("a.txt").exists());
        let last = terminal
            .text()
            .lines()
            .last()
            .unwrap_or_default()
            .to_owned();
        assert!(last.starts_with(mode), "{}", terminal.text());
        quit(terminal);
    }
}

fn question() -> Reply {
    Reply::call(
        "ask_followup_question",
        json!({"question": "Should empty names be refused?", "options": ["Refuse them", "Keep 2 of them", "Ask later"]}),
    )
}

#[test]
fn question_of_the_model_is_a_list() {
    for (keys, answer) in [
        ("\r", "Refuse them"),
        ("3\r", "Ask later"),
        ("\u{1b}[B\r", "Keep 2 of them"),
        ("none of these\r", "none of these"),
        ("2 of them, please\r", "2 of them, please"),
    ] {
        let rig = rig([question(), Reply::text("So be it.")]);
        let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
        terminal.until("the list", |screen| {
            screen.contents().contains("▸ 1 Refuse them")
        });
        let shown = terminal.text();
        assert!(
            !shown.contains('✗') && !shown.contains("cancelled"),
            "{shown}"
        );
        assert_eq!(
            shown.matches("Should empty names be refused?").count(),
            1,
            "{shown}"
        );
        assert_eq!(shown.matches("Keep 2 of them").count(), 1, "{shown}");
        if keys.len() > 4 {
            for key in keys.trim_end().chars() {
                terminal.press(&key.to_string());
            }
            terminal.until_text(&format!("> {answer}"));
            terminal.press("\r");
        } else {
            terminal.press(keys);
        }
        terminal.until_text("So be it.");
        terminal.until_idle();
        let body = rig.server.generation_requests()[1]
            .json()
            .unwrap()
            .to_string();
        assert!(
            body.contains(&format!("The user answered: {answer}")),
            "{body}"
        );
        let shown = terminal.text();
        assert!(
            !shown.contains('✗') && !shown.contains("✓ ask_followup"),
            "{shown}"
        );
        quit(terminal);
    }
}

#[test]
fn closed_question_shows_its_options_and_takes_their_numbers() {
    let rig = rig([question(), Reply::text("So be it.")]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
    terminal.until_text("▸ 1 Refuse them");
    terminal.press("\u{1b}");
    terminal.until("the options", |screen| {
        screen.contents().contains(" 3 Ask later") && !screen.contents().contains('▸')
    });
    terminal.press("3\r");
    terminal.until_text("So be it.");
    let body = rig.server.generation_requests()[1]
        .json()
        .unwrap()
        .to_string();
    assert!(body.contains("The user answered: Ask later"), "{body}");
    quit(terminal);
}

#[test]
fn plan_of_the_model_is_no_failed_call() {
    let plan = Reply::call(
        "plan_mode_respond",
        json!({"response": "First I write a.txt."}),
    );
    let rig = rig([plan, Reply::text("So be it.")]);
    let arguments = ["--permission-mode", "plan", "--", "go"];
    let mut terminal = Terminal::start(&rig, &arguments, (80, 30));
    terminal.until_text("Carry out this plan?");
    let shown = terminal.text();
    assert!(
        !shown.contains('✗')
            && !shown.contains("cancelled")
            && !shown.contains("plan_mode_respond"),
        "{shown}"
    );
    assert_eq!(shown.matches("First I write a.txt.").count(), 1, "{shown}");
    terminal.press("\u{1b}");
    terminal.until("no list", |screen| !screen.contents().contains("Carry out"));
    quit(terminal);
}

#[test]
fn plain_mode_offers_the_options_of_a_question() {
    let rig = rig([question(), Reply::text("So be it.")]);
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (120, 40));
    terminal.until_text("3: Ask later");
    terminal.until_text("number");
    terminal.answer_plain("3");
    terminal.until_text("So be it.");
    let body = rig.server.generation_requests()[1]
        .json()
        .unwrap()
        .to_string();
    assert!(body.contains("The user answered: Ask later"), "{body}");
    assert!(
        !terminal.text().contains("cancelled"),
        "{}",
        terminal.text()
    );
}

fn start_task(line: &str) -> Reply {
    Reply::call(
        "background_task",
        json!({"action": "start", "command": line}),
    )
}

#[test]
fn background_task_shows_time_and_output_and_disappears_when_it_ends() {
    for columns in [40, 80] {
        let rig = rig([
            start_task("echo first; cat fifo; echo last"),
            Reply::text("Started."),
        ]);
        if !terminal_has_sandbox(&rig) {
            return;
        }
        let fifo = rig.project().join("fifo");
        std::process::Command::new("mkfifo")
            .arg(&fifo)
            .status()
            .unwrap();
        let arguments = ["--permission-mode", "auto", "--", "go"];
        let mut terminal = Terminal::start(&rig, &arguments, (columns, 30));
        terminal.until_text("Started.");
        terminal.until_idle();
        terminal.until("the task with its time and output", |screen| {
            let shown = screen.contents();
            let row = shown
                .lines()
                .find(|row| row.starts_with("& t1"))
                .map(str::to_owned);
            row.is_some_and(|row| row.trim_end().ends_with(" s")) && shown.contains("  first")
        });
        // Ctrl-D asks while the task runs.
        terminal.press("\u{4}");
        terminal.until_text("still running");
        terminal.until("the question", |screen| screen.contents().contains('▸'));
        terminal.press("\r");
        terminal.until("no question", |screen| {
            !screen.contents().contains("still running")
        });
        std::fs::write(&fifo, "done\n").unwrap();
        terminal.until("no task", |screen| {
            !screen.contents().lines().any(|row| row.starts_with("& t1"))
        });
        assert_eq!(
            rig.server.generation_requests().len(),
            2,
            "nothing was sent for it"
        );
        terminal.until_text("finished");
        quit(terminal);
    }
}

#[test]
fn leaving_ends_running_tasks_only_after_a_yes() {
    for command in ["\u{4}", "/quit\r"] {
        let rig = rig([start_task("cat fifo"), Reply::text("Started.")]);
        if !terminal_has_sandbox(&rig) {
            return;
        }
        std::process::Command::new("mkfifo")
            .arg(rig.project().join("fifo"))
            .status()
            .unwrap();
        let arguments = ["--permission-mode", "auto", "--", "go"];
        let mut terminal = Terminal::start(&rig, &arguments, (80, 30));
        terminal.until_text("Started.");
        terminal.until_idle();
        terminal.press(command);
        terminal.until("the question", |screen| {
            screen.contents().contains("still running") && screen.contents().contains('▸')
        });
        terminal.press("2\r");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}
