//! Approvals by keys: what one key allows, what Enter confirms, and what is only text.

use super::*;

/// Opens an approval of `cargo test` and arms it.
fn armed_question() -> TestTerminal {
    let setup = Setup {
        model: "mock/model".into(),
        rules_file: "/home/me/config.toml".into(),
        ..Setup::default()
    };
    let (app, _) = App::new(setup, 80, 24);
    let mut terminal = TestTerminal {
        app,
        printed: Vec::new(),
        wanted: Vec::new(),
        kept: Vec::new(),
    };
    terminal.say("go");
    terminal.event(call(
        "5",
        "execute_command",
        json!({"command": "cargo test"}),
    ));
    terminal.update(approval("cargo test"));
    terminal.update(AppInput::Armed);
    terminal.take_effects();
    terminal
}

/// Returns keys that were read at once.
fn key_burst(text: &str) -> AppInput {
    let key = |c| match c {
        '\r' => KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
        c => KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE),
    };
    AppInput::Keys(text.chars().map(key).collect())
}

fn refusal(reason: &str) -> Vec<Effect> {
    vec![Effect::Answer(ApprovalReply::No {
        reason: reason.into(),
    })]
}

fn without_arming(effects: Vec<Effect>) -> Vec<Effect> {
    effects
        .into_iter()
        .filter(|effect| *effect != Effect::Arm)
        .collect()
}

#[test]
fn always_is_confirmed_with_the_rule_and_its_file_shown() {
    let mut terminal = armed_question();
    terminal.write("a");
    assert_eq!(terminal.take_effects(), []);
    let shown = terminal.live_region();
    assert!(
        shown.contains("Always allow this?\n  execute_command(cargo test:*)\n"),
        "{shown}"
    );
    assert!(shown.contains("saved in /home/me/config.toml"), "{shown}");
    terminal.key(KeyCode::Esc);
    assert_eq!(terminal.take_effects(), []);
    assert!(
        terminal.live_region().contains(" y yes, this once"),
        "{}",
        terminal.live_region()
    );
    terminal.write("a");
    terminal.key(KeyCode::Enter);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Answer(ApprovalReply::Always)]
    );
    let said = "  always allowed: execute_command(cargo test:*) (saved in /home/me/config.toml)";
    assert!(
        terminal.full_screen().contains(said),
        "{}",
        terminal.full_screen()
    );
}

#[test]
fn session_is_confirmed_with_the_rule_shown() {
    let mut terminal = armed_question();
    terminal.write("s");
    let shown = terminal.live_region();
    assert!(
        shown.contains("execute_command(cargo test:*)") && shown.contains("nothing is saved"),
        "{shown}"
    );
    assert_eq!(terminal.take_effects(), []);
    terminal.key(KeyCode::Enter);
    assert_eq!(
        terminal.take_effects(),
        [Effect::Answer(ApprovalReply::Session)]
    );
}

#[test]
fn grant_chosen_with_the_arrows_is_confirmed() {
    for steps in 2..=3 {
        let mut terminal = armed_question();
        (0..steps).for_each(|_| terminal.key(KeyCode::Down));
        terminal.key(KeyCode::Enter);
        assert_eq!(terminal.take_effects(), [], "{}", terminal.live_region());
        terminal.key(KeyCode::Enter);
        let given = if steps == 2 {
            ApprovalReply::Session
        } else {
            ApprovalReply::Always
        };
        assert_eq!(terminal.take_effects(), [Effect::Answer(given)]);
    }
}

#[test]
fn all_edits_are_confirmed_before_the_mode_changes() {
    let mut terminal = armed_question();
    terminal.update(AppInput::Withdrawn);
    let AppInput::Ask(mut edit) = approval("--- a\n+++ a\n@@ -1 +1 @@\n-x\n+y\n") else {
        panic!()
    };
    edit.tool = "write_to_file".into();
    edit.remember = vec!["write_to_file(a)".into()];
    terminal.update(AppInput::Ask(edit));
    terminal.update(AppInput::Armed);
    terminal.take_effects();
    terminal.write("s");
    assert_eq!(terminal.take_effects(), []);
    assert!(
        terminal
            .live_region()
            .contains("accept-edits: project files"),
        "{}",
        terminal.live_region()
    );
    terminal.key(KeyCode::Enter);
    let mode = Effect::Do(Operation::Mode(PermissionMode::AcceptEdits));
    assert_eq!(
        terminal.take_effects(),
        [mode, Effect::Answer(ApprovalReply::Once)]
    );
}

#[test]
fn sentence_that_begins_with_the_key_of_a_choice_refuses() {
    for sentence in [
        "actually no",
        "sure, but use make",
        "really?",
        "r u sure",
        "exactly what is that",
        "wait",
    ] {
        let mut terminal = armed_question();
        terminal.say(sentence);
        let given = without_arming(terminal.take_effects());
        // `w` itself opens the reason.
        let reason = sentence.strip_prefix('w').unwrap_or(sentence);
        assert_eq!(
            given,
            refusal(reason),
            "{sentence}: {}",
            terminal.full_screen()
        );
    }
}

#[test]
fn letter_of_no_choice_begins_a_reason() {
    for sentence in ["don't", "Yes please", "1", "不行", "?", "let me think"] {
        let mut terminal = armed_question();
        terminal.say(sentence);
        assert_eq!(
            without_arming(terminal.take_effects()),
            refusal(sentence),
            "{sentence}"
        );
    }
    let mut terminal = armed_question();
    terminal.write(" ");
    assert!(
        terminal.live_region().contains(" y yes, this once"),
        "{}",
        terminal.live_region()
    );
    terminal.write("don");
    terminal.key(KeyCode::Esc);
    assert!(
        terminal.live_region().contains(" y yes, this once"),
        "{}",
        terminal.live_region()
    );
    terminal.write("y");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Answer(ApprovalReply::Once)]
    );
}

#[test]
fn letter_of_a_choice_that_is_not_offered_begins_a_reason() {
    let mut terminal = armed_question();
    terminal.update(AppInput::Withdrawn);
    let AppInput::Ask(mut asked) = approval("cargo test") else {
        panic!()
    };
    asked.remember = Vec::new();
    terminal.update(AppInput::Ask(asked));
    terminal.update(AppInput::Armed);
    terminal.take_effects();
    terminal.say("actually no");
    assert_eq!(
        without_arming(terminal.take_effects()),
        refusal("actually no")
    );
}

#[test]
fn keys_read_at_once_are_text() {
    for (text, given) in [
        ("actually no\r", refusal("actually no")),
        ("yes, but in out/\r", refusal("yes, but in out/")),
        ("no\r", refusal("")),
        ("n\r", refusal("")),
        ("sure\nthing\r", refusal("sure\nthing")),
        // These are in the input, to be sent or taken back.
        ("y\r", Vec::new()),
        ("yes\r", Vec::new()),
        ("a\r", Vec::new()),
        ("s\r", Vec::new()),
        ("r\r", Vec::new()),
        ("e\r", Vec::new()),
        ("yy", Vec::new()),
        ("\ry", Vec::new()),
        ("\r\r", Vec::new()),
    ] {
        let mut terminal = armed_question();
        terminal.update(key_burst(&text.replace('\n', "\r")));
        assert_eq!(
            without_arming(terminal.take_effects()),
            given,
            "{text:?}: {}",
            terminal.live_region()
        );
    }
    let mut terminal = armed_question();
    terminal.write("a");
    terminal.update(key_burst("\r\r"));
    assert_eq!(terminal.take_effects(), [], "a confirmation is one Enter");
    terminal.update(key_burst("lways wrong\r"));
    assert_eq!(terminal.take_effects(), refusal("always wrong"));
    let down = KeyEvent::new(KeyCode::Down, KeyModifiers::NONE);
    let mut terminal = armed_question();
    terminal.update(AppInput::Keys(vec![
        down,
        KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE),
    ]));
    assert_eq!(terminal.take_effects(), []);
    assert!(
        terminal.live_region().contains("▸y yes"),
        "{}",
        terminal.live_region()
    );
}

#[test]
fn paste_is_a_reason() {
    let mut terminal = armed_question();
    terminal.update(AppInput::Paste("y".into()));
    assert_eq!(without_arming(terminal.take_effects()), []);
    assert!(
        terminal.live_region().contains("> y\n")
            && terminal.live_region().contains("Enter to refuse"),
        "{}",
        terminal.live_region()
    );
    let long = "many words\n".repeat(100);
    let mut terminal = armed_question();
    terminal.update(AppInput::Paste(long.clone()));
    terminal.key(KeyCode::Enter);
    assert_eq!(
        without_arming(terminal.take_effects()),
        refusal(long.trim())
    );
}

#[test]
fn rule_and_command_are_edited_after_their_key() {
    let mut terminal = armed_question();
    terminal.write("r");
    assert!(
        terminal
            .live_region()
            .contains("saved in /home/me/config.toml"),
        "{}",
        terminal.live_region()
    );
    terminal.key(KeyCode::Backspace);
    terminal.say(")");
    assert_eq!(
        without_arming(terminal.take_effects()),
        [Effect::Answer(ApprovalReply::Always)]
    );
    for edit in [" --lib", "s"] {
        let mut terminal = armed_question();
        terminal.write("e");
        // A letter edits only after a pause.
        terminal.update(AppInput::Armed);
        terminal.say(edit);
        let arguments = json!({"command": format!("cargo test{edit}")});
        assert_eq!(
            without_arming(terminal.take_effects()),
            [Effect::Answer(ApprovalReply::Changed { arguments })]
        );
    }
}

#[test]
fn rule_for_another_tool_is_not_kept() {
    let mut terminal = armed_question();
    terminal.write("r");
    terminal.control('u');
    terminal.say("execute_commandeally");
    assert_eq!(without_arming(terminal.take_effects()), []);
    assert!(
        terminal
            .full_screen()
            .contains("none of these rules is for execute_command"),
        "{}",
        terminal.full_screen()
    );
}

#[test]
fn edit_that_is_not_saved_leaves_the_question_open() {
    let mut terminal = armed_question();
    terminal.update(AppInput::CallNotEdited("Nothing was changed.".into()));
    assert_eq!(terminal.take_effects(), [Effect::Arm]);
    assert!(
        terminal.live_region().contains("Not covered by any rule")
            && terminal.full_screen().contains("Nothing was changed.")
    );
    terminal.write("y");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Arm],
        "a key that was meant for the editor"
    );
    terminal.update(AppInput::Armed);
    terminal.write("y");
    assert_eq!(
        terminal.take_effects(),
        [Effect::Answer(ApprovalReply::Once)]
    );
}

#[test]
fn edited_command_is_shown_as_it_ran() {
    let mut terminal = armed_question();
    terminal.write("e");
    terminal.say(" --lib");
    assert!(
        terminal.live_region().contains("… Run cargo test --lib"),
        "{}",
        terminal.live_region()
    );
    let text = format!(
        "Exit code 0.\n--- stdout ---\nok{}{{}}",
        haft_agent::CHANGED_ARGUMENTS_NOTE
    );
    terminal.event(tool_result(
        "5",
        "execute_command",
        ToolStatus::Success,
        &text,
    ));
    let shown = terminal.full_screen();
    assert!(
        shown.contains("✓ Run cargo test --lib\n  ok\n") && !shown.contains("than yours"),
        "{shown}"
    );
}

#[test]
fn edited_command_shows_its_control_characters() {
    let mut terminal = armed_question();
    terminal.update(AppInput::Withdrawn);
    terminal.update(approval("rm -rf ~\r\u{1b}[2Kls"));
    terminal.update(AppInput::Armed);
    terminal.write("e");
    assert!(
        terminal.live_region().contains("> rm -rf ~␍␛[2Kls\n"),
        "{}",
        terminal.live_region()
    );
}

#[test]
fn confirmation_shows_the_rule_in_a_small_terminal() {
    for (columns, rows) in [(20, 8), (24, 6), (40, 12)] {
        let mut terminal = armed_question();
        terminal.update(AppInput::Size { columns, rows });
        terminal.write("a");
        let shown: String = terminal.live_region().split_whitespace().collect();
        assert!(
            shown.contains("execute_command(cargotest:*)"),
            "{columns}x{rows}: {}",
            terminal.live_region()
        );
        assert!(
            shown.contains("Enter"),
            "{columns}x{rows}: {}",
            terminal.live_region()
        );
    }
}

#[test]
fn letters_are_typed_in_vim_normal_mode() {
    let setup = Setup {
        editing: Editing::Vim,
        ..Setup::default()
    };
    let (app, _) = App::new(setup, 80, 24);
    let mut terminal = TestTerminal {
        app,
        printed: Vec::new(),
        wanted: Vec::new(),
        kept: Vec::new(),
    };
    terminal.key(KeyCode::Esc);
    terminal.update(approval("cargo test"));
    terminal.update(AppInput::Armed);
    terminal.take_effects();
    terminal.say("don't");
    assert_eq!(without_arming(terminal.take_effects()), refusal("don't"));
}
