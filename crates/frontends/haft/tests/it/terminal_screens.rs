//! Whole screens of the terminal interface at different widths, and the keys that lead to them.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::terminal::{Terminal, slow_reply, write_a};

const ESC: &str = "\u{1b}";
const SHIFT_TAB: &str = "\u{1b}[Z";
const UP: &str = "\u{1b}[A";
const CONTROL_O: &str = "\u{f}";

fn rig_in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

fn command_call(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

fn quit(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

/// Returns the screen below the last start-screen row, without values that change between runs.
fn screen_rows(rig: &Rig, terminal: &Terminal) -> String {
    let text = terminal.text();
    let rows = text.lines().map(str::trim_end);
    let shown: Vec<_> = rows
        .skip_while(|row| !row.starts_with("> go"))
        .map(|row| match row.split_once(" · ") {
            Some((mode @ ("ask" | "auto"), _)) => mode.to_owned(),
            Some(_) | None => rig.mask_text(row),
        })
        .collect();
    shown.join("\n").trim_end().to_owned()
}

/// Starts a turn whose call needs an approval, and returns the screen with the question.
fn question_screen(call: Reply, size: (u16, u16)) -> String {
    let rig = rig_in_order([call, Reply::text("So be it.")]);
    rig.write("login.py", "def login(user):\n    return None\n");
    let mut terminal = Terminal::start(&rig, &["--", "go"], size);
    terminal.until_armed();
    let shown = screen_rows(&rig, &terminal);
    terminal.press("n");
    terminal.until_text("So be it.");
    quit(terminal);
    shown
}

fn edit_login() -> Reply {
    Reply::call(
        "write_to_file",
        json!({"path": "new.py", "content": "import os\n\nprint(os.name)\n"}),
    )
}

#[test]
fn question_about_a_command_says_each_thing_once() {
    insta::assert_snapshot!(question_screen(command_call("pytest -q"), (80, 24)), @r"
    > go

    ? Run pytest -q?

    Not covered by any rule
     y yes, this once
     s yes, for this session
     a always: execute_command(pytest -q)
     r always, with a custom rule: execute_command(pytest:*)
     n no
     w no, and tell the model why
     e edit it first
    press a key, or ↑ ↓ and Enter
    >
    ask
    ");
    insta::assert_snapshot!(question_screen(command_call("pytest -q"), (40, 16)), @r"
    > go

    ? Run pytest -q?

    Not covered by any rule
     y yes, this once
     s yes, for this session
     a always: execute_command(pytest -q)
     r always, with a custom rule:
       execute_command(pytest:*)
     n no
     w no, and tell the model why
     e edit it first
    press a key, or ↑ ↓ and Enter
    >
    ask
    ");
    let long = "cargo test --workspace --all-features -- --nocapture login && cargo clippy";
    insta::assert_snapshot!(question_screen(command_call(long), (80, 24)), @r"
    > go

    “always” would allow:
      execute_command(cargo test --workspace --all-features -- --nocapture login)
      execute_command(cargo clippy)
    ? Run this command?
      cargo test --workspace --all-features -- --nocapture login && cargo clippy

    Not covered by any rule
     y yes, this once
     s yes, for this session
     a always, with the 2 rules above
     r always, with a custom rule
     n no
     w no, and tell the model why
     e edit it first
    press a key, or ↑ ↓ and Enter
    >
    ask
    ");
}

#[test]
fn question_about_an_edit_has_no_diff_headers() {
    for columns in [80, 120, 200] {
        let shown = question_screen(edit_login(), (columns, 30));
        assert!(
            !shown.contains("+++")
                && !shown.contains("@@")
                && !shown.contains("write_to_file changes"),
            "{shown}"
        );
    }
    insta::assert_snapshot!(question_screen(edit_login(), (80, 24)), @r"
    > go

    ? Write new.py (+3 −0)?
      1 +import os
      2 +
      3 +print(os.name)

    Not covered by any rule
     y yes, this once
     s yes, and all edits of this session
     a always: write_to_file(new.py)
     r always, with a custom rule
     n no
     w no, and tell the model why
     e edit it first
    press a key, or ↑ ↓ and Enter
    >
    ask
    ");
}

const TABLE: &str = "| Command | What it does |\n| --- | --- |\n| `haft run` | Runs one task without \
     asking, prints the answer, and exits with a code that says how the task ended. |\n| `haft` | \
     Starts a session. |\n\n- [x] read\n- [ ] write\n";

fn reply_screen(text: &str, size: (u16, u16)) -> String {
    let rig = rig_in_order([Reply::text(text)]);
    let terminal = Terminal::start(&rig, &["--", "go"], size);
    terminal.until_text("write");
    terminal.until_idle();
    let shown = screen_rows(&rig, &terminal);
    quit(terminal);
    shown
}

#[test]
fn table_cells_wrap_and_task_lists_have_boxes() {
    insta::assert_snapshot!(reply_screen(TABLE, (80, 24)), @r"
    > go

    Command  What it does
    ────────────────────────────────────────────────────────────────────────────────
    haft run  Runs one task without asking, prints the answer, and exits with a code
              that says how the task ended.

    haft  Starts a session.

    ☑ read
    ☐ write

    >
    ask
    ");
    insta::assert_snapshot!(reply_screen(TABLE, (40, 24)), @r"
    > go

    Command  What it does
    ────────────────────────────────────────
    haft run  Runs one task without asking,
              prints the answer, and exits
              with a code that says how the
              task ended.

    haft  Starts a session.

    ☑ read
    ☐ write

    >
    ask
    ");
    let wide = reply_screen(TABLE, (200, 24));
    assert!(
        wide.contains("`haft run`  Runs one task") || wide.contains("haft run  Runs one task"),
        "{wide}"
    );
    let narrow = reply_screen(&TABLE.replace("What it does", "What"), (20, 40));
    assert!(narrow.contains("What: Runs one"), "records: {narrow}");
}

#[test]
fn long_address_stays_whole_and_is_a_link() {
    let address = format!(
        "https://example.com/{}?token=0123456789abcdef",
        "path/".repeat(20)
    );
    let text = format!("Look at {address}, then write.");
    for columns in [40, 80, 120] {
        let rig = rig_in_order([Reply::text(&text)]);
        let terminal = Terminal::start_with(
            &rig,
            &["--", "go"],
            (columns, 24),
            &[("TERM_PROGRAM", "WezTerm")],
        );
        terminal.until_text("then write.");
        terminal.until_idle();
        // Rows that the terminal itself has broken are one line.
        assert!(terminal.text().contains(&address), "{}", terminal.text());
        assert!(
            terminal
                .written()
                .contains(&format!("\u{1b}]8;;{address}\u{1b}\\")),
            "{columns}"
        );
        quit(terminal);
    }
    let rig = rig_in_order([Reply::text(&text)]);
    let terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_text("then write.");
    terminal.until_idle();
    assert!(terminal.text().contains(&address), "{}", terminal.text());
    assert!(
        !terminal.written().contains("\u{1b}]8;"),
        "the terminal may not support links"
    );
    quit(terminal);
}

#[test]
fn resumed_conversation_shows_calls_window_and_cost() {
    let rig = rig_in_order([
        Reply::call("read_file", json!({"path": "login.py"})).with_text("I look first."),
        edit_login(),
        command_call("false"),
        Reply::text("Done."),
        Reply::text("Later."),
    ]);
    rig.write("login.py", "def login(user):\n    return None\n");
    let terminal = Terminal::start(&rig, &["--permission-mode", "auto", "--", "go"], (80, 40));
    terminal.until_text("Done.");
    terminal.until_idle();
    quit(terminal);
    let terminal = Terminal::start(&rig, &["-c"], (80, 40));
    terminal.until_text("Done.");
    terminal.until("window and cost", |screen| {
        let text = screen.contents();
        let status = text.lines().last().unwrap_or_default();
        status.contains('%') && status.contains('$')
    });
    insta::assert_snapshot!(screen_rows(&rig, &terminal), @r"
    > go

    I look first.

    ✓ Read login.py  2 lines
    ✓ Write new.py  +3 −0
    ✗ Run false
      Exit code 1. No output.

    Done.

    > Describe a task; ? for keys
    ask
    ");
    quit(terminal);
}

#[test]
fn esc_sends_the_queued_message_at_once() {
    let rig = rig_in_order([
        slow_reply(&"many words and more of them ".repeat(400)),
        Reply::text("As you like."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_text("many words");
    terminal.press("something else\r");
    terminal.until_text("next: something else");
    terminal.until_text("Esc to interrupt and send");
    terminal.press(ESC);
    terminal.until_text("> something else");
    terminal.until_text("As you like.");
    terminal.until_idle();
    let asked = rig.server.generation_requests();
    assert!(
        asked[1]
            .decode()
            .unwrap()
            .last_message_contains("something else")
    );
    quit(terminal);
}

/// Returns the rows below the input line.
fn rows_below_input(terminal: &Terminal, input: &str) -> String {
    let text = terminal.text();
    let rows: Vec<_> = text.lines().map(str::trim_end).collect();
    let at = rows.iter().rposition(|row| *row == input).unwrap();
    let mut below: Vec<_> = rows[at..].to_vec();
    below.pop();
    below.join("\n")
}

#[test]
fn command_menu_is_aligned_and_ordered_by_use() {
    let rig = rig_in_order([]);
    let mut terminal = Terminal::start(&rig, &[], (80, 30));
    terminal.until_text("> ");
    terminal.press("/");
    terminal.until_text("1 of ");
    insta::assert_snapshot!(rows_below_input(&terminal, "> /"), @r"
    > /
    ▸ /model          switch to another model
      /mode           choose the permission mode: /mode, /mode plan [prompt]
      /resume         continue another conversation
      /clear          start a new conversation
      /context        show what fills the window; /context edit
      /cost           show tokens and cost so far
      /diff           show the file changes of this conversation
      /undo           undo the last file changes
      1 of 29
    ");
    terminal.press("cost\r");
    terminal.until_text("No request sent yet.");
    terminal.press("/");
    terminal.until_text("▸ /cost");
    terminal.press("\u{15}");
    quit(terminal);
}

#[test]
fn key_help_has_columns() {
    for (columns, beside) in [(40, 1), (80, 2), (120, 3)] {
        let rig = rig_in_order([]);
        let mut terminal = Terminal::start(&rig, &[], (columns, 30));
        terminal.until_text("> ");
        terminal.press("?");
        terminal.until_text("Shift-Tab");
        let text = terminal.text();
        let row = text.lines().find(|row| row.contains("  Enter ")).unwrap();
        let keys = [
            "Enter",
            "Alt-Enter",
            "Esc",
            "Shift-Tab",
            "Ctrl-C",
            "Ctrl-D",
            "Up, Down",
            "Ctrl-R",
            "Tab",
            "Ctrl-O",
            "Ctrl-T",
            "Ctrl-G",
            "Ctrl-V",
        ];
        let is_shown = |key: &&&str| row.contains(&format!("  {key}  "));
        let shown = keys.iter().filter(is_shown).count();
        assert_eq!(shown, beside, "{text}");
        terminal.press("?");
        terminal.until("no keys", |screen| {
            !screen.contents().contains("Shift-Tab  ")
        });
        quit(terminal);
    }
}

#[test]
fn mode_list_opens_on_the_current_mode_and_shift_tab_skips_auto() {
    let rig = rig_in_order([]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    for mode in ["accept-edits:", "plan:", "ask:"] {
        terminal.press(SHIFT_TAB);
        terminal.until_text(mode);
    }
    terminal.press("/mode\r");
    terminal.until_text("▸ ask (current)");
    terminal.press(ESC);
    terminal.until("no list", |screen| !screen.contents().contains("(current)"));
    quit(terminal);
}

#[test]
fn shift_tab_at_an_edit_asks_to_allow_all_edits() {
    let rig = rig_in_order([write_a(), Reply::text("Done.")]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_armed();
    terminal.press(SHIFT_TAB);
    terminal.until_text("Allow all edits until the session ends?");
    assert!(!rig.project().join("a.txt").exists());
    terminal.press("\r");
    terminal.until_text("Done.");
    terminal.until_idle();
    assert!(rig.project().join("a.txt").exists());
    assert!(terminal.text().contains("accept-edits"));
    quit(terminal);
}

#[test]
fn folder_mention_is_offered_and_sent_with_enter() {
    let rig = rig_in_order([Reply::text("I see.")]);
    rig.write("src/login.py", "pass\n");
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("look at @src");
    terminal.until_text("▸ @src/");
    terminal.press("\r");
    terminal.until_text("I see.");
    terminal.until_idle();
    assert!(
        terminal.text().contains("> look at @src\n"),
        "{}",
        terminal.text()
    );
    quit(terminal);
}

#[test]
fn recalled_paste_stays_folded() {
    let rig = rig_in_order([Reply::text("I see."), Reply::text("Again.")]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press(&format!("\u{1b}[200~{}\u{1b}[201~", "line\r".repeat(500)));
    terminal.until_text("[pasted 500 lines]");
    terminal.press("\r");
    terminal.until_text("I see.");
    terminal.until_idle();
    terminal.press(UP);
    terminal.until_text("> [pasted 500 lines]");
    terminal.press("\r");
    terminal.until_text("Again.");
    let asked = rig.server.generation_requests();
    assert!(
        asked[1]
            .decode()
            .unwrap()
            .last_message_contains("line\nline\nline")
    );
    quit(terminal);
}

#[test]
fn result_opens_in_the_viewer_and_prints_nothing() {
    let rig = rig_in_order([
        Reply::call("read_file", json!({"path": "long.txt"})),
        Reply::text("Read."),
    ]);
    let lines: String = (1..=1_500)
        .map(|number| format!("row {number}\n"))
        .collect();
    rig.write("long.txt", lines);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_text("Read long.txt  1,500 lines");
    terminal.until_text("Read.");
    terminal.until_idle();
    terminal.press(CONTROL_O);
    terminal.until_text("Esc to close");
    terminal.press(ESC);
    terminal.until("the input again", |screen| {
        !screen.contents().contains("Esc to close")
    });
    assert!(
        !terminal.written().contains("row 900"),
        "nothing was printed into the scrollback"
    );
    quit(terminal);
}

#[test]
fn first_request_is_retried_as_configured() {
    let rig = rig_in_order([Reply::error(500, "down").times(4), Reply::text("Up again.")]);
    let terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_text("Up again.");
    terminal.until_idle();
    assert_eq!(rig.server.generation_requests().len(), 5);
    assert!(
        terminal
            .shown_screens()
            .iter()
            .any(|screen| screen.contains(" of 5 in ")),
        "{}",
        terminal.text()
    );
    quit(terminal);
}

#[test]
fn refusal_shows_the_users_words_and_nothing_for_the_model() {
    let rig = rig_in_order([command_call("make"), Reply::text("So be it.")]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_armed();
    terminal.press("w");
    terminal.until_text("Enter to refuse");
    terminal.press("use make test\r");
    terminal.until_text("So be it.");
    terminal.until_idle();
    let shown = terminal.text();
    assert!(
        shown.contains("Not allowed: use make test.") && !shown.contains("Find another way"),
        "{shown}"
    );
    assert!(
        rig.server.generation_requests()[1]
            .decode()
            .unwrap()
            .last_message_contains("They said: use make test. Find another way")
    );
    quit(terminal);
}

#[test]
fn rule_for_every_command_is_saved_after_a_warning() {
    let rig = rig_in_order([command_call("touch b.txt"), Reply::text("Done.")]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_armed();
    terminal.press("r");
    terminal.until_text("> execute_command(touch:*)");
    terminal.press("\u{15}execute_command(*)\r");
    terminal.until_text("This rule allows every command.");
    assert!(!rig.project().join("b.txt").exists());
    terminal.press("\r");
    terminal.until_text("Done.");
    terminal.until_idle();
    assert!(rig.project().join("b.txt").exists());
    quit(terminal);
}

#[test]
fn plain_interface_reads_an_approved_diff_once() {
    let rig = rig_in_order([write_a(), Reply::text("Done.")]);
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (120, 40));
    terminal.until_text("approval: Write a.txt (+2 −0)?");
    terminal.until_text("answer:");
    terminal.answer_plain("y");
    terminal.until_text("Done.");
    let shown = terminal.text();
    assert_eq!(shown.matches("+one").count(), 1, "{shown}");
    assert!(shown.contains("done: Write a.txt"), "{shown}");
    terminal.press("/quit\r");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn animation_stops_without_colors() {
    const SIGNS: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];
    for (environment, moves) in [(&[][..], true), (&[("NO_COLOR", "1")][..], false)] {
        let rig = rig_in_order([slow_reply(&"many words and more ".repeat(20))]);
        let terminal = Terminal::start_with(&rig, &["--", "go"], (80, 24), environment);
        terminal.until_text("Working");
        terminal.until_idle();
        let signs: std::collections::BTreeSet<_> = terminal
            .shown_screens()
            .iter()
            .flat_map(|screen| {
                screen
                    .chars()
                    .filter(|c| SIGNS.contains(c))
                    .collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(signs.len() > 1, moves, "{signs:?}");
        quit(terminal);
    }
}
