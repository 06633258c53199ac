//! Approvals at a real terminal: a sentence grants nothing, and a grant for more than one call is
//! confirmed.

use haft_testkit::Reply;
use serde_json::json;

use crate::permissions::run_at_terminal;
use crate::rig::Rig;
use crate::terminal::{Terminal, rig};

fn rig_with_command() -> Rig {
    let call = json!({"command": "touch made", "requires_approval": false});
    rig([
        Reply::call("execute_command", call),
        Reply::text("So be it."),
    ])
}

/// Asserts that nothing ran, that no rule was saved, and that the model reads `reason`.
#[track_caller]
fn assert_refused(rig: &Rig, reason: &str) {
    assert!(!rig.project().join("made").exists());
    let rules = rig
        .run(&["permissions", "list", "--json"])
        .json()
        .to_string();
    assert!(!rules.contains("touch"), "{rules}");
    let told = rig.server.generation_requests()[1]
        .json()
        .unwrap()
        .to_string();
    assert!(told.contains(&format!("They said: {reason}")), "{told}");
}

#[test]
fn sentence_typed_key_by_key_refuses() {
    for (sentence, confirmation) in [
        ("actually no", "Always allow this?"),
        ("sure, but use make", "Allow this until the session ends?"),
    ] {
        let rig = rig_with_command();
        let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
        terminal.until_armed();
        terminal.press(&sentence[..1]);
        terminal.until_text(confirmation);
        assert!(
            terminal.text().contains("execute_command(touch made)"),
            "{}",
            terminal.text()
        );
        for end in 2..=sentence.len() {
            terminal.press(&sentence[end - 1..end]);
            terminal.until_text(&format!("> {}", sentence[..end].trim_end()));
        }
        terminal.press("\r");
        terminal.until_text("So be it.");
        assert_refused(&rig, sentence);
    }
}

#[test]
fn text_that_arrives_at_once_is_a_reason() {
    for text in [
        "actually no\r",
        "yes but not here\r",
        "\u{1b}[200~yes please\u{1b}[201~",
    ] {
        let rig = rig_with_command();
        let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
        terminal.until_armed();
        terminal.press(text);
        if !text.ends_with('\r') {
            terminal.until_text("> yes please");
            terminal.press("\r");
        }
        terminal.until_text("So be it.");
        let sentence = text
            .trim_start_matches("\u{1b}[200~")
            .trim_end_matches("\u{1b}[201~")
            .trim();
        assert_refused(&rig, sentence);
    }
    for text in ["y\r", "a\r", "yy"] {
        let rig = rig_with_command();
        let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
        terminal.until_armed();
        terminal.press(text);
        terminal.until_text("Enter to refuse with this reason");
        assert!(!rig.project().join("made").exists(), "{text:?}");
        terminal.press("\u{1b}");
        terminal.until_text("press a key");
        terminal.press("y");
        terminal.until_text("So be it.");
        assert!(
            rig.project().join("made").exists(),
            "{text:?}: one key still answers"
        );
    }
}

#[test]
fn always_shows_the_rule_and_the_file_and_waits_for_enter() {
    let rig = rig_with_command();
    let mut terminal = Terminal::start(&rig, &["--", "go"], (160, 30));
    terminal.until_armed();
    terminal.press("a");
    terminal.until_text("Always allow this?");
    let file = rig.home().join("config.toml").display().to_string();
    let shown = terminal.text();
    assert!(
        shown.contains("execute_command(touch made)") && shown.contains(&file),
        "{shown}"
    );
    terminal.press("\u{1b}");
    terminal.until_text("press a key");
    assert!(!rig.project().join("made").exists());
    terminal.press("a");
    terminal.until_text("Always allow this?");
    terminal.press("\r");
    terminal.until_text("So be it.");
    let shown = terminal.text();
    assert!(
        shown.contains(&format!(
            "always allowed: execute_command(touch made) (saved in {file})"
        )),
        "{shown}"
    );
    assert!(rig.project().join("made").exists());
    assert!(
        rig.run(&["permissions", "list"])
            .stdout()
            .contains("execute_command(touch made)")
    );
}

#[test]
fn edited_command_is_shown_as_it_ran() {
    let rig = rig_with_command();
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
    terminal.until_armed();
    terminal.press("e");
    terminal.until_text("> touch made");
    terminal.press("\u{15}touch other\r");
    terminal.until_text("So be it.");
    let shown = terminal.text();
    assert!(
        shown.contains("✓ Run touch other") && !shown.contains("✓ Run touch made"),
        "{shown}"
    );
    assert!(!shown.contains("than yours"), "{shown}");
    assert!(rig.project().join("other").exists() && !rig.project().join("made").exists());
}

#[test]
fn plain_mode_takes_a_sentence_as_a_reason() {
    let rig = rig_with_command();
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (200, 40));
    terminal.until_text("answer: ");
    let file = rig.home().join("config.toml").display().to_string();
    let shown: String = terminal.text().split_whitespace().collect();
    let saves = format!("which saves execute_command(touch made) in {file}").replace(' ', "");
    assert!(shown.contains(&saves), "{}", terminal.text());
    terminal.press("y\ry\ra\r");
    terminal.until_text("several lines at once");
    assert!(!rig.project().join("made").exists());
    terminal.answer_plain("actually no");
    terminal.until_text("So be it.");
    assert_refused(&rig, "actually no");
}

#[test]
fn ask_flag_takes_a_sentence_as_a_reason_but_no_pasted_lines() {
    let rig = rig_with_command();
    let answers = ["y\ny\na", "actually no"];
    let Some((ran, shown)) = run_at_terminal(&rig, &["run", "--ask", "go"], "", &answers) else {
        return;
    };
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    let file = rig.home().join("config.toml").display().to_string();
    assert!(
        shown.contains(&format!(
            "a = always (saves execute_command(touch made) in {file})"
        )),
        "{shown}"
    );
    assert!(
        shown.contains("Several lines at once answer no question."),
        "{shown}"
    );
    assert_refused(&rig, "actually no");
}
