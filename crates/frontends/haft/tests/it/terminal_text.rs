//! Hostile text wherever a terminal shows text: replies, file names, tool output and approvals.

use haft_testkit::Reply;
use serde_json::json;

use crate::terminal::{Terminal, rig};

const SIZE: (u16, u16) = (80, 24);

/// Texts that would paint over other rows if they were written unescaped, by their effect.
fn hostile_texts() -> [(&'static str, String); 6] {
    [
        (
            "sequences",
            "a\u{1b}[2J\u{1b}[H\u{1b}]0;owned\u{7}\u{1b}[1A\u{1b}[2Kb\u{9b}5A\u{1b}[?1049h"
                .to_owned(),
        ),
        ("controls", "a\r\u{8}\u{8}\u{b}\u{c}\u{85}b".to_owned()),
        (
            "bidi",
            "a\u{202e}\u{2066}txt.exe\u{2069}\u{202c}b".to_owned(),
        ),
        (
            "zero-width",
            "a\u{200b}\u{200d}\u{feff}\u{2060}b".to_owned(),
        ),
        ("marks", format!("a{}b", "\u{301}\u{489}".repeat(200))),
        ("a long line", "long ".repeat(200_000)),
    ]
}

/// Waits until the screen is intact: one empty input with the cursor in it, the status below it,
/// nothing below that. No part of the text may have been written unescaped.
#[track_caller]
fn assert_intact(terminal: &Terminal, kind: &str) {
    terminal.until(kind, |screen| {
        let rows: Vec<_> = screen
            .rows(0, SIZE.0)
            .map(|row| row.trim_end().to_owned())
            .collect();
        let inputs: Vec<_> = (0..rows.len()).filter(|row| rows[*row] == ">").collect();
        let [input] = inputs[..] else { return false };
        screen.cursor_position() == (input as u16, 2)
            && rows[input + 1].contains("mock/")
            && rows[input + 2..].iter().all(String::is_empty)
    });
    let written = terminal.written();
    let shown = terminal.text();
    for sequence in [
        "\u{1b}]",
        "\u{1b}[2J",
        "\u{1b}[H",
        "\u{1b}[?1049h",
        "\u{9b}",
    ] {
        assert!(
            !written.contains(sequence),
            "{kind}: {sequence:?} was written"
        );
    }
    let turns = |letter: char| {
        ('\u{202a}'..='\u{202e}').contains(&letter) || ('\u{2066}'..='\u{2069}').contains(&letter)
    };
    assert!(!written.contains(turns), "{kind}: {shown}");
    let piled = written
        .split(|letter| !"\u{301}\u{489}".contains(letter))
        .map(|marks| marks.chars().count())
        .max();
    assert!(piled < Some(7), "{kind}: {piled:?} marks on one letter");
}

#[test]
fn hostile_replies_are_escaped() {
    for (kind, text) in hostile_texts() {
        let rig = rig([Reply::text(format!("{text}\n\nThe end of it."))]);
        let mut terminal = Terminal::start(&rig, &["go on"], SIZE);
        terminal.until_text("The end of it.");
        terminal.until_idle();
        assert_intact(&terminal, kind);
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}

/// Words that a narrow terminal must not break.
#[test]
fn approval_wraps_between_words_in_a_narrow_terminal() {
    let command = "echo internationalisation && touch documentation/readme-copy.md && touch second-argument.txt";
    let rig = rig([
        Reply::call("execute_command", json!({"command": command})),
        Reply::text("So be it."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (40, 60));
    terminal.until_armed();
    let shown = terminal.text();
    for word in [
        "internationalisation",
        "documentation/",
        "second-argument.txt",
    ] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
    terminal.press("n");
    terminal.until_text("So be it.");
    terminal.until_idle();
    terminal.press("\u{c}/help\r");
    terminal.until_text("browser");
    terminal.press("/models\r");
    terminal.until_text("USD/M IN:");
    terminal.press("/context\r");
    terminal.until_text("reserved for the reply");
    let shown = terminal.text();
    assert!(
        shown.contains("WINDOW: ") && !shown.contains('…'),
        "{shown}"
    );
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn hostile_file_names_are_escaped() {
    for (kind, text) in hostile_texts() {
        let name: String = format!("file-{text}")
            .chars()
            .filter(|letter| !"/\0".contains(*letter))
            .take(60)
            .collect();
        let rig = rig([
            Reply::call("list_files", json!({"path": "."})),
            Reply::text("The end of it."),
        ]);
        rig.write(&name, "words");
        let mut terminal = Terminal::start(&rig, &["go on"], SIZE);
        terminal.until_text("The end of it.");
        terminal.until_idle();
        terminal.press("\u{f}");
        terminal.until_text("▾ List");
        terminal.press("\u{1b}");
        terminal.until("the viewer is closed", |screen| {
            !screen.contents().contains("Esc to close")
        });
        assert_intact(&terminal, kind);
        terminal.press("@file");
        terminal.until_text("▸ @");
        terminal.until(kind, |screen| {
            let row = usize::from(screen.cursor_position().0);
            let rows: Vec<_> = screen.rows(0, SIZE.0).collect();
            rows[row].starts_with("> @file")
                && rows[row + 1].starts_with("▸ @")
                && rows[row + 2].contains("mock/")
        });
        terminal.press("\u{1b}\u{3}");
        terminal.until("an empty input", |screen| {
            !screen.contents().contains("> @file")
        });
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}

#[test]
fn hostile_tool_output_is_escaped() {
    for (kind, text) in hostile_texts() {
        let call = Reply::call(
            "execute_command",
            json!({"command": "cat words", "requires_approval": false}),
        );
        let rig = rig([call, Reply::text("The end of it.")]);
        rig.write("words", format!("{text}\n"));
        let mut terminal = Terminal::start(&rig, &["--permission-mode", "yolo", "go on"], SIZE);
        terminal.until_text("The end of it.");
        terminal.until_idle();
        assert_intact(&terminal, kind);
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}

#[test]
fn hostile_approval_subject_is_escaped() {
    for (kind, text) in hostile_texts() {
        // The whole text is shown, so a long one scrolls by.
        let text: String = text.chars().take(20_000).collect();
        let call = Reply::call(
            "execute_command",
            json!({"command": format!("echo '{text}'"), "requires_approval": true}),
        );
        let rig = rig([call, Reply::text("The end of it.")]);
        let mut terminal = Terminal::start(&rig, &["go on"], SIZE);
        terminal.until_armed();
        let shown = terminal.text();
        let rows: Vec<_> = shown.lines().collect();
        let question = rows
            .iter()
            .position(|row| row.starts_with("The model flagged this as risky"))
            .unwrap_or_else(|| panic!("{kind}: {shown}"));
        assert!(
            rows[question..]
                .iter()
                .any(|row| row.starts_with(" y yes, this once")),
            "{kind}: {shown}"
        );
        assert!(
            rows[question..].iter().any(|row| row.starts_with(" n no")),
            "{kind}: {shown}"
        );
        assert!(rows[question - 1].is_empty(), "{kind}: {shown}");
        terminal.press("n");
        terminal.until_text("The end of it.");
        terminal.until_idle();
        assert_intact(&terminal, kind);
        terminal.press("\u{4}");
        assert_eq!(terminal.wait_for_exit().0, 0);
    }
}
