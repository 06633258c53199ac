//! Approvals and plans at a real terminal: lists with arrows and typed keys, edited rules, and the
//! scope of an answer.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::permissions::at_terminal;
use crate::rig::Rig;
use crate::sandbox::has_namespaces;
use crate::terminal::{Terminal, rig, write_a};

const DOWN: &str = "\u{1b}[B";
const UP: &str = "\u{1b}[A";

fn command(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "requires_approval": false}),
    )
}

fn leave(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.ended().0, 0);
}

fn kept_rules(rig: &Rig) -> String {
    rig.run(&["permissions", "list", "--json"])
        .json()
        .to_string()
}

#[test]
fn arrows_and_enter_answer_and_enter_alone_does_not() {
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
        leave(terminal);
    }
}

#[test]
fn what_is_allowed_for_the_session_is_not_written() {
    let rig = rig([
        command("touch b.txt"),
        command("touch b.txt"),
        command("touch c.txt"),
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
    assert!(!kept_rules(&rig).contains("touch"), "{}", kept_rules(&rig));
    leave(terminal);
}

#[test]
fn a_rule_is_edited_and_then_kept() {
    let rig = rig([
        command("touch b.txt"),
        command("touch c.txt"),
        Reply::text("Done."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
    terminal.until_armed();
    assert!(
        terminal.text().contains("such as execute_command(touch:*)"),
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
        kept_rules(&rig).contains("execute_command(touch:*)"),
        "{}",
        kept_rules(&rig)
    );
    leave(terminal);
}

#[test]
fn all_edits_of_a_session_are_allowed_and_commands_are_not() {
    let write = |path: &str| Reply::call("write_to_file", json!({"path": path, "content": "x\n"}));
    let rig = rig([
        write("a.txt"),
        write("b.txt"),
        write("AGENTS.md"),
        command("touch c.txt"),
        Reply::text("Done."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 30));
    terminal.until_armed();
    terminal.press("s");
    terminal.until_text("Allow all edits until the session ends?");
    terminal.press("\r");
    terminal.until("the edit that steers later runs", |screen| {
        screen.contents().contains("+++ AGENTS.md")
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
    terminal.until_text("? execute_command");
    terminal.until_armed();
    terminal.press("n");
    terminal.until_text("Done.");
    assert!(!rig.project().join("c.txt").exists() && !rig.project().join("AGENTS.md").exists());
    leave(terminal);
}

#[test]
fn outside_the_sandbox_nothing_is_offered_that_would_not_hold() {
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
            terminal.until_text("Enter refuses with this reason");
            terminal.press("\u{1b}");
            terminal.until_text("press a key");
        }
    }
    terminal.press("n");
    terminal.until_text("So be it.");
    leave(terminal);
}

fn outside(line: &str) -> Reply {
    let call = json!({"command": line, "requires_approval": false, "sandbox": "outside"});
    Reply::call("execute_command", call)
}

#[test]
fn leaving_the_sandbox_stands_in_the_title_at_every_size() {
    for size in [(80, 24), (200, 50), (40, 12), (24, 8)] {
        let rig = rig([outside("touch made"), Reply::text("So be it.")]);
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
        leave(terminal);
    }
}

#[test]
fn leaving_the_sandbox_is_said_in_plain_lines_and_by_ask() {
    let rig = rig([outside("touch made"), Reply::text("So be it.")]);
    if !has_namespaces(&rig) {
        return;
    }
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (120, 30));
    terminal.until_text("answer:");
    let shown = terminal.text();
    assert!(
        shown.contains("approval: execute_command outside the sandbox")
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
    assert_eq!(terminal.ended().0, 0);
    let Some((ran, shown)) = at_terminal(&rig, &["run", "--ask", "do it"], "y\na\n", &["n"]) else {
        return;
    };
    assert!(
        shown.contains("outside the sandbox") && !shown.contains("a = always"),
        "{shown}"
    );
    assert!(ran.code() == 0 && !rig.project().join("made").exists());
}

#[test]
fn leaving_the_sandbox_is_said_of_a_subagent_too() {
    let start = json!({"subagents": "mode: parallel\nsubagents:\n  - name: scout\n    task: Look around.\n"});
    let replies = [
        Reply::call("run_named_subagents", start),
        outside("touch made"),
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
        shown.contains("? execute_command outside the sandbox of the sub-agent scout"),
        "{shown}"
    );
    terminal.press("n");
    terminal.until_text("So be it.");
    assert!(!rig.project().join("made").exists());
    terminal.until_idle();
    terminal.press("\u{15}");
    leave(terminal);
}

fn plan(options: &Value) -> Reply {
    Reply::call(
        "plan_mode_respond",
        json!({"response": "First I write a.txt.", "options": options}),
    )
}

fn planning(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

#[test]
fn a_plan_is_carried_out_in_the_mode_that_is_chosen() {
    for (keys, mode) in [("", "accept-edits"), (DOWN, "ask")] {
        let rig = planning([plan(&json!([])), write_a(), Reply::text("Done.")]);
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
        let body = rig.server.generations()[1].json().unwrap().to_string();
        assert!(
            body.contains("Carry out the plan.") && body.contains("Plan mode is over"),
            "{body}"
        );
        leave(terminal);
    }
}

#[test]
fn a_plan_is_gone_on_with_by_typing_or_leaving_the_list() {
    for leaving in ["", "\u{1b}"] {
        let rig = planning([
            plan(&json!(["Use b.txt"])),
            plan(&json!([])),
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
        terminal.until("another plan", |_| rig.server.generations().len() == 2);
        terminal.until_text("Carry out this plan?");
        assert!(
            rig.server.generations()[1]
                .json()
                .unwrap()
                .to_string()
                .contains("also write tests")
        );
        terminal.press("\u{3}");
        leave(terminal);
    }
}

#[test]
fn plain_lines_answer_for_the_session_and_by_a_rule() {
    let rig = planning([
        command("touch b.txt"),
        command("touch b.txt"),
        command("touch c.txt"),
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
        kept_rules(&rig).contains("execute_command(touch:*)"),
        "{}",
        kept_rules(&rig)
    );
    leave(terminal);
}

#[test]
fn the_reasons_of_an_approval_are_said_in_chinese() {
    let rig = rig([write_a(), Reply::text("So be it.")]);
    let mut terminal = Terminal::start(&rig, &["--set", "language=zh-CN", "--", "go"], (80, 30));
    terminal.until_text("允许吗？`write_to_file` 会修改文件，但没有规则允许 `a.txt`");
    terminal.until_armed();
    terminal.press("n");
    terminal.until_text("So be it.");
}
