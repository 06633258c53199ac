//! Choices at a real terminal: conversations that are open elsewhere, the menu of commands, calls
//! that are changed before they run.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::terminal::{Terminal, rig};

const ESC: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";
const UP: &str = "\u{1b}[A";

fn rig_in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

fn quit(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

/// A conversation that is open in a terminal.
fn rig_with_open_conversation(replies: &[&str]) -> (Rig, Terminal) {
    let rig = rig_in_order(replies.iter().map(|text| Reply::text(*text)));
    assert_eq!(rig.task(&["begin"]).code(), 0);
    let first = Terminal::start(&rig, &["-c"], (80, 24));
    first.until_text("Begun.");
    (rig, first)
}

#[test]
fn open_conversation_is_continued_in_a_copy() {
    let (rig, first) = rig_with_open_conversation(&["Begun.", "In the copy."]);
    let id = rig.run(&["conversations", "list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for arguments in [&["-c", "go on"][..], &["-r", &id, "go on"]] {
        let mut second = Terminal::start(&rig, arguments, (100, 24));
        second.until_text("This conversation is open in another haft");
        let shown = second.text();
        assert!(
            shown.contains("process ") && shown.contains("just now"),
            "{shown}"
        );
        assert_eq!(
            rig.server.generation_requests().len(),
            if arguments[0] == "-c" { 1 } else { 2 },
            "nothing was sent"
        );
        second.press("\r");
        second.until_text("Begun.");
        second.until("the prompt, to be sent", |screen| {
            screen.contents().contains("\n> go on")
        });
        if arguments[0] == "-c" {
            second.press("\r");
            second.until_text("In the copy.");
            second.until_idle();
        } else {
            second.press("\u{3}");
        }
        quit(second);
    }
    quit(first);
    let all = rig.run(&["conversations", "list", "--json"]).json();
    assert_eq!(all.as_array().unwrap().len(), 3);
}

#[test]
fn open_conversation_is_awaited_or_replaced() {
    let (rig, first) = rig_with_open_conversation(&["Begun.", "Mine now.", "Anew."]);
    let mut second = Terminal::start(&rig, &["-c"], (100, 24));
    let mut third = Terminal::start(&rig, &["-c"], (60, 20));
    second.until_text("continue in a copy");
    second.press(DOWN);
    second.until_text("▸ wait");
    second.press("\r");
    second.until_text("Waiting until the conversation is closed");
    third.until_text("continue in a copy");
    third.press(UP);
    third.press("new");
    third.until_text("▸ start a new conversation");
    third.press("\r");
    third.until_text("New conversation: it starts with your next message.");
    quit(first);
    second.until_text("Begun.");
    second.press("go on\r");
    second.until_text("Mine now.");
    second.until_idle();
    third.press("hi\r");
    third.until_text("Anew.");
    quit(third);
    quit(second);
}

#[test]
fn open_conversation_wait_ends_with_esc() {
    let (rig, first) = rig_with_open_conversation(&["Begun.", "Anew."]);
    let mut second = Terminal::start(&rig, &["-c"], (100, 24));
    second.until_text("continue in a copy");
    second.press(&format!("{DOWN}\r"));
    second.until_text("Waiting until the conversation is closed");
    second.press(ESC);
    second.until("no wait", |screen| {
        !screen.contents().contains("Waiting until")
    });
    second.press("hi\r");
    second.until_text("Anew.");
    quit(second);
    quit(first);
}

#[test]
fn open_conversation_fails_a_headless_run_with_its_process() {
    let (rig, first) = rig_with_open_conversation(&["Begun.", "In the copy."]);
    let refused = rig.run(&["run", "-c", "go on"]);
    let said = refused.stderr();
    assert!(
        refused.code() != 0 && said.contains("process ") && said.contains("`--fork-session`"),
        "{said}"
    );
    assert_eq!(rig.run(&["run", "-c", "--fork-session", "go on"]).code(), 0);
    quit(first);
}

#[test]
fn command_menu_scrolls_to_its_end() {
    let rig = rig([]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("/");
    terminal.until_text("1 of ");
    let first = terminal
        .text()
        .lines()
        .find(|line| line.starts_with('▸'))
        .unwrap()
        .to_owned();
    terminal.press(&DOWN.repeat(9));
    terminal.until_text("10 of ");
    assert_eq!(
        terminal
            .text()
            .lines()
            .filter(|line| line.starts_with('▸'))
            .count(),
        1,
        "{}",
        terminal.text()
    );
    terminal.press(&UP.repeat(10));
    terminal.until("the last", |screen| {
        let text = screen.contents();
        let place = text
            .lines()
            .find(|line| line.contains(" of "))
            .unwrap_or_default();
        let numbers: Vec<_> = place
            .split_whitespace()
            .filter_map(|word| word.parse::<u32>().ok())
            .collect();
        numbers.len() == 2 && numbers[0] == numbers[1]
    });
    terminal.press("\u{1b}[5~\u{1b}[6~");
    terminal.press(DOWN);
    terminal.until("the first again", |screen| {
        screen.contents().contains(&first)
    });
    terminal.press("cos");
    terminal.until_text("▸ /cost");
    terminal.press("\r");
    terminal.until_text("No request sent yet.");
    quit(terminal);
}

#[test]
fn approval_with_many_rules_keeps_the_command_visible() {
    let line = (1..=30)
        .map(|number| format!("npm run step{number}"))
        .collect::<Vec<_>>()
        .join(" && ");
    for (columns, rows) in [(80, 24), (120, 30)] {
        let call = Reply::call(
            "execute_command",
            json!({"command": line, "requires_approval": false}),
        );
        let rig = rig([call, Reply::text("As you like.")]);
        let mut terminal = Terminal::start(&rig, &["--", "go"], (columns, rows));
        terminal.until_armed();
        let shown = terminal.text();
        assert!(
            shown.contains("npm run step1 &&") && shown.contains("npm run step30"),
            "{shown}"
        );
        assert!(!shown.contains("needs approval:\n\n"), "{shown}");
        terminal.press("n");
        terminal.until_text("As you like.");
        quit(terminal);
    }
}

#[test]
fn approval_lists_no_parts_if_all_are_allowed() {
    let call = Reply::call(
        "execute_command",
        json!({"command": "true; true", "requires_approval": true}),
    );
    let rig = rig([call, Reply::text("As you like.")]);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "auto", "--", "go"], (80, 24));
    terminal.until_armed();
    assert!(
        !terminal.text().contains("not allowed yet"),
        "{}",
        terminal.text()
    );
    terminal.press("n");
    terminal.until_text("As you like.");
    quit(terminal);
}

#[test]
fn edit_that_does_not_apply_fails_without_approval() {
    let calls = [
        (
            "edit_file",
            json!({"path": "a.txt", "old_text": "four", "new_text": "x"}),
        ),
        (
            "replace_in_file",
            json!({"path": "a.txt", "diff": "<<<<<<< SEARCH\nfour\n=======\nx\n>>>>>>> REPLACE\n"}),
        ),
        (
            "multi_edit",
            json!({"edits": [{"path": "gone.txt", "old_string": "four", "new_string": "x"}]}),
        ),
    ];
    for (tool, arguments) in calls {
        let path = if tool == "multi_edit" {
            "gone.txt"
        } else {
            "a.txt"
        };
        let rig = rig([
            Reply::call("read_file", json!({"path": "a.txt"})),
            Reply::call(tool, arguments),
            Reply::text("It does not fit."),
        ]);
        rig.write("a.txt", "one\ntwo\nthree\n");
        let terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
        terminal.until_text("It does not fit.");
        let shown = terminal.text();
        assert!(
            shown.contains(&format!("✗ Edit {path}"))
                && !terminal.written().contains("yes, this once"),
            "{shown}"
        );
        quit(terminal);
    }
}

#[test]
fn approval_edits_a_file_in_the_editor() {
    let calls: [(&str, Value); 4] = [
        (
            "write_to_file",
            json!({"path": "a.txt", "content": "one\n2\nthree\n"}),
        ),
        (
            "edit_file",
            json!({"path": "a.txt", "old_text": "two", "new_text": "2"}),
        ),
        (
            "replace_in_file",
            json!({"path": "a.txt", "diff": "<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n"}),
        ),
        (
            "multi_edit",
            json!({"edits": [{"path": "a.txt", "old_string": "two", "new_string": "3"}, {"path": "a.txt", "old_string": "3", "new_string": "2"}]}),
        ),
    ];
    for (tool, arguments) in calls {
        let rig = rig([
            Reply::call("read_file", json!({"path": "a.txt"})),
            Reply::call(tool, arguments),
            Reply::text("Written."),
        ]);
        rig.write("a.txt", "one\ntwo\nthree\n");
        let editor = "sed -i -e s/2/zwei/ -e s/one/eins/";
        let mut terminal =
            Terminal::start_with(&rig, &["--", "go"], (100, 30), &[("EDITOR", editor)]);
        terminal.until_armed();
        terminal.press("e");
        terminal.until_text("Written.");
        let written = std::fs::read_to_string(rig.project().join("a.txt")).unwrap();
        assert_eq!(
            written,
            "eins\nzwei\nthree\n",
            "{tool}: {}",
            terminal.text()
        );
        quit(terminal);
    }
}

#[test]
fn approval_edits_several_files_in_the_editor() {
    let edits = json!({"edits": [
        {"path": "a.txt", "old_string": "two", "new_string": "2"},
        {"path": "b.txt", "old_string": "", "new_string": "new 2\n"},
    ]});
    let patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Add File: b.txt\n+new 2\n*** Delete File: \
                 gone.txt\n*** End Patch\n";
    for (tool, arguments) in [
        ("multi_edit", edits),
        ("apply_patch", json!({ "patch": patch })),
    ] {
        let rig = rig([
            Reply::call("read_file", json!({"path": "a.txt"})),
            Reply::call(tool, arguments),
            Reply::text("Written."),
        ]);
        rig.write("a.txt", "one\ntwo\nthree\n");
        rig.write("gone.txt", "x\n");
        let editor = "sed -i -e s/2/zwei/ -e s/one/eins/";
        let mut terminal =
            Terminal::start_with(&rig, &["--", "go"], (100, 40), &[("EDITOR", editor)]);
        terminal.until_armed();
        terminal.press("e");
        terminal.until_text("Written.");
        let written = |name| std::fs::read_to_string(rig.project().join(name)).unwrap();
        assert_eq!(
            written("a.txt"),
            "eins\nzwei\nthree\n",
            "{tool}: {}",
            terminal.text()
        );
        assert_eq!(written("b.txt"), "new zwei\n", "{tool}");
        assert_eq!(
            rig.project().join("gone.txt").exists(),
            tool == "multi_edit"
        );
        quit(terminal);
    }
}

#[test]
fn editor_result_without_file_names_is_discarded() {
    let edits = json!({"edits": [
        {"path": "a.txt", "old_string": "", "new_string": "one\n"},
        {"path": "b.txt", "old_string": "", "new_string": "two\n"},
    ]});
    let rig = rig([Reply::call("multi_edit", edits), Reply::text("So be it.")]);
    let mut terminal = Terminal::start_with(
        &rig,
        &["--", "go"],
        (100, 40),
        &[("EDITOR", "sed -i /b.txt/d")],
    );
    terminal.until_armed();
    terminal.press("e");
    terminal.until_text("so the edit was discarded.");
    terminal.until_armed();
    terminal.press("n");
    terminal.until_text("So be it.");
    assert!(!rig.project().join("a.txt").exists());
    quit(terminal);
}

#[test]
fn approved_change_is_not_shown_again() {
    let rig = rig([
        Reply::call(
            "write_to_file",
            json!({"path": "a.txt", "content": "only once\n"}),
        ),
        Reply::text("Written."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 40));
    terminal.until_armed();
    terminal.press("y");
    terminal.until_text("Written.");
    let shown = terminal.text();
    assert_eq!(shown.matches("only once").count(), 1, "{shown}");
    assert!(shown.contains("✓ Write a.txt  +1 −0"), "{shown}");
    quit(terminal);
}

#[test]
fn editor_that_fails_or_changes_nothing_leaves_the_question_open() {
    // The second editor exits without saving, the third one saves unchanged text.
    for (editor, said) in [
        ("false", "false: exit code 1; nothing changed."),
        ("true", "still waiting for your answer"),
        ("touch", "still waiting for your answer"),
    ] {
        let write = json!({"path": "a.txt", "content": "x\n"});
        let rig = rig([
            Reply::call("write_to_file", write),
            Reply::text("So be it."),
        ]);
        let mut terminal =
            Terminal::start_with(&rig, &["--", "go"], (100, 30), &[("EDITOR", editor)]);
        terminal.until_armed();
        terminal.press("e");
        terminal.until_text(said);
        terminal.until_armed();
        assert!(
            !rig.project().join("a.txt").exists(),
            "{editor}: {}",
            terminal.text()
        );
        terminal.press("n");
        terminal.until_text("So be it.");
        assert!(!rig.project().join("a.txt").exists(), "{editor}");
        quit(terminal);
    }
}

#[test]
fn compact_reports_that_it_gained_nothing() {
    let rig = rig_in_order([Reply::text("Hello."), Reply::text("Again.")]);
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (100, 24));
    for answer in ["Hello.", "Again."] {
        terminal.until_text(answer);
        terminal.until_idle();
        terminal.press("/compact\r");
        terminal.until_text("The next request stays at ");
        terminal.until_idle();
        terminal.press("\u{c}hi\r");
    }
    quit(terminal);
}

#[test]
fn canceled_call_is_shown_in_place() {
    let waits = || {
        Reply::call(
            "execute_command",
            json!({"command": "touch begun; sleep 300", "requires_approval": false}),
        )
    };
    for both in [false, true] {
        let reply = if both {
            Reply {
                parts: Vec::new(),
                ..waits()
            }
        } else {
            waits().with_text("I will wait.")
        };
        let rig = rig_in_order([reply, Reply::text("As you like.")]);
        let mut terminal =
            Terminal::start(&rig, &["--permission-mode", "auto", "--", "go"], (80, 30));
        terminal.until("the command", |_| rig.project().join("begun").exists());
        terminal.press(ESC);
        terminal.until_idle();
        terminal.until_text("✗ ");
        terminal.press("never mind\r");
        terminal.until_text("As you like.");
        let shown = terminal.text();
        assert_eq!(shown.matches('✗').count(), 1, "{shown}");
        assert!(shown.find('✗') < shown.find("> never mind"), "{shown}");
        quit(terminal);
    }
}

#[test]
fn approval_fits_a_tiny_terminal() {
    for (columns, rows) in [(20, 8), (24, 6), (40, 12)] {
        let rig = rig([crate::terminal::write_a(), Reply::text("No.")]);
        let mut terminal = Terminal::start(&rig, &["--", "go"], (columns, rows));
        terminal.until_armed();
        let shown = terminal.text();
        // The reason is wider than the narrowest terminal.
        assert!(
            shown.replace('\n', " ").contains("Not covered by any rule") && shown.contains(" n no"),
            "{columns}×{rows}: {shown}"
        );
        terminal.press("n");
        // The answer may have scrolled away, because a tiny terminal shows little more than the
        // notice after it.
        terminal.until("the answer", |_| rig.server.generation_requests().len() > 1);
        terminal.until_idle();
        quit(terminal);
    }
}

#[test]
fn diff_command_omits_undone_changes() {
    let rig = rig_in_order([crate::terminal::write_a(), Reply::text("Written.")]);
    let mut terminal = Terminal::start(
        &rig,
        &["--permission-mode", "accept-edits", "--", "go"],
        (80, 40),
    );
    terminal.until_text("Written.");
    terminal.until_idle();
    terminal.press("/diff\r");
    terminal.until_text("\nadded a.txt\n");
    terminal.press("/undo\r");
    terminal.until_text("▸ 1 Undo");
    terminal.press("\r");
    terminal.until_text("Undid");
    terminal.press("\u{c}/diff\r");
    terminal.until_text("was undone");
    assert_eq!(
        terminal.text().matches("\nadded a.txt\n").count(),
        1,
        "{}",
        terminal.text()
    );
    terminal.press("/redo\r");
    terminal.until_text("▸ 1 Redo");
    terminal.press("\r");
    terminal.until("it again", |_| rig.project().join("a.txt").exists());
    terminal.press("/diff\r");
    terminal.until("the change again", |screen| {
        screen.contents().matches("\nadded a.txt\n").count() == 2
    });
    quit(terminal);
}

#[test]
fn resume_shows_the_last_rounds_and_the_resume_command() {
    // One more round than is shown.
    let replies = (1..=11).map(|number| Reply::text(format!("**Answer {number}.**")));
    let rig = rig_in_order(replies);
    let mut terminal = Terminal::start(&rig, &["--", "prompt 1"], (80, 60));
    terminal.until_text("Answer 1.");
    terminal.until_idle();
    for number in 2..=11 {
        terminal.press(&format!("prompt {number}\r"));
        terminal.until_text(&format!("Answer {number}."));
        terminal.until_idle();
    }
    terminal.press("\u{4}");
    let (_, left) = terminal.wait_for_exit();
    let line = left
        .lines()
        .find(|line| line.contains("resumes this conversation"))
        .unwrap_or_else(|| panic!("{left}"));
    assert!(
        line.starts_with("haft -r ") && line.contains("11 requests, $0."),
        "{line}"
    );
    let id = line.split_whitespace().nth(2).unwrap();
    let terminal = Terminal::start(&rig, &["-r", id], (80, 60));
    terminal.until_text("Answer 11.");
    let shown = terminal.text();
    assert!(
        shown.contains("> prompt 2\n")
            && shown.contains("Answer 2.\n")
            && !shown.contains("> prompt 1\n"),
        "{shown}"
    );
    assert!(
        !shown.contains("The last turn was interrupted") && !shown.contains("**"),
        "{shown}"
    );
    quit(terminal);
}

#[test]
fn resume_reports_an_unfinished_turn() {
    let waits = Reply::call(
        "execute_command",
        json!({"command": "touch begun; sleep 300", "requires_approval": false}),
    );
    let rig = rig_in_order([waits, Reply::text("As you like.")]);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "auto", "--", "go"], (80, 30));
    terminal.until("the command", |_| rig.project().join("begun").exists());
    terminal.press(ESC);
    terminal.until_text("Interrupted. Tell haft what to do instead.");
    quit(terminal);
    let mut terminal = Terminal::start(&rig, &["-c"], (80, 30));
    terminal.until_text("The last turn was interrupted.");
    terminal.press("never mind\r");
    terminal.until_text("As you like.");
    quit(terminal);
}

#[test]
fn shift_enter_starts_a_new_line_if_reported() {
    let rig = rig([Reply::text("Hello.")]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    assert!(
        terminal.written().contains("\u{1b}[>1u"),
        "the terminal is asked to"
    );
    terminal.press("one\u{1b}[13;2utwo");
    terminal.until_text("> one\n  two");
    terminal.press("\u{1b}[13u");
    terminal.until_text("Hello.");
    assert!(
        rig.server.generation_requests()[0]
            .json()
            .unwrap()
            .to_string()
            .contains("one\\ntwo")
    );
    terminal.press("\u{1b}[100;5u");
    let (code, _) = terminal.wait_for_exit();
    assert_eq!(code, 0);
}

#[test]
fn input_wraps_between_words() {
    let rig = rig([]);
    let mut terminal = Terminal::start(&rig, &[], (30, 12));
    terminal.until_text("> ");
    terminal.press("please explain everything carefully");
    terminal.until_text("> please explain everything \n  carefully");
    terminal.press("\u{3}");
    quit(terminal);
}
