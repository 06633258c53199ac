//! Commands, lists and modes at a real terminal: real keys, a scripted model, and what is on the
//! screen.

use haft_testkit::support::{McpServer, Revision};
use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::{Value, json};

use crate::hooks::add_hooks;
use crate::hostile::{CASES, write_case};
use crate::rig::{MODEL, Rig};
use crate::terminal::{Terminal, slow_reply, write_a};

const ESC: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";
const SHIFT_TAB: &str = "\u{1b}[Z";
const CONTROL_D: &str = "\u{4}";

/// A rig that gives replies in order, whatever the conversation holds.
fn rig_in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

/// A command that ends once the file `go` exists.
fn wait_for_go_call() -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": "while [ ! -e go ]; do sleep 0.02; done", "requires_approval": false}),
    )
}

fn request_body(rig: &Rig, request: usize) -> Value {
    rig.server.generation_requests()[request].json().unwrap()
}

fn send_prompt(terminal: &mut Terminal, words: &str, answer: &str) {
    terminal.press(&format!("{words}\r"));
    terminal.until_text(answer);
    terminal.until_idle();
}

fn quit(mut terminal: Terminal) {
    terminal.press(CONTROL_D);
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn resume_flag_lists_and_opens_conversations() {
    for columns in [40, 100] {
        let rig = rig_in_order(["About bugs.", "About pages.", "And more bugs."].map(Reply::text));
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
        send_prompt(&mut terminal, "go on", "And more bugs.");
        let sent = request_body(&rig, 2).to_string();
        assert!(
            sent.contains("fix the bug") && !sent.contains("write the page"),
            "{sent}"
        );
        terminal.press("/resume\r");
        terminal.until_text("open now");
        terminal.press(ESC);
        terminal.until("the input again", |screen| {
            !screen.contents().contains("Esc to cancel")
        });
        quit(terminal);
    }
}

#[test]
fn esc_twice_rewinds_messages_and_files() {
    let rig = rig_in_order([
        Reply::text("First."),
        write_a(),
        Reply::text("Written."),
        Reply::text("Otherwise."),
    ]);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "accept-edits"], (80, 24));
    terminal.until_text("> ");
    send_prompt(&mut terminal, "one", "First.");
    send_prompt(&mut terminal, "write a file", "Written.");
    assert!(rig.project().join("a.txt").exists());
    terminal.press(ESC);
    terminal.until_text("Esc again");
    terminal.press(ESC);
    terminal.until_text("Rewind to before which message?");
    assert!(
        terminal.text().contains("▸ write a file"),
        "{}",
        terminal.text()
    );
    terminal.press("\r");
    terminal.until_text("Back to: write a file");
    terminal.press(DOWN);
    terminal.until_text("▸ 2 messages and files");
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
    let sent = request_body(&rig, 3)["messages"].to_string();
    assert!(
        sent.contains("write a file elsewhere")
            && sent.contains("First.")
            && !sent.contains("Written."),
        "{sent}"
    );
    quit(terminal);
    let all = rig.run(&["conversations", "list", "--json"]).json();
    assert_eq!(
        all.as_array().unwrap().len(),
        2,
        "the conversation as it was stays"
    );
}

#[test]
fn rewind_command_can_keep_the_files() {
    let rig = rig_in_order([write_a(), Reply::text("Written.")]);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "accept-edits"], (60, 20));
    terminal.until_text("> ");
    send_prompt(&mut terminal, "write a file", "Written.");
    terminal.press("/rewind\r");
    terminal.until_text("Rewind to before which message?");
    terminal.press("\r");
    terminal.until_text("▸ 1 messages");
    terminal.press("\r");
    terminal.until_text("(rewound)");
    terminal.until("the words in the input", |screen| {
        screen.contents().contains("\n> write a file\n")
    });
    assert!(rig.project().join("a.txt").exists());
    terminal.press("\u{3}");
    quit(terminal);
}

/// Waits for the choice that follows an answer in plan mode, and closes it.
fn close_plan_choice(terminal: &mut Terminal) {
    terminal.until_text("Carry out this plan?");
    terminal.press(ESC);
    terminal.until("the input again", |screen| {
        !screen.contents().contains("Carry out this plan?")
    });
}

#[test]
fn shift_tab_changes_the_mode_and_announces_plan_mode() {
    let write = |name: &str| Reply::call("write_to_file", json!({"path": name, "content": "x\n"}));
    let replies = [
        write("a.txt"),
        Reply::text("One."),
        write("b.txt"),
        Reply::text("Two."),
        Reply::text("Three."),
    ];
    let rig = rig_in_order(replies);
    let mut terminal = Terminal::start(&rig, &["--set", "context.compress=\"never\""], (90, 24));
    terminal.until_text("> ");
    terminal.press(SHIFT_TAB);
    terminal.until_text("accept-edits: edits files without asking");
    send_prompt(&mut terminal, "write a", "One.");
    assert!(rig.project().join("a.txt").exists(), "nobody was asked");
    terminal.press(SHIFT_TAB);
    terminal.until_text("plan: reads and plans");
    send_prompt(&mut terminal, "write b", "Two.");
    assert!(
        !rig.project().join("b.txt").exists(),
        "nothing changes in plan mode"
    );
    close_plan_choice(&mut terminal);
    terminal.press(SHIFT_TAB);
    terminal.until_text("ask: asks before");
    send_prompt(&mut terminal, "thanks", "Three.");
    let before = request_body(&rig, 1);
    let planning = request_body(&rig, 2);
    let after = request_body(&rig, 4);
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
    terminal.until_text("No cache breaks.");
    quit(terminal);
}

#[test]
fn text_after_a_mode_command_is_sent_in_that_mode() {
    let write = |name: &str| Reply::call("write_to_file", json!({"path": name, "content": "x\n"}));
    let replies = [
        Reply::text("Because."),
        write("a.txt"),
        Reply::text("Planned."),
        Reply::text("Fixed."),
    ];
    let rig = rig_in_order(replies);
    let mut terminal = Terminal::start(&rig, &[], (90, 24));
    terminal.until_text("> ");
    terminal.press("/ask why?\r");
    terminal.until_text("Because.");
    close_plan_choice(&mut terminal);
    // The mode stays.
    terminal.press("write a\r");
    terminal.until_text("Planned.");
    close_plan_choice(&mut terminal);
    assert!(!rig.project().join("a.txt").exists());
    terminal.press("/coding fix the bug\r");
    terminal.until_text("ask: asks before");
    terminal.until_text("Fixed.");
    terminal.until_idle();
    let sent = |request: usize| request_body(&rig, request)["messages"].to_string();
    assert!(
        sent(0).contains("why?") && !sent(0).contains("/ask why?"),
        "{}",
        sent(0)
    );
    assert!(
        sent(3).contains("fix the bug") && !sent(3).contains("/coding"),
        "{}",
        sent(3)
    );
    quit(terminal);
}

#[test]
fn mode_commands_of_other_agents_send_the_rest_as_typed() {
    let typed = [
        ("/auto  go on  slowly", "auto", "go on  slowly"),
        (
            "/architect /etc/hosts: what is it?",
            "plan",
            "/etc/hosts: what is it?",
        ),
        ("/code \"quoted\" fix", "ask", "\"quoted\" fix"),
        ("/chat @none.txt why?", "plan", "@none.txt why?"),
        ("/act /plan nested", "plan", "nested"),
        ("/endplan done", "ask", "done"),
    ];
    let answer = |number: usize| format!("Answer {number}.");
    let rig = rig_in_order((0..typed.len()).map(|number| Reply::text(answer(number))));
    let mut terminal = Terminal::start(&rig, &[], (100, 40));
    terminal.until_text("> ");
    for (number, (input, mode, sent)) in typed.into_iter().enumerate() {
        terminal.press(&format!("{input}\r"));
        terminal.until_text(&answer(number));
        if mode == "plan" {
            close_plan_choice(&mut terminal);
        } else {
            terminal.until_text(&format!("{mode}: "));
        }
        terminal.until_idle();
        let body = request_body(&rig, number);
        let newest = body["messages"].as_array().unwrap().last().unwrap();
        let prompt = newest["content"].to_string();
        let escaped = json!(sent).to_string();
        assert!(
            prompt.contains(&escaped[1..escaped.len() - 1]),
            "{input}: {prompt}"
        );
        let command = input.split_whitespace().next().unwrap();
        assert!(!prompt.contains(command), "{input}: {prompt}");
    }
    quit(terminal);
}

#[test]
fn existing_path_that_begins_like_a_command_is_a_prompt() {
    let rig = rig_in_order([Reply::text("It builds the index.")]);
    rig.write("index/build/main.rs", "fn main() {}\n");
    let mut terminal = Terminal::start(&rig, &[], (100, 40));
    terminal.until_text("> ");
    terminal.press("/index/rebuild x\r");
    terminal.until_text("Unknown command `/index/rebuild`");
    send_prompt(
        &mut terminal,
        "/index/build/main.rs: what does it do?",
        "It builds the index.",
    );
    let sent = request_body(&rig, 0)["messages"].to_string();
    assert!(
        sent.contains("/index/build/main.rs: what does it do?"),
        "{sent}"
    );
    assert_eq!(rig.server.generation_requests().len(), 1);
    quit(terminal);
}

#[test]
fn noun_and_verb_run_haft_beside_the_conversation() {
    let rig = rig_in_order([]);
    rig.write("style.md", "Use tabs.\n");
    let mut terminal = Terminal::start(&rig, &["--set", "context.compact_at=0.77"], (90, 40));
    terminal.until_text("> ");
    for (typed, shown) in [
        ("/rules /list", "No rules yet"),
        ("/rules /add style style.md", ".haft/rules/style.md"),
        ("/rules /show style", "Use tabs."),
        ("/models /list", "USD/M IN"),
        ("/mcp /list", "There are no MCP servers"),
        ("/lib /list", "This project uses no libraries yet"),
        (
            "/permissions /add \"Bash(git log:*)\"",
            "Added 1 allow rule",
        ),
        ("/conf retry.attempts:7", "set `retry.attempts` in"),
        ("/config /get context.compact_at", "0.77"),
    ] {
        terminal.press(&format!("{typed}\r"));
        terminal.until_text(shown);
    }
    let saved = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    assert!(
        saved.contains("attempts = 7") && saved.contains("git log"),
        "{saved}"
    );
    assert_eq!(rig.server.requests().len(), 0);
    quit(terminal);
}

#[test]
fn unknown_commands_name_the_nearest_and_are_not_sent() {
    let rig = rig_in_order([]);
    let mut terminal = Terminal::start(&rig, &[], (100, 40));
    terminal.until_text("> ");
    for (typed, shown) in [
        ("/comit now", "did you mean `/commit`?"),
        ("/rules/list", "did you mean `/rules`?"),
        (" /reusme x", "did you mean `/resume`?"),
        ("/ask /codign x", "did you mean `/coding`?"),
        ("/index/build", "nothing has to be indexed"),
        ("/xylophone x", "Unknown command `/xylophone`"),
    ] {
        terminal.press(&format!("{typed}\r"));
        terminal.until_text(shown);
        terminal.until_idle();
    }
    assert_eq!(rig.server.requests().len(), 0);
    quit(terminal);
}

#[test]
fn resume_outside_plan_mode_announces_its_end() {
    let rig = rig_in_order(["One.", "Two.", "Three.", "Four."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &[], (90, 24));
    terminal.until_text("> ");
    send_prompt(&mut terminal, "one", "One.");
    (0..2).for_each(|_| terminal.press(SHIFT_TAB));
    terminal.until_text("plan: reads and plans");
    send_prompt(&mut terminal, "two", "Two.");
    terminal.until_text("Carry out this plan?");
    terminal.press(ESC);
    terminal.until("the input again", |screen| {
        !screen.contents().contains("Carry out this plan?")
    });
    quit(terminal);
    assert_eq!(rig.task(&["-c", "three"]).code(), 0);
    assert_eq!(rig.task(&["-c", "four"]).code(), 0);
    let told = |request: usize| {
        let messages = request_body(&rig, request)["messages"].to_string();
        (
            messages.matches("switched to plan mode").count(),
            messages.matches("has left plan mode").count(),
        )
    };
    assert_eq!([0, 1, 2, 3].map(told), [(0, 0), (1, 0), (1, 1), (1, 1)]);
}

#[test]
fn mode_change_applies_to_the_next_call_of_the_turn() {
    let write = |name: &str| Reply::call("write_to_file", json!({"path": name, "content": "x\n"}));
    let rig = rig_in_order([write("a.txt"), write("b.txt"), Reply::text("Done.")]);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_armed();
    terminal.press(SHIFT_TAB);
    terminal.until_text("accept-edits: ");
    terminal.press("\r");
    terminal.until_text("Done.");
    terminal.until_idle();
    assert!(
        rig.project().join("b.txt").exists(),
        "only the first was asked about"
    );
    quit(terminal);
}

#[test]
fn queued_call_is_judged_by_the_mode_at_its_start() {
    for (presses, mode, done) in [
        (1, "plan: reads and plans", false),
        (3, "accept-edits: edits files", true),
    ] {
        let gate = json!({"command": "touch begun; while [ ! -e go ]; do sleep 0.02; done"});
        let write = json!({"path": "second", "content": "x"});
        let calls = [
            ScriptCall::new("execute_command", gate),
            ScriptCall::new("write_to_file", write),
        ];
        let rig = rig_in_order([
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
        if !done {
            close_plan_choice(&mut terminal);
        }
        terminal.until_idle();
        assert_eq!(rig.project().join("second").exists(), done, "{mode}");
        quit(terminal);
    }
}

#[test]
fn model_command_shows_the_price_and_switches() {
    let rig = rig_in_order(["One.", "Two."].map(Reply::text));
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let other = "[models.\"mock/other\"]\ncontext_window = 100000\nmax_output_tokens = 4096\n\
                 price = { input = 6.0, cached_input = 0.6, cache_write = 7.5, output = 30.0 }\n";
    rig.configure(&format!("{config}{other}"));
    let mut terminal = Terminal::start(&rig, &[], (100, 24));
    terminal.until_text("> ");
    send_prompt(&mut terminal, "one", "One.");
    terminal.press("/model other\r");
    terminal.until_text("Switch model");
    let shown = terminal.text();
    assert!(
        shown.contains("▸ mock/other") && shown.contains(" tokens ($0."),
        "{shown}"
    );
    assert!(
        !shown.contains(&format!("mock/{MODEL}  ")),
        "the filter holds: {shown}"
    );
    terminal.press("\r");
    terminal.until_text("Switched to mock/other.");
    send_prompt(&mut terminal, "two", "Two.");
    assert_eq!(request_body(&rig, 0)["model"], MODEL);
    assert_eq!(request_body(&rig, 1)["model"], "other");
    terminal.press("/context\r");
    terminal.until_text("the model was switched");
    quit(terminal);
}

/// Regression: `/context` counted the next request differently from the status line below it, whose
/// count pruning uses.
#[test]
fn context_command_applies_the_tokenizer_factor() {
    let rig = rig_in_order([Reply::text("One.")]);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let window = "context_window = 200000\n";
    assert!(config.contains(window));
    rig.configure(&config.replace(window, "context_window = 40000\ntokenizer_factor = 3.0\n"));
    let mut terminal = Terminal::start(&rig, &[], (80, 30));
    terminal.until_text("> ");
    send_prompt(&mut terminal, "one", "One.");
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
    quit(terminal);
}

#[test]
fn compact_command_archives_older_rounds() {
    let summary = Reply::summary("Everything about the whale.");
    let [one, two, three, four] = ["One.", "Two.", "Three.", "Four."].map(Reply::text);
    let replies = [one, two, three, summary, four];
    let rig = rig_in_order(replies);
    let mut terminal = Terminal::start(&rig, &["--set", "context.keep_rounds=1"], (80, 24));
    terminal.until_text("> ");
    terminal.press("/compact\r");
    terminal.until_text("Nothing to archive yet");
    let story = format!(
        "\u{1b}[200~a long story about {}\u{1b}[201~",
        "a whale ".repeat(300)
    );
    send_prompt(&mut terminal, &story, "One.");
    terminal.until_idle();
    terminal.press("/compact\r");
    terminal.until_text("Nothing to archive besides the newest step");
    terminal.until_idle();
    send_prompt(&mut terminal, "two", "Two.");
    send_prompt(&mut terminal, "three", "Three.");
    terminal.press("/compact the name of the whale\r");
    terminal.until_text("Archived 2 older rounds");
    terminal.until_text("instead of");
    assert!(
        !terminal.text().contains("has 0 tokens"),
        "{}",
        terminal.text()
    );
    terminal.until_idle();
    assert!(
        request_body(&rig, 3)
            .to_string()
            .contains("the name of the whale")
    );
    send_prompt(&mut terminal, "four", "Four.");
    let sent = request_body(&rig, 4).to_string();
    assert!(
        sent.contains("Everything about the whale.") && sent.matches("a whale").count() < 20,
        "{sent}"
    );
    quit(terminal);
}

#[test]
fn compact_command_can_be_interrupted_without_effect() {
    let replies = [
        Reply::text("One."),
        Reply::text("Two."),
        slow_reply(&"a summary that takes long ".repeat(400)),
        Reply::text("Three."),
    ];
    let rig = rig_in_order(replies);
    let mut terminal = Terminal::start(&rig, &["--set", "context.keep_rounds=1"], (80, 24));
    terminal.until_text("> ");
    send_prompt(&mut terminal, "the first words", "One.");
    send_prompt(&mut terminal, "two", "Two.");
    terminal.press("/compact\r");
    terminal.until_text("Archiving 1 older");
    terminal.press(ESC);
    terminal.until_text("Interrupted; nothing was archived.");
    terminal.until_idle();
    send_prompt(&mut terminal, "three", "Three.");
    assert!(
        request_body(&rig, 3)
            .to_string()
            .contains("the first words")
    );
    quit(terminal);
}

#[test]
fn prompt_typed_during_a_turn_joins_it() {
    let rig = rig_in_order([wait_for_go_call(), Reply::text("Understood.")]);
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
    let sent = request_body(&rig, 1)["messages"].to_string();
    assert!(
        sent.contains("while [ ! -e go ]") && sent.contains("in French please"),
        "{sent}"
    );
    quit(terminal);
    let rounds = rig.export()["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["role"] == "user")
        .count();
    assert_eq!(rounds, 2);
}

#[test]
fn queued_prompt_returns_to_the_input_on_interrupt() {
    let rig = rig_in_order([wait_for_go_call(), Reply::text("Fine.")]);
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
    let sent = request_body(&rig, 1)["messages"].to_string();
    assert_eq!(sent.matches("in French please").count(), 1, "once: {sent}");
    quit(terminal);
}

#[test]
fn context_edit_command_shows_the_price_and_masks() {
    let rig = rig_in_order(["One.", "Two.", "Three.", "Four."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &[], (90, 24));
    terminal.until_text("> ");
    send_prompt(&mut terminal, "the secret is 4711", "One.");
    send_prompt(&mut terminal, "two", "Two.");
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
        terminal.text().contains("The next request resends"),
        "{}",
        terminal.text()
    );
    terminal.press("\r");
    terminal.until_text("1 edit is in force");
    send_prompt(&mut terminal, "three", "Three.");
    assert!(
        !request_body(&rig, 2)["messages"]
            .to_string()
            .contains("4711")
    );
    terminal.press("/context edit\r");
    terminal.until_text("▸ undo the last edit of 1");
    terminal.press("\r");
    terminal.until_text("▸ undo it");
    terminal.press("\r");
    terminal.until_text("0 edits are in force");
    send_prompt(&mut terminal, "four", "Four.");
    assert!(
        request_body(&rig, 3)["messages"]
            .to_string()
            .contains("4711")
    );
    quit(terminal);
}

#[test]
fn shell_command_output_is_sent_with_the_next_prompt() {
    let rig = rig_in_order(["One.", "Two."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("!echo $((6 * 7)) whales; seq 3000; exit 3\r");
    terminal.until_text("sent to the model with your next message");
    send_prompt(&mut terminal, "how many?", "One.");
    send_prompt(&mut terminal, "sure?", "Two.");
    let messages = request_body(&rig, 0)["messages"].to_string();
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
        request_body(&rig, 1)["messages"]
            .to_string()
            .matches("42 whales\\n")
            .count(),
        1
    );
    quit(terminal);
}

#[test]
fn diff_undo_and_redo_commands_apply_to_changes() {
    let rig = rig_in_order([write_a(), Reply::text("Written.")]);
    let mut terminal = Terminal::start(&rig, &["--permission-mode", "accept-edits"], (80, 40));
    terminal.until_text("> ");
    terminal.press("/undo\r");
    terminal.until_text("This conversation is still empty.");
    send_prompt(&mut terminal, "write a file", "Written.");
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
    terminal.until_text("Undo: Write a.txt?");
    assert!(terminal.text().contains("removed") && rig.project().join("a.txt").exists());
    terminal.press(DOWN);
    terminal.until_text("▸ 2 Cancel");
    terminal.press("\r");
    terminal.until("the input again", |screen| {
        !screen.contents().contains("Esc closes")
    });
    assert!(rig.project().join("a.txt").exists(), "it was left");
    terminal.press("/undo\r");
    terminal.until_text("▸ 1 Undo");
    terminal.press("\r");
    terminal.until_text("Undid");
    assert!(!rig.project().join("a.txt").exists());
    terminal.press("/redo\r");
    terminal.until_text("▸ 1 Redo");
    terminal.press("\r");
    terminal.until_text("Redid");
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "one\ntwo\n"
    );
    quit(terminal);
}

#[test]
fn files_command_lists_documents_and_focus_files() {
    let rig = rig_in_order([Reply::text("Hello."), Reply::text("Again.")]);
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
        terminal.text().contains(" tokens\n($0."),
        "{}",
        terminal.text()
    );
    terminal.press("\r");
    terminal.until_text("focus: src/main.rs, b.rs, c.rs");
    terminal.press("/files remove src/main.rs\r");
    terminal.until_text("▸ change them");
    terminal.press("\r");
    terminal.until_text("focus: b.rs, c.rs");
    send_prompt(&mut terminal, "again", "Again.");
    let system = request_body(&rig, 1)["system"].to_string();
    assert!(
        system.contains("b.rs") && !system.contains("src/main.rs"),
        "{system}"
    );
    quit(terminal);
}

#[test]
fn view_command_shows_its_price_and_lays_out_the_next_request() {
    let rig = rig_in_order(["Hello.", "Again.", "Layered."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (100, 30));
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("/view whatever\r");
    terminal.until_text("/view layered");
    terminal.press("/view\r");
    terminal.until_text("▸ layered (current)");
    terminal.press(DOWN);
    terminal.until_text("▸ execute");
    terminal.press("\r");
    terminal.until_text("Switch to the view `execute`?");
    terminal.until_text("▸ switch");
    assert!(terminal.text().contains("($0."), "{}", terminal.text());
    terminal.press("\r");
    terminal.until_text("view: execute");
    send_prompt(&mut terminal, "again", "Again.");
    let shown = |request| request_body(&rig, request).to_string();
    assert!(!shown(0).contains("<dialogue>") && shown(1).contains("<dialogue>"));
    terminal.press("/view /layered\r");
    terminal.until_text("Switch to the view `layered`?");
    terminal.until_text("▸ switch");
    terminal.press("\r");
    terminal.until_text("view: layered");
    send_prompt(&mut terminal, "once more", "Layered.");
    assert!(!shown(2).contains("<dialogue>"), "{}", shown(2));
    quit(terminal);
}

#[test]
fn view_command_applies_before_the_first_prompt_for_free() {
    let rig = rig_in_order([Reply::text("Hello.")]);
    let mut terminal = Terminal::start(&rig, &[], (100, 30));
    terminal.until_text("> ");
    terminal.press("/view execute\r");
    terminal.until_text("view: execute");
    send_prompt(&mut terminal, "hi", "Hello.");
    let sent = request_body(&rig, 0).to_string();
    assert!(sent.contains("<dialogue>"), "{sent}");
    quit(terminal);
}

#[test]
fn useful_command_changes_the_next_request() {
    let rig = rig_in_order([Reply::text("Hello."), Reply::text("Again.")]);
    rig.write("a b.txt", "one\ntwo\nthree\nfour\n");
    let mut terminal = Terminal::start(&rig, &[], (110, 40));
    terminal.until_text("> ");
    terminal.press("/useful add 'a b.txt' 2-3 the user's middle\r");
    terminal.until_text("the user's middle");
    terminal.press("/useful add 'a b.txt' 9-1 x\r");
    terminal.until_text("/useful remove NUMBER");
    terminal.press("/useful add ../gone.txt 1 x\r");
    terminal.until_text("`../gone.txt`");
    send_prompt(&mut terminal, "hi", "Hello.");
    terminal.press("/useful add 'a b.txt' 4 the end\r");
    terminal.until_text("lines 2-4");
    terminal.press("/useful\r");
    terminal.until_text("DESCRIPTION");
    terminal.press("/useful remove 7\r");
    terminal.until_text("No range has the number 7");
    let first = request_body(&rig, 0).to_string();
    assert!(
        first.contains("the user's middle") && first.contains("three"),
        "{first}"
    );
    assert!(!first.contains("four"), "{first}");
    terminal.press("/useful remove 2\r");
    terminal.until_text("No longer in view");
    send_prompt(&mut terminal, "again", "Again.");
    let body = request_body(&rig, 1);
    let newest = body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(!newest.contains("four"), "{newest}");
    quit(terminal);
    let listed = rig.run(&["useful", "list", "--json"]).json();
    assert_eq!(
        listed,
        json!([]),
        "the session and the command line see one list"
    );
}

#[test]
fn waiting_ranges_outlive_a_stopped_prompt_and_a_new_agent() {
    let rig = rig_in_order([Reply::text("Reviewed."), Reply::text("Again.")]);
    rig.write("a.txt", "alpaca\nbadger\ncoyote\n");
    add_reviewer(&rig);
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let stop = "grep -q SECRET && { echo 'not this' >&2; exit 2; } || true";
    add_hooks(&rig, &[("user_prompt_submit", "", stop)]);
    let mut terminal = Terminal::start(&rig, &[], (110, 40));
    terminal.until_text("> ");
    terminal.press("/useful add a.txt 1 \"the start\"\r");
    terminal.until_text("the start");
    terminal.press("/useful add a.txt 3 the \"end\"\r");
    terminal.until_text("the \"end\"");
    terminal.press("/useful remove 1\r");
    terminal.until_text("No longer in view");
    terminal.press("SECRET\r");
    terminal.until_text("not this");
    terminal.until_idle();
    // The prompt was not stored, so there is still no conversation.
    terminal.press("/useful /add a.txt 2 the middle\r");
    terminal.until_text("the middle");
    terminal.press("/agent reviewer\r");
    terminal.until_text("▸ switch");
    terminal.press("\r");
    terminal.until_text("agent: reviewer");
    send_prompt(&mut terminal, "look", "Reviewed.");
    let body = request_body(&rig, 0);
    assert!(
        body["system"].to_string().contains("nothing else"),
        "{body}"
    );
    let sent = body["messages"].to_string();
    let lines = ["alpaca", "badger", "coyote"].map(|line| sent.contains(line));
    assert_eq!(lines, [false, true, true], "{sent}");
    quit(terminal);
    let listed = rig.run(&["useful", "list", "--json"]).json();
    assert_eq!(
        listed.as_array().unwrap().len(),
        1,
        "the lines touch: {listed}"
    );
}

#[test]
fn waiting_ranges_go_to_a_resumed_conversation() {
    let rig = rig_in_order([Reply::text("Hello."), Reply::text("Again.")]);
    rig.write("a.txt", "alpaca\nbadger\n");
    assert_eq!(rig.task(&["hi"]).code(), 0);
    let mut terminal = Terminal::start(&rig, &[], (110, 40));
    terminal.until_text("> ");
    terminal.press("/useful add a.txt 2 why\r");
    terminal.until_text("why");
    terminal.press("/resume\r");
    terminal.until_text("▸ hi");
    terminal.press("\r");
    terminal.until_text("Hello.");
    send_prompt(&mut terminal, "again", "Again.");
    let sent = request_body(&rig, 1)["messages"].to_string();
    assert!(
        sent.contains("badger") && !sent.contains("alpaca"),
        "{sent}"
    );
    quit(terminal);
}

/// Adds an agent with one tool and a role.
fn add_reviewer(rig: &Rig) {
    rig.write(
        ".haft/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews changes\ntools: [read_file]\n---\nYou review, and nothing else.\n",
    );
}

#[test]
fn agent_command_applies_before_the_first_prompt() {
    let rig = rig_in_order(["Hello.", "Mine."].map(Reply::text));
    add_reviewer(&rig);
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let mut terminal = Terminal::start(&rig, &[], (110, 40));
    terminal.until_text("> ");
    terminal.press("/agent /reviewer\r");
    terminal.until_text("agent: reviewer");
    send_prompt(&mut terminal, "hi", "Hello.");
    terminal.press("/clear\r");
    terminal.press("/agent main\r");
    terminal.until_text("agent: main");
    send_prompt(&mut terminal, "hi", "Mine.");
    let system = [0, 1].map(|request| request_body(&rig, request)["system"].to_string());
    assert_eq!(
        system.map(|text| text.contains("nothing else")),
        [true, false]
    );
    quit(terminal);
}

#[test]
fn notes_command_works_before_and_in_a_conversation() {
    let rig = rig_in_order([
        Reply::text("Hello."),
        Reply::call("read_file", json!({"path": "src/pay.rs"})),
        Reply::text("Read."),
    ]);
    rig.write("src/pay.rs", "fn pay() {}\n");
    let mut terminal = Terminal::start(&rig, &[], (110, 40));
    terminal.until_text("> ");
    terminal.press("/notes\r");
    terminal.until_text("No notes yet");
    terminal.press("/notes add src money is in cents\r");
    terminal.until_text("`src`: money is in cents");
    send_prompt(&mut terminal, "hi", "Hello.");
    terminal.press("/notes add src/pay.rs \"tested by hand\"\r");
    terminal.until_text("`src/pay.rs`: tested by hand");
    terminal.press("/notes add /etc secret\r");
    terminal.until_text("is not part of the project");
    terminal.press("/notes add src\r");
    terminal.until_text("The note is empty");
    terminal.press("/notes add\r");
    terminal.until_text("/notes remove ID");
    terminal.press("/notes remove nothing\r");
    terminal.until_text("`list` shows all notes");
    send_prompt(&mut terminal, "read it", "Read.");
    let sent = request_body(&rig, 2).to_string();
    assert!(sent.contains("money is in cents"), "{sent}");
    assert!(sent.contains("tested by hand"), "{sent}");
    let id = rig.run(&["notes", "list", "--json"]).json()[0]["id"].clone();
    terminal.press(&format!("/notes /remove {}\r", id.as_str().unwrap()));
    terminal.until_text("Deleted note");
    quit(terminal);
    let left = rig.run(&["notes", "list", "--json"]).json();
    assert_eq!(left.as_array().unwrap().len(), 1, "{left}");
}

#[test]
fn agent_command_switches_role_and_tools_at_a_quoted_price() {
    let rig = rig_in_order(["Hello.", "Reviewed.", "Back."].map(Reply::text));
    add_reviewer(&rig);
    rig.write(
        ".haft/agents/empty.md",
        "---\nname: empty\ndescription: Has no role\n---\n",
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (110, 40));
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("/agent nobody\r");
    terminal.until_text("No agent `nobody`; there are: empty, reviewer, main");
    terminal.press("/agent empty\r");
    terminal.until_text("the agent `empty` has no role");
    terminal.press("/agent\r");
    terminal.until_text("▸ main (current)");
    terminal.press(DOWN);
    terminal.press(DOWN);
    terminal.until_text("▸ reviewer");
    terminal.press("\r");
    terminal.until_text("Continue with the agent `reviewer`?");
    terminal.until_text("▸ switch");
    assert!(terminal.text().contains("($0."), "{}", terminal.text());
    terminal.press("\r");
    terminal.until_text("agent: reviewer");
    send_prompt(&mut terminal, "look", "Reviewed.");
    terminal.press("/agent main\r");
    terminal.until_text("Continue with the agent `main`?");
    terminal.until_text("▸ switch");
    terminal.press("\r");
    terminal.until_text("agent: main");
    send_prompt(&mut terminal, "and now", "Back.");
    let tools = |request| {
        request_body(&rig, request)["tools"]
            .as_array()
            .unwrap()
            .len()
    };
    assert_eq!((tools(0), tools(1)), (tools(2), 1));
    let system = |request| request_body(&rig, request)["system"].to_string();
    assert!(!system(0).contains("nothing else") && system(1).contains("nothing else"));
    assert!(!system(2).contains("You review, and nothing else"));
    assert!(
        request_body(&rig, 2)["messages"]
            .to_string()
            .contains("Reviewed."),
        "one conversation"
    );
    quit(terminal);
}

/// A rig with a server named `web`.
fn rig_with_web_server(there: &McpServer, replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = rig_in_order(replies);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[mcp_servers.web]\nurl = \"{}\"\n",
        there.url()
    ));
    rig
}

#[test]
fn server_prompts_and_resources_are_completed_and_sent() {
    let there = McpServer::start(Revision::Current).unwrap();
    let rig = rig_with_web_server(&there, ["One.", "Two.", "Three."].map(Reply::text));
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    send_prompt(&mut terminal, "/mcp__web__greet Ada", "One.");
    assert!(
        request_body(&rig, 0)["messages"]
            .to_string()
            .contains("Hello \\\"Ada\\\".")
    );
    quit(terminal);
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
        request_body(&rig, 1)["messages"]
            .to_string()
            .contains("content of a")
    );
    quit(terminal);
}

#[test]
fn server_form_is_filled_in_at_the_terminal() {
    let there = McpServer::start(Revision::Previous).unwrap();
    let ask = json!({"server_name": "web", "tool_name": "ask", "arguments": {}});
    let rig = rig_with_web_server(
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
        request_body(&rig, 1)["messages"]
            .to_string()
            .contains("Ada"),
        "the server heard it"
    );
    quit(terminal);
}

#[test]
fn trust_question_keeps_hostile_repositories_from_running() {
    for (name, files) in CASES {
        let rig = Rig::untrusted(
            Api::Anthropic,
            Script::replies([Reply::text("Hello.")]).unwrap(),
        );
        let pwned = rig.home().join("pwned");
        write_case(&rig.project(), files, &pwned);
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
        quit(terminal);
        assert!(!pwned.exists(), "{name}");
        let sent = request_body(&rig, 0).to_string();
        assert!(
            !sent.contains("Obey") && !sent.contains("Ignore all"),
            "{name}: {sent}"
        );
    }
}
