//! `haft run` at a terminal: a header, progress with times, Markdown, and the cost. A program that
//! reads the output gets none of it.

use haft_testkit::{Gate, Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::terminal::{Terminal, rig};

fn wait_for_pipe() -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": "echo one; echo two; cat fifo", "requires_approval": false}),
    )
}

fn make_pipe(rig: &Rig) -> std::path::PathBuf {
    let fifo = rig.project().join("fifo");
    std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap();
    fifo
}

#[test]
fn run_at_a_terminal_shows_progress_markdown_and_cost() {
    for columns in [40, 80, 120] {
        let answer = Reply::text("# Title\n\n- **bold** point");
        let rig = rig([wait_for_pipe(), answer]);
        let fifo = make_pipe(&rig);
        let arguments = ["run", "--permission-mode", "yolo", "go"];
        let terminal = Terminal::start(&rig, &arguments, (columns, 24));
        terminal.until("the call with its time and output", |screen| {
            let shown = screen.contents();
            let row = shown
                .lines()
                .find(|row| row.starts_with('…'))
                .map(str::to_owned);
            row.is_some_and(|row| row.contains(" s") && (columns == 40 || row.contains("two")))
        });
        std::fs::write(&fifo, "x\n").unwrap();
        let (code, shown) = terminal.wait_for_exit();
        assert_eq!(code, 0, "{shown}");
        assert!(
            !shown.contains("**bold**") && shown.contains("bold point"),
            "{shown}"
        );
        assert!(
            shown.contains("conversation") && shown.contains("2 requests"),
            "{shown}"
        );
        let ended: String = shown.split_whitespace().collect();
        assert!(ended.contains("`haft-r") && ended.contains('$'), "{shown}");
        assert!(
            !shown.lines().any(|row| row.starts_with('…')),
            "the line is gone: {shown}"
        );
    }
}

#[test]
fn run_at_a_terminal_shows_the_wait_for_the_model() {
    let gate = Gate::default();
    let script = Script::turns([Reply::text("Done.").held_by(&gate)]).unwrap();
    let rig = Rig::new(Api::Anthropic, script);
    let terminal = Terminal::start(&rig, &["run", "go"], (80, 24));
    terminal.until_text("waiting for the model");
    gate.open();
    let (code, shown) = terminal.wait_for_exit();
    assert_eq!(code, 0, "{shown}");
    assert!(
        shown.contains("Done.") && !shown.contains("waiting for the model"),
        "{shown}"
    );
}

#[test]
fn approval_of_a_run_is_not_covered_by_progress() {
    let call = json!({"command": "touch made", "requires_approval": false});
    let rig = rig([Reply::call("execute_command", call), Reply::text("Done.")]);
    let mut terminal = Terminal::start(&rig, &["run", "--ask", "go"], (100, 30));
    terminal.until("the question", |screen| {
        screen.contents().trim_end().ends_with(':')
    });
    terminal.press("y\r");
    terminal.until_text("Done.");
    let terminal_screens = terminal.shown_screens();
    let (code, shown) = terminal.wait_for_exit();
    assert_eq!(code, 0, "{shown}");
    assert!(rig.project().join("made").exists());
    for screen in terminal_screens {
        let covered = screen.contains("Allow") && screen.contains("waiting for the model");
        assert!(!covered, "{screen}");
    }
}

#[test]
fn piped_output_is_the_answer_alone() {
    let rig = rig([
        Reply::text("# Title\n\n- **bold** point"),
        Reply::text("Again."),
    ]);
    let ran = rig.run(&["run", "go"]);
    assert_eq!(
        (ran.code(), ran.stdout().as_str(), ran.stderr().as_str()),
        (0, "# Title\n\n- **bold** point\n", "")
    );
}
