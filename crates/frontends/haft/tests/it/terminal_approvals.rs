//! Approvals and plans at a real terminal: lists with arrows and typed keys, edited rules, and the
//! scope of an answer.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::permissions::run_at_terminal;
use crate::rig::Rig;
use crate::sandbox::has_namespaces;
use crate::terminal::{Terminal, rig, write_a};

const DOWN: &str = "\u{1b}[B";
const UP: &str = "\u{1b}[A";

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

fn saved_rules(rig: &Rig) -> String {
    rig.run(&["permissions", "list", "--json"])
        .json()
        .to_string()
}

#[test]
fn approval_takes_arrows_and_enter_but_not_enter_alone() {
    for (keys, written) in [(DOWN.to_owned(), true), (format!("{UP}{UP}{UP}"), false)] {
        let rig = rig([write_a(), Reply::text("So be it.")]);
        let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
        terminal.until_armed();
        terminal.press("\r");
        terminal.press(&keys);
        terminal.until_text("▸");
        assert!(
            !rig.project().join("a.txt").exists(),
            "Enter alone says nothing"
        );
        terminal.press("\r");
        terminal.until_text("So be it.");
        assert_eq!(
            rig.project().join("a.txt").exists(),
            written,
            "{}",
            terminal.text()
        );
        quit(terminal);
    }
}

#[test]
fn session_approval_is_not_saved() {
    let rig = rig([
        command_call("touch b.txt"),
        command_call("touch b.txt"),
        command_call("touch c.txt"),
        Reply::text("Done."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
    terminal.until_armed();
    terminal.press("s");
    terminal.until_text("Allow this until the session ends?");
    assert!(
        !rig.project().join("b.txt").exists(),
        "it is confirmed first"
    );
    terminal.press("\r");
    terminal.until_text("allowed for this session");
    // An equal call is not asked again; another one is.
    terminal.until_text("touch c.txt");
    terminal.until_armed();
    terminal.press("n");
    terminal.until_text("Done.");
    assert_eq!(
        terminal
            .written()
            .matches("allowed for this session")
            .count(),
        1
    );
    assert!(rig.project().join("b.txt").exists() && !rig.project().join("c.txt").exists());
    assert!(
        !saved_rules(&rig).contains("touch"),
        "{}",
        saved_rules(&rig)
    );
    quit(terminal);
}

#[test]
fn rule_is_edited_before_it_is_saved() {
    let rig = rig([
        command_call("touch b.txt"),
        command_call("touch c.txt"),
        Reply::text("Done."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
    terminal.until_armed();
    assert!(
        terminal
            .text()
            .contains("custom rule: execute_command(touch:*)"),
        "{}",
        terminal.text()
    );
    terminal.press("r");
    terminal.until_text("> execute_command(touch:*)");
    terminal.press("\u{15}execute_command(touch\r");
    terminal.until_text("is not a rule");
    assert!(!rig.project().join("b.txt").exists());
    terminal.press("\u{15}execute_command(touch:*)\r");
    terminal.until_text("Done.");
    assert!(rig.project().join("b.txt").exists() && rig.project().join("c.txt").exists());
    assert!(
        saved_rules(&rig).contains("execute_command(touch:*)"),
        "{}",
        saved_rules(&rig)
    );
    quit(terminal);
}

#[test]
fn session_approval_of_edits_excludes_commands() {
    let write = |path: &str| Reply::call("write_to_file", json!({"path": path, "content": "x\n"}));
    let rig = rig([
        write("a.txt"),
        write("b.txt"),
        write("AGENTS.md"),
        command_call("touch c.txt"),
        Reply::text("Done."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
    terminal.until_armed();
    terminal.press("s");
    terminal.until_text("Allow all edits until the session ends?");
    terminal.press("\r");
    terminal.until("the edit that steers later runs", |screen| {
        screen.contents().contains("Write AGENTS.md")
    });
    terminal.until_armed();
    assert!(
        rig.project().join("b.txt").exists() && terminal.text().contains("accept-edits"),
        "{}",
        terminal.text()
    );
    assert!(
        !terminal.text().contains("for this session\n"),
        "what is always asked offers no rule"
    );
    terminal.press("n");
    terminal.until_text("? Run touch c.txt?");
    terminal.until_armed();
    terminal.press("n");
    terminal.until_text("Done.");
    assert!(!rig.project().join("c.txt").exists() && !rig.project().join("AGENTS.md").exists());
    quit(terminal);
}

#[test]
fn approval_outside_the_sandbox_offers_no_rules() {
    let call =
        json!({"command": "touch .git/zz", "requires_approval": false, "sandbox": "outside"});
    let rig = rig([
        Reply::call("execute_command", call),
        Reply::text("So be it."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
    terminal.until_armed();
    let shown = terminal.text();
    if shown.contains("outside the sandbox") {
        assert!(
            !shown.contains(" a always")
                && !shown.contains(" s yes")
                && !shown.contains(" r always"),
            "{shown}"
        );
    }
    if shown.contains("outside the sandbox") {
        for key in ["a", "s", "r"] {
            terminal.press(key);
            terminal.until_text("Enter to refuse with this reason");
            terminal.press("\u{1b}");
            terminal.until_text("press a key");
        }
    }
    terminal.press("n");
    terminal.until_text("So be it.");
    quit(terminal);
}

fn call_outside_sandbox(line: &str) -> Reply {
    let call = json!({"command": line, "requires_approval": false, "sandbox": "outside"});
    Reply::call("execute_command", call)
}

#[test]
fn approval_title_names_leaving_the_sandbox_at_every_size() {
    for size in [(80, 24), (200, 50), (40, 12), (24, 8)] {
        let rig = rig([call_outside_sandbox("touch made"), Reply::text("So be it.")]);
        if !has_namespaces(&rig) {
            return;
        }
        let mut terminal = Terminal::start(&rig, &["--permission-mode", "auto", "--", "go"], size);
        terminal.until_armed();
        let written: String = terminal.written().split_whitespace().collect();
        assert!(
            written.contains("outsidethe"),
            "{size:?}: {}",
            terminal.text()
        );
        terminal.press("n");
        terminal.until_text("So be it.");
        assert!(!rig.project().join("made").exists());
        quit(terminal);
    }
}

#[test]
fn plain_mode_and_ask_flag_name_leaving_the_sandbox() {
    let rig = rig([call_outside_sandbox("touch made"), Reply::text("So be it.")]);
    if !has_namespaces(&rig) {
        return;
    }
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (120, 30));
    terminal.until_text("answer:");
    let shown = terminal.text();
    assert!(
        shown.contains("approval: Run touch made outside the sandbox?")
            && !shown.contains("always"),
        "{shown}"
    );
    let answered = terminal.written().len();
    terminal.answer_plain("a");
    terminal.until("the question again", |_| {
        terminal.written()[answered..].contains("answer:")
    });
    terminal.answer_plain("n");
    terminal.until_text("So be it.");
    terminal.press("/quit\r");
    assert_eq!(terminal.wait_for_exit().0, 0);
    let Some((ran, shown)) = run_at_terminal(&rig, &["run", "--ask", "do it"], "y\na\n", &["n"])
    else {
        return;
    };
    assert!(
        shown.contains("outside the sandbox") && !shown.contains("a = always"),
        "{shown}"
    );
    assert!(ran.code() == 0 && !rig.project().join("made").exists());
}

#[test]
fn subagent_approval_names_leaving_the_sandbox() {
    let start = json!({"subagents": "mode: parallel\nsubagents:\n  - name: scout\n    task: Look around.\n"});
    let replies = [
        Reply::call("run_named_subagents", start),
        call_outside_sandbox("touch made"),
        Reply::text("Nothing was made."),
        Reply::text("So be it."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    if !has_namespaces(&rig) {
        return;
    }
    std::fs::create_dir_all(rig.project().join(".haft/agents")).unwrap();
    rig.write(
        ".haft/agents/scout.md",
        "---\nname: scout\ndescription: Looks closely\n---\nYou look.\n",
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "auto", "--", "go"], (100, 30));
    terminal.press("y");
    terminal.until_armed();
    let shown = terminal.text();
    assert!(
        shown.contains("? Run touch made outside the sandbox (sub-agent scout)?"),
        "{shown}"
    );
    terminal.press("n");
    terminal.until_text("So be it.");
    assert!(!rig.project().join("made").exists());
    terminal.until_idle();
    terminal.press("\u{15}");
    quit(terminal);
}

fn plan_reply(options: &Value) -> Reply {
    Reply::call(
        "plan_mode_respond",
        json!({"response": "First I write a.txt.", "options": options}),
    )
}

fn rig_in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

#[test]
fn plan_is_carried_out_in_the_chosen_mode() {
    for (keys, mode) in [("", "accept-edits"), (DOWN, "ask")] {
        let rig = rig_in_order([plan_reply(&json!([])), write_a(), Reply::text("Done.")]);
        let mut terminal =
            Terminal::start(&rig, &["--permission-mode", "plan", "--", "go"], (80, 30));
        // The list shows its cursor once it takes an answer.
        terminal.until("the list", |screen| {
            screen.contents().contains("Carry out this plan?") && screen.contents().contains('▸')
        });
        terminal.press(&format!("{keys}\r"));
        if mode == "ask" {
            terminal.until_armed();
            terminal.press("y");
        }
        terminal.until_text("Done.");
        terminal.until_idle();
        assert!(rig.project().join("a.txt").exists());
        assert!(
            terminal
                .text()
                .lines()
                .last()
                .unwrap_or_default()
                .starts_with(mode),
            "{}",
            terminal.text()
        );
        let body = rig.server.generation_requests()[1]
            .json()
            .unwrap()
            .to_string();
        assert!(
            body.contains("Carry out the plan.") && body.contains("Plan mode is over"),
            "{body}"
        );
        quit(terminal);
    }
}

#[test]
fn plan_is_continued_by_typing_or_closing_the_list() {
    for leaving in ["", "\u{1b}"] {
        let rig = rig_in_order([
            plan_reply(&json!(["Use b.txt"])),
            plan_reply(&json!([])),
            Reply::text("Done."),
        ]);
        let mut terminal =
            Terminal::start(&rig, &["--permission-mode", "plan", "--", "go"], (80, 30));
        terminal.until_text("Carry out this plan?");
        assert!(terminal.text().contains("keep planning") && terminal.text().contains("Use b.txt"));
        terminal.press(leaving);
        if !leaving.is_empty() {
            terminal.until("no list", |screen| {
                !screen.contents().contains("Carry out this plan?")
            });
        }
        terminal.press("also write tests");
        terminal.until_text("> also write tests");
        terminal.press("\r");
        terminal.until("another plan", |_| {
            rig.server.generation_requests().len() == 2
        });
        terminal.until_text("Carry out this plan?");
        assert!(
            rig.server.generation_requests()[1]
                .json()
                .unwrap()
                .to_string()
                .contains("also write tests")
        );
        terminal.press("\u{3}");
        quit(terminal);
    }
}

/// Each text is part of a row that carries out the plan.
#[test]
fn text_at_a_plan_never_chooses_a_row() {
    for text in ["n", "ask", "edit files", "carry out"] {
        let rig = rig_in_order([plan_reply(&json!([])), plan_reply(&json!([]))]);
        let mut terminal =
            Terminal::start(&rig, &["--permission-mode", "plan", "--", "go"], (80, 30));
        terminal.until("the list", |screen| {
            screen.contents().contains("Carry out this plan?") && screen.contents().contains('▸')
        });
        terminal.press(text);
        terminal.until_text(&format!("> {text}"));
        terminal.press("\r");
        terminal.until("another plan", |_| {
            rig.server.generation_requests().len() == 2
        });
        terminal.until_text("Carry out this plan?");
        let body = rig.server.generation_requests()[1]
            .json()
            .unwrap()
            .to_string();
        assert!(
            body.contains(&format!("The user answered: {text}"))
                && !body.contains("Plan mode is over"),
            "{body}"
        );
        terminal.press("\u{3}");
        quit(terminal);
    }
}

#[test]
fn plain_mode_approves_for_the_session_and_by_rule() {
    let rig = rig_in_order([
        command_call("touch b.txt"),
        command_call("touch b.txt"),
        command_call("touch c.txt"),
        Reply::text("Done."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (300, 40));
    let answer = |terminal: &mut Terminal, question: &str, line: &str| {
        terminal.until_text(question);
        terminal.answer_plain(line);
    };
    answer(&mut terminal, "s for this session", "s");
    terminal.until_text("allowed for this session");
    answer(&mut terminal, "execute_command(touch c.txt)", "r");
    answer(
        &mut terminal,
        "proposed: execute_command(touch:*)",
        "execute_command(touch:*)",
    );
    terminal.until_text("Done.");
    assert!(rig.project().join("b.txt").exists() && rig.project().join("c.txt").exists());
    assert!(
        saved_rules(&rig).contains("execute_command(touch:*)"),
        "{}",
        saved_rules(&rig)
    );
    quit(terminal);
}

#[test]
fn approval_reasons_are_translated_to_chinese() {
    let rig = rig([write_a(), Reply::text("So be it.")]);
    let mut terminal = Terminal::start(&rig, &["--set", "language=zh-CN", "--", "go"], (80, 30));
    terminal.until_text("没有规则涵盖它");
    terminal.until_armed();
    terminal.press("n");
    terminal.until_text("So be it.");
}
