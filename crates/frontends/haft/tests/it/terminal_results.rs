//! Results at a real terminal: the result viewer, folded and numbered diffs, and notifications.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::terminal::{Terminal, rig, write_a};

const ESC: &str = "\u{1b}";
const CTRL_O: &str = "\u{f}";
/// Variables by which a terminal announces features beyond the standard.
const CAPABLE_TERMINAL: [(&str, &str); 1] = [("TERM_PROGRAM", "WezTerm")];

fn quit(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

/// Waits until the viewer is closed. An earlier prompt is above it all the while, with the mark of
/// the input.
fn wait_until_closed(terminal: &Terminal) {
    terminal.until("the input again", |screen| {
        let text = screen.contents();
        !text.contains("result 1 of 2") && text.contains("\n> ")
    });
}

#[test]
fn result_viewer_opens_and_searches_any_result() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "first.txt"})),
        Reply::call("read_file", json!({"path": "second.txt"})),
        Reply::text("Read."),
    ]);
    rig.write("first.txt", "needle in the first\n");
    let second: String = (1..=200).map(|number| format!("row {number}\n")).collect();
    rig.write(
        "second.txt",
        second.replace("row 150\n", "row 150 needle\n"),
    );
    for size in [(80, 24), (40, 12)] {
        let mut terminal = Terminal::start(&rig, &["--", "go"], size);
        terminal.until_text("Read.");
        terminal.until_idle();
        terminal.press(CTRL_O);
        terminal.until_text("▾ Read second.txt");
        terminal.press("/needle\r");
        terminal.until_text("row 150 needle");
        terminal.press("\u{1b}[D");
        terminal.until_text("needle in the first");
        terminal.press(ESC);
        wait_until_closed(&terminal);
        quit(terminal);
    }
}

#[test]
fn result_viewer_shows_results_from_before_a_resume() {
    let rig = rig([
        Reply::call("read_file", json!({"path": "first.txt"})),
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Read."),
    ]);
    rig.write("first.txt", "needle in the first\n");
    let terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_text("Read.");
    terminal.until_idle();
    quit(terminal);
    let mut terminal = Terminal::start(&rig, &["-c"], (80, 24));
    terminal.until_text("Read.");
    terminal.press(CTRL_O);
    terminal.until_text("▾ List .");
    terminal.until_text("result 2 of 2");
    terminal.press("\u{1b}[D");
    terminal.until_text("needle in the first");
    terminal.press(ESC);
    wait_until_closed(&terminal);
    quit(terminal);
}

#[test]
fn long_diff_is_folded_and_numbered() {
    let content: String = (1..=90).map(|number| format!("row {number}\n")).collect();
    let edit = json!({"path": "long.txt", "old_text": "old\n", "new_text": content});
    let calls = [
        Reply::call("read_file", json!({"path": "long.txt"})),
        Reply::call("edit_file", edit),
    ];
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies(calls.into_iter().chain([Reply::text("Written.")])).unwrap(),
    );
    rig.write("long.txt", "old\n");
    let mut terminal = Terminal::start(
        &rig,
        &["--permission-mode", "accept-edits", "--", "go"],
        (80, 100),
    );
    terminal.until_text("Written.");
    terminal.until_idle();
    let shown = terminal.text();
    assert!(
        shown.contains(" 1 -old\n") && shown.contains("48 +row 48\n"),
        "{shown}"
    );
    terminal.press("\u{c}/diff\r");
    terminal.until("the change, folded", |screen| {
        let text = screen.contents();
        text.contains("more rows; Ctrl-O for all")
            && !text.contains("+row 80")
            && text.contains("\n48 +row 48\n")
    });
    terminal.press("\u{f}");
    terminal.until_text("90 +row 90");
    terminal.press(ESC);
    terminal.until("the viewer is closed", |screen| {
        !screen.contents().contains("Esc to close")
    });
    quit(terminal);
}

#[test]
fn approval_rings_and_notifies_if_supported_and_enabled() {
    for (environment, configured, sequences, bell) in [
        (&CAPABLE_TERMINAL[..], "", true, true),
        (&[], "", false, true),
        (
            &CAPABLE_TERMINAL[..],
            "[tui]\nnotifications = false\n",
            false,
            false,
        ),
    ] {
        let rig = rig([write_a(), Reply::text("So be it.")]);
        let before = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
        rig.configure(&(before + configured));
        let mut terminal = Terminal::start_with(&rig, &["--", "go"], (80, 30), environment);
        terminal.until_armed();
        terminal.press("n");
        terminal.until_text("So be it.");
        terminal.until_idle();
        terminal.press("\u{4}");
        let written = terminal.written();
        assert_eq!(
            written.contains("\u{1b}]9;haft: Write a.txt?"),
            sequences,
            "{written:?}"
        );
        assert_eq!(
            written.contains("\u{1b}]2;haft: waiting for you"),
            sequences
        );
        assert_eq!(written.contains('\u{7}'), bell, "{written:?}");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}

#[test]
fn notifications_are_not_sent_to_plain_or_dumb_terminals() {
    for (arguments, environment) in [
        (&["--plain", "--", "go"][..], &CAPABLE_TERMINAL[..]),
        (&["--", "go"], &[("TERM", "dumb")]),
    ] {
        let rig = rig([write_a(), Reply::text("So be it.")]);
        let mut terminal = Terminal::start_with(&rig, arguments, (100, 30), environment);
        terminal.until_text("answer:");
        terminal.answer_plain("n");
        terminal.until_text("So be it.");
        let written = terminal.written();
        assert!(
            !written.contains('\u{7}') && !written.contains("\u{1b}]"),
            "{written:?}"
        );
    }
}

#[test]
fn file_path_is_a_hyperlink_if_supported() {
    for (environment, there) in [(&CAPABLE_TERMINAL[..], true), (&[], false)] {
        let rig = rig([
            Reply::call("read_file", json!({"path": "a b\u{1b}]0;x.txt"})),
            Reply::text("Read."),
        ]);
        rig.write("a b\u{1b}]0;x.txt", "words");
        let terminal = Terminal::start_with(&rig, &["--", "go"], (80, 24), environment);
        terminal.until_text("Read.");
        terminal.until_idle();
        let written = terminal.written();
        let folder = rig.project().canonicalize().unwrap();
        let link = format!(
            "\u{1b}]8;;file://{}/a%20b%1B%5D0%3Bx.txt\u{1b}\\",
            folder.display()
        );
        assert_eq!(written.contains(&link), there, "{written:?}");
        assert!(!written.contains("\u{1b}]0;"), "{written:?}");
        quit(terminal);
    }
}
