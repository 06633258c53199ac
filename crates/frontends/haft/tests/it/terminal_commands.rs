//! Commands, lists and modes at a real terminal: real keys, a scripted model, and what is on the
//! screen.

use haft_testkit::test::{McpServer, Revision};
use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::{Value, json};

use crate::hostile::{CASES, plant};
use crate::rig::{MODEL, Rig};
use crate::terminal::{Terminal, slow, write_a};

const ESC: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";
const SHIFT_TAB: &str = "\u{1b}[Z";
const CONTROL_D: &str = "\u{4}";

/// A rig that gives replies in order, whatever the conversation holds.
fn in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

/// A command that ends once the file `go` exists.
fn until_told() -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": "while [ ! -e go ]; do sleep 0.02; done", "requires_approval": false}),
    )
}

fn body(rig: &Rig, request: usize) -> Value {
    rig.server.generations()[request].json().unwrap()
}

fn say(terminal: &mut Terminal, words: &str, answer: &str) {
    terminal.press(&format!("{words}\r"));
    terminal.until_text(answer);
    terminal.until_idle();
}

fn leave(mut terminal: Terminal) {
    terminal.press(CONTROL_D);
    assert_eq!(terminal.ended().0, 0);
}

#[test]
fn a_conversation_is_chosen_from_a_list() {
    for columns in [40, 100] {
        let rig = in_order(["About bugs.", "About pages.", "And more bugs."].map(Reply::text));
        assert_eq!(rig.task(&["fix the bug"]).code(), 0);
        assert_eq!(rig.task(&["write the page"]).code(), 0);
        let mut terminal = Terminal::start(&rig, &["-r"], (columns, 20));
        terminal.until_text("Resume which");
        let shown = terminal.text();
        let page = shown.find("write the page").unwrap();
        let bug = shown.find("fix the bug").unwrap();
        assert!(
            page < bug && shown.contains("just now, 2"),
            "the newest first: {shown}"
        );
        terminal.press("bug");
        terminal.until("only what fits", |screen| {
            !screen.contents().contains("write the page")
        });
        terminal.press("\r");
        terminal.until_text("About bugs.");
        say(&mut terminal, "go on", "And more bugs.");
        let sent = body(&rig, 2).to_string();
        assert!(
            sent.contains("fix the bug") && !sent.contains("write the page"),
            "{sent}"
        );
        terminal.press("/resume\r");
        terminal.until_text("open now");
        terminal.press(ESC);
        terminal.until("the input again", |screen| {
            !screen.contents().contains("Esc cancels")
        });
        leave(terminal);
    }
}

#[test]
fn esc_esc_goes_back_with_the_files() {
    let rig = in_order([
        Reply::text("First."),
        write_a(),
        Reply::text("Written."),
        Reply::text("Otherwise."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "accept-edits"], (80, 24));
    terminal.until_text("> ");
    say(&mut terminal, "one", "First.");
    say(&mut terminal, "write a file", "Written.");
    assert!(rig.project().join("a.txt").exists());
    terminal.press(ESC);
    terminal.until_text("Esc again");
    terminal.press(ESC);
    terminal.until_text("Go back to before which");
    assert!(
        terminal.text().contains("▸ write a file"),
        "{}",
        terminal.text()
    );
    terminal.press("\r");
    terminal.until_text("Back to: write a file");
    terminal.press(DOWN);
    terminal.until_text("▸ messages and files");
    terminal.press("\r");
    terminal.until_text("Undid");
    terminal.until_text("(rewound)");
    terminal.until("the words in the input", |screen| {
        screen.contents().contains("\n> write a file\n")
    });
    assert!(!rig.project().join("a.txt").exists());
    terminal.press(" elsewhere\r");
    terminal.until_text("Otherwise.");
    terminal.until_idle();
    let sent = body(&rig, 3)["messages"].to_string();
    assert!(
        sent.contains("write a file elsewhere")
            && sent.contains("First.")
            && !sent.contains("Written."),
        "{sent}"
    );
    leave(terminal);
    let all = rig.run(&["conversations", "list", "--json"]).json();
    assert_eq!(
        all.as_array().unwrap().len(),
        2,
        "the conversation as it was stays"
    );
}

#[test]
fn going_back_may_leave_files_as_they_are() {
    let rig = in_order([write_a(), Reply::text("Written.")]);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "accept-edits"], (60, 20));
    terminal.until_text("> ");
    say(&mut terminal, "write a file", "Written.");
    terminal.press("/rewind\r");
    terminal.until_text("Go back to before which");
    terminal.press("\r");
    terminal.until_text("▸ messages");
    terminal.press("\r");
    terminal.until_text("(rewound)");
    terminal.until("the words in the input", |screen| {
        screen.contents().contains("\n> write a file\n")
    });
    assert!(rig.project().join("a.txt").exists());
    terminal.press("\u{3}");
    leave(terminal);
}

#[test]
fn shift_tab_changes_what_is_asked_and_the_model_hears_of_plan_mode() {
    let write = |name: &str| Reply::call("write_to_file", json!({"path": name, "content": "x\n"}));
    let replies = [
        write("a.txt"),
        Reply::text("One."),
        write("b.txt"),
        Reply::text("Two."),
        Reply::text("Three."),
    ];
    let rig = in_order(replies);
    let mut terminal = Terminal::start(&rig, &["--set", "context.compress=\"never\""], (90, 24));
    terminal.until_text("> ");
    terminal.press(SHIFT_TAB);
    terminal.until_text("accept-edits: edits files without asking");
    say(&mut terminal, "write a", "One.");
    assert!(rig.project().join("a.txt").exists(), "nobody was asked");
    terminal.press(SHIFT_TAB);
    terminal.until_text("auto: asks nothing");
    terminal.press(SHIFT_TAB);
    terminal.until_text("plan: the model reads");
    say(&mut terminal, "write b", "Two.");
    assert!(
        !rig.project().join("b.txt").exists(),
        "nothing changes in plan mode"
    );
    terminal.press(SHIFT_TAB);
    terminal.until_text("ask: asks before");
    say(&mut terminal, "thanks", "Three.");
    let before = body(&rig, 1);
    let planning = body(&rig, 2);
    let after = body(&rig, 4);
    assert!(
        planning["messages"]
            .to_string()
            .contains("switched to plan mode")
    );
    assert!(!before["messages"].to_string().contains("plan mode"));
    assert!(after["messages"].to_string().contains("has left plan mode"));
    assert_eq!(
        (&before["tools"], &before["system"]),
        (&after["tools"], &after["system"]),
        "the prefix stays"
    );
    terminal.press("/context\r");
    terminal.until_text("no prefix break so far");
    leave(terminal);
}

#[test]
fn whoever_resumes_outside_plan_mode_is_told_that_it_is_over() {
    let rig = in_order(["One.", "Two.", "Three.", "Four."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &[], (90, 24));
    terminal.until_text("> ");
    say(&mut terminal, "one", "One.");
    (0..3).for_each(|_| terminal.press(SHIFT_TAB));
    terminal.until_text("plan: the model reads");
    say(&mut terminal, "two", "Two.");
    leave(terminal);
    assert_eq!(rig.task(&["-c", "three"]).code(), 0);
    assert_eq!(rig.task(&["-c", "four"]).code(), 0);
    let told = |request: usize| {
        let messages = body(&rig, request)["messages"].to_string();
        (
            messages.matches("switched to plan mode").count(),
            messages.matches("has left plan mode").count(),
        )
    };
    assert_eq!([0, 1, 2, 3].map(told), [(0, 0), (1, 0), (1, 1), (1, 1)]);
}

#[test]
fn a_mode_changed_in_the_middle_of_a_turn_holds_for_its_next_call() {
    let write = |name: &str| Reply::call("write_to_file", json!({"path": name, "content": "x\n"}));
    let rig = in_order([write("a.txt"), write("b.txt"), Reply::text("Done.")]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_armed();
    terminal.press(SHIFT_TAB);
    terminal.until_text("accept-edits: ");
    terminal.press("y");
    terminal.until_text("Done.");
    terminal.until_idle();
    assert!(
        rig.project().join("b.txt").exists(),
        "only the first was asked about"
    );
    leave(terminal);
}

#[test]
fn a_call_that_waits_behind_another_is_judged_by_the_mode_in_which_it_starts() {
    for (presses, mode, done) in [
        (1, "plan: the model reads", false),
        (3, "accept-edits: edits files", true),
    ] {
        let gate = json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.02; done"});
        let write = json!({"path": "second", "content": "x"});
        let calls = [
            ScriptCall::new("execute_command", gate),
            ScriptCall::new("write_to_file", write),
        ];
        let rig = in_order([
            Reply::calls(calls),
            Reply::text("Done."),
            Reply::text("Done."),
        ]);
        if !crate::sandbox::has_namespaces(&rig) {
            return;
        }
        let mut terminal =
            Terminal::start(&rig, &["--permission-mode", "auto", "--", "go"], (90, 24));
        terminal.until("a command that has begun", |_| {
            rig.project().join("begun").exists()
        });
        (0..presses).for_each(|_| terminal.press(SHIFT_TAB));
        terminal.until_text(mode);
        rig.write("go", "");
        terminal.until_text("Done.");
        terminal.until_idle();
        assert_eq!(rig.project().join("second").exists(), done, "{mode}");
        leave(terminal);
    }
}

#[test]
fn another_model_is_asked_and_its_price_is_shown_first() {
    let rig = in_order(["One.", "Two."].map(Reply::text));
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let other = "[models.\"mock/other\"]\ncontext_window = 100000\nmax_output_tokens = 4096\n\
                 price = { input = 6.0, cached_input = 0.6, cache_write = 7.5, output = 30.0 }\n";
    rig.configure(&format!("{config}{other}"));
    let mut terminal = Terminal::start(&rig, &[], (100, 24));
    terminal.until_text("> ");
    say(&mut terminal, "one", "One.");
    terminal.press("/model other\r");
    terminal.until_text("Use which model?");
    let shown = terminal.text();
    assert!(
        shown.contains("▸ mock/other") && shown.contains(" tokens, $0."),
        "{shown}"
    );
    assert!(
        !shown.contains(&format!("mock/{MODEL}  ")),
        "the filter holds: {shown}"
    );
    terminal.press("\r");
    terminal.until_text("`mock/other` is used from the next request on");
    say(&mut terminal, "two", "Two.");
    assert_eq!(body(&rig, 0)["model"], MODEL);
    assert_eq!(body(&rig, 1)["model"], "other");
    terminal.press("/context\r");
    terminal.until_text("the model was switched");
    leave(terminal);
}

/// Regression: `/context` counted the next request differently from the status line below it, whose
/// count pruning uses.
#[test]
fn the_picture_of_the_next_request_counts_as_the_model_does() {
    let rig = in_order([Reply::text("One.")]);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let window = "context_window = 200000\n";
    assert!(config.contains(window));
    rig.configure(&config.replace(window, "context_window = 40000\ntokenizer_factor = 3.0\n"));
    let mut terminal = Terminal::start(&rig, &[], (80, 30));
    terminal.until_text("> ");
    say(&mut terminal, "one", "One.");
    terminal.until_idle();
    terminal.press("/context\r");
    terminal.until_text("% of the window");
    let shown = terminal.text();
    let percent = shown
        .split("% of the window")
        .next()
        .unwrap()
        .rsplit(' ')
        .next()
        .unwrap();
    // By haft's own count less than a tenth; three times that with the factor, and less again once
    // the reply has corrected the factor.
    assert!(percent.parse::<u32>().unwrap() >= 15, "{shown}");
    leave(terminal);
}

#[test]
fn older_rounds_are_archived_when_the_user_says_so() {
    let summary = Reply::summary("Everything about the whale.");
    let [one, two, three, four] = ["One.", "Two.", "Three.", "Four."].map(Reply::text);
    let replies = [one, two, three, summary, four];
    let rig = in_order(replies);
    let mut terminal = Terminal::start(&rig, &["--set", "context.keep_rounds=1"], (80, 24));
    terminal.until_text("> ");
    terminal.press("/compact\r");
    terminal.until_text("nothing to archive yet");
    let story = format!(
        "\u{1b}[200~a long story about {}\u{1b}[201~",
        "a whale ".repeat(300)
    );
    say(&mut terminal, &story, "One.");
    terminal.until_idle();
    terminal.press("/compact\r");
    terminal.until_text("nothing to archive besides the newest step");
    terminal.until_idle();
    say(&mut terminal, "two", "Two.");
    say(&mut terminal, "three", "Three.");
    terminal.press("/compact the name of the whale\r");
    terminal.until_text("2 older rounds are archived");
    terminal.until_text("instead of");
    assert!(
        !terminal.text().contains("has 0 tokens"),
        "{}",
        terminal.text()
    );
    terminal.until_idle();
    assert!(body(&rig, 3).to_string().contains("the name of the whale"));
    say(&mut terminal, "four", "Four.");
    let sent = body(&rig, 4).to_string();
    assert!(
        sent.contains("Everything about the whale.") && sent.matches("a whale").count() < 20,
        "{sent}"
    );
    leave(terminal);
}

#[test]
fn archiving_can_be_interrupted_and_leaves_everything_as_it_was() {
    let replies = [
        Reply::text("One."),
        Reply::text("Two."),
        slow(&"a summary that takes long ".repeat(400)),
        Reply::text("Three."),
    ];
    let rig = in_order(replies);
    let mut terminal = Terminal::start(&rig, &["--set", "context.keep_rounds=1"], (80, 24));
    terminal.until_text("> ");
    say(&mut terminal, "the first words", "One.");
    say(&mut terminal, "two", "Two.");
    terminal.press("/compact\r");
    terminal.until_text("Archiving 1 older");
    terminal.press(ESC);
    terminal.until_text("Nothing was archived (interrupted)");
    terminal.until_idle();
    say(&mut terminal, "three", "Three.");
    assert!(body(&rig, 3).to_string().contains("the first words"));
    leave(terminal);
}

#[test]
fn words_typed_while_a_turn_runs_join_it() {
    let rig = in_order([until_told(), Reply::text("Understood.")]);
    let mut terminal = Terminal::start(
        &rig,
        &["--permission-mode", "yolo", "--", "begin"],
        (80, 24),
    );
    terminal.until_text("while [ ! -e go ]");
    terminal.press("in French please\r");
    terminal.until_text("next: in French please");
    rig.write("go", "");
    terminal.until_text("Understood.");
    terminal.until_idle();
    let shown = terminal.text();
    assert!(
        shown.contains("> in French please") && !shown.contains("next:"),
        "{shown}"
    );
    let sent = body(&rig, 1)["messages"].to_string();
    assert!(
        sent.contains("while [ ! -e go ]") && sent.contains("in French please"),
        "{sent}"
    );
    leave(terminal);
    let rounds = rig.export()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["role"] == "user")
        .count();
    assert_eq!(rounds, 2);
}

#[test]
fn words_that_wait_come_back_when_the_turn_is_interrupted() {
    let rig = in_order([until_told(), Reply::text("Fine.")]);
    let mut terminal = Terminal::start(
        &rig,
        &["--permission-mode", "yolo", "--", "begin"],
        (80, 24),
    );
    terminal.until_text("while [ ! -e go ]");
    terminal.press("in French please\r");
    terminal.until_text("next: in French please");
    terminal.press(ESC);
    terminal.until_text("Interrupted. Tell haft what to do instead.");
    terminal.until("the words in the input", |screen| {
        screen.contents().contains("\n> in French please\n")
    });
    terminal.press(", or Latin\r");
    terminal.until_text("Fine.");
    terminal.until_idle();
    let sent = body(&rig, 1)["messages"].to_string();
    assert_eq!(sent.matches("in French please").count(), 1, "once: {sent}");
    leave(terminal);
}

#[test]
fn what_is_sent_is_edited_and_the_price_comes_first() {
    let rig = in_order(["One.", "Two.", "Three.", "Four."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &[], (90, 24));
    terminal.until_text("> ");
    say(&mut terminal, "the secret is 4711", "One.");
    say(&mut terminal, "two", "Two.");
    terminal.press("/context edit\r");
    terminal.until_text("Messages of this conversation that are sent");
    terminal.press("4711");
    terminal.until_text("▸ user: the secret is 4711");
    terminal.press("\r");
    terminal.until_text("▸ leave it out");
    terminal.press(DOWN);
    terminal.until_text("▸ mask it");
    terminal.press("\r");
    terminal.until_text("Mask its content?");
    assert!(
        terminal.text().contains("to write again"),
        "{}",
        terminal.text()
    );
    terminal.press("\r");
    terminal.until_text("1 edit is in force");
    say(&mut terminal, "three", "Three.");
    assert!(!body(&rig, 2)["messages"].to_string().contains("4711"));
    terminal.press("/context edit\r");
    terminal.until_text("▸ undo the last edit of 1");
    terminal.press("\r");
    terminal.until_text("▸ undo it");
    terminal.press("\r");
    terminal.until_text("0 edits are in force");
    say(&mut terminal, "four", "Four.");
    assert!(body(&rig, 3)["messages"].to_string().contains("4711"));
    leave(terminal);
}

#[test]
fn the_model_is_told_what_the_users_shell_said() {
    let rig = in_order(["One.", "Two."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("!echo $((6 * 7)) whales; seq 3000; exit 3\r");
    terminal.until_text("sent to the model with your next message");
    say(&mut terminal, "how many?", "One.");
    say(&mut terminal, "sure?", "Two.");
    let messages = body(&rig, 0)["messages"].to_string();
    assert!(
        messages.contains("$ echo $((6 * 7)) whales") && messages.contains("42 whales\\n"),
        "{messages}"
    );
    assert!(
        messages.contains("(exit code 3)") && messages.len() < 60_000,
        "{}",
        messages.len()
    );
    assert_eq!(
        body(&rig, 1)["messages"]
            .to_string()
            .matches("42 whales\\n")
            .count(),
        1
    );
    leave(terminal);
}

#[test]
fn changes_are_shown_taken_back_and_brought_back() {
    let rig = in_order([write_a(), Reply::text("Written.")]);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "accept-edits"], (80, 40));
    terminal.until_text("> ");
    terminal.press("/undo\r");
    terminal.until_text("this conversation is still empty");
    say(&mut terminal, "write a file", "Written.");
    terminal.press("/diff\r");
    terminal.until("the change in colour", |screen| {
        let (_, columns) = screen.size();
        let rows: Vec<_> = screen.rows(0, columns).collect();
        let at = rows.iter().rposition(|row| row.contains(" +two"));
        at.is_some_and(|row| {
            screen
                .cell(row as u16, 2)
                .is_some_and(|cell| cell.fgcolor() != vt100::Color::Default)
        })
    });
    terminal.press("/undo\r");
    terminal.until_text("Undo the last change?");
    assert!(terminal.text().contains("Would undo") && rig.project().join("a.txt").exists());
    terminal.press(DOWN);
    terminal.until_text("▸ change nothing");
    terminal.press("\r");
    terminal.until("the input again", |screen| {
        !screen.contents().contains("Esc cancels")
    });
    assert!(rig.project().join("a.txt").exists(), "it was left");
    terminal.press("/undo\r");
    terminal.until_text("▸ undo it");
    terminal.press("\r");
    terminal.until_text("Undid");
    assert!(!rig.project().join("a.txt").exists());
    terminal.press("/redo\r");
    terminal.until_text("▸ redo it");
    terminal.press("\r");
    terminal.until_text("Redid");
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "one\ntwo\n"
    );
    leave(terminal);
}

#[test]
fn what_the_model_is_told_of_files() {
    let rig = in_order([Reply::text("Hello."), Reply::text("Again.")]);
    rig.write("AGENTS.md", "Always say Moo.");
    let mut terminal = Terminal::start(&rig, &["--file", "src/main.rs", "--", "hi"], (80, 24));
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("/files\r");
    terminal.until_text("Documents and focus files");
    let shown = terminal.text();
    assert!(
        shown.contains("AGENTS.md")
            && shown.contains("in every request")
            && shown.contains("src/main.rs"),
        "{shown}"
    );
    terminal.press("agents\r");
    terminal.until_text("Always say Moo.");
    terminal.press("/files add b.rs c.rs\r");
    terminal.until_text("Change the focus files?");
    assert!(
        terminal.text().contains(" tokens, $0."),
        "{}",
        terminal.text()
    );
    terminal.press("\r");
    terminal.until_text("focus: src/main.rs, b.rs, c.rs");
    terminal.press("/files remove src/main.rs\r");
    terminal.until_text("▸ change them");
    terminal.press("\r");
    terminal.until_text("focus: b.rs, c.rs");
    say(&mut terminal, "again", "Again.");
    let system = body(&rig, 1)["system"].to_string();
    assert!(
        system.contains("b.rs") && !system.contains("src/main.rs"),
        "{system}"
    );
    leave(terminal);
}

/// A rig with a server named `web`.
fn with_server(there: &McpServer, replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = in_order(replies);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[mcp_servers.web]\nurl = \"{}\"\n",
        there.url()
    ));
    rig
}

#[test]
fn prompts_and_resources_of_servers_are_offered_and_used() {
    let there = McpServer::start(Revision::Current).unwrap();
    let rig = with_server(&there, ["One.", "Two.", "Three."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    say(&mut terminal, "/mcp__web__greet Ada", "One.");
    assert!(
        body(&rig, 0)["messages"]
            .to_string()
            .contains("Hello \\\"Ada\\\".")
    );
    leave(terminal);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("/greet");
    terminal.until_text("▸ /mcp__web__greet");
    terminal.press("\u{3}look at @web");
    terminal.until_text("▸ @web:mem:a");
    terminal.press("\t");
    terminal.until_text("> look at @web:mem:a");
    terminal.press("\r");
    terminal.until_text("Two.");
    terminal.until_idle();
    assert!(
        body(&rig, 1)["messages"]
            .to_string()
            .contains("content of a")
    );
    leave(terminal);
}

#[test]
fn a_form_of_a_server_is_filled_in_at_the_terminal() {
    let there = McpServer::start(Revision::Previous).unwrap();
    let ask = json!({"server_name": "web", "tool_name": "ask", "arguments": {}});
    let rig = with_server(
        &there,
        [Reply::call("use_mcp_tool", ask), Reply::text("Thanks.")],
    );
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "yolo", "--", "go"], (80, 24));
    terminal.until_text("Your name?");
    assert!(
        terminal.text().contains("give no password"),
        "{}",
        terminal.text()
    );
    terminal.until("a form that can be answered", |screen| {
        let (_, columns) = screen.size();
        let row = screen
            .rows(0, columns)
            .position(|row| row.starts_with("1 of 1"));
        row.is_some_and(|row| {
            screen
                .cell(row as u16, 2)
                .is_some_and(|cell| cell.fgcolor() == vt100::Color::Idx(5))
        })
    });
    terminal.press("Ada\r");
    terminal.until_text("Thanks.");
    terminal.until_idle();
    assert!(
        body(&rig, 1)["messages"].to_string().contains("Ada"),
        "the server heard it"
    );
    leave(terminal);
}

#[test]
fn hostile_repositories_are_asked_about_and_nothing_of_them_runs() {
    for (name, files) in CASES {
        let rig = Rig::untrusted(
            Api::Anthropic,
            Script::replies([Reply::text("Hello.")]).unwrap(),
        );
        let pwned = rig.home().join("pwned");
        plant(&rig.project(), files, &pwned);
        let mut terminal = Terminal::start(&rig, &["--", "hello"], (100, 40));
        terminal.until("the question, or the answer", |screen| {
            let shown = screen.contents();
            shown.contains("Trust the folder?") || shown.contains("Hello.")
        });
        if terminal.text().contains("Trust the folder?") {
            assert!(
                rig.server.requests().is_empty(),
                "{name}: nobody was called before the answer"
            );
            let asked = terminal.text();
            assert!(
                !asked.contains('\u{200b}') && !asked.contains('\u{200d}'),
                "{name}: {asked}"
            );
            terminal.press("\r");
            terminal.until_text("Hello.");
        } else {
            // None of these files would be obeyed in a trusted folder either, so no question is
            // asked.
            let shown = rig.run(&["trust", "--show", "--json"]).json();
            assert_eq!(shown["standing"], "untrusted", "{name}: {shown}");
        }
        terminal.until_idle();
        leave(terminal);
        assert!(!pwned.exists(), "{name}");
        let sent = body(&rig, 0).to_string();
        assert!(
            !sent.contains("Obey") && !sent.contains("Ignore all"),
            "{name}: {sent}"
        );
    }
}
