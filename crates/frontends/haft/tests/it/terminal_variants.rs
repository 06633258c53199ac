//! Approvals, calls and trust in every place where they appear: calls of MCP servers and sub-agents,
//! plain lines, `haft run --ask`, the web page, and editors.

use std::io::Write as _;
use std::process::Stdio;

use haft_testkit::{Reply, Script, ScriptCall};
use haft_types::Api;
use serde_json::json;

use crate::acp::Editor;
use crate::mcp::{add_shell_server, count_starts};
use crate::permissions::run_at_terminal;
use crate::rig::Rig;
use crate::serve::ServedPage;
use crate::terminal::Terminal;

fn rig_in_order(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap())
}

fn server_call() -> ScriptCall {
    let arguments = json!({"server_name": "s", "tool_name": "show", "arguments": {"text": "hi"}});
    ScriptCall::new("use_mcp_tool", arguments)
}

fn command_call() -> Reply {
    let arguments = json!({"command": "touch made", "requires_approval": false});
    Reply::call("execute_command", arguments)
}

/// A rig whose model calls a tool of an MCP server.
fn rig_with_server_call() -> Rig {
    let rig = rig_in_order([Reply::calls([server_call()]), Reply::text("So be it.")]);
    add_shell_server(&rig);
    rig
}

/// A rig whose sub-agent `scout` replies with `reply` first.
fn rig_with_subagent(reply: Reply) -> Rig {
    let start = json!({"subagents": "mode: parallel\nsubagents:\n  - name: scout\n    task: Look around.\n"});
    let rig = rig_in_order([
        Reply::call("run_named_subagents", start),
        reply,
        Reply::text("Nothing was made."),
        Reply::text("So be it."),
    ]);
    std::fs::create_dir_all(rig.project().join(".haft/agents")).unwrap();
    rig.write(
        ".haft/agents/scout.md",
        "---\nname: scout\ndescription: Looks closely\n---\nYou look.\n",
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    rig
}

/// Types a sentence key by key at an approval; its first letter alone would allow the call always.
fn type_sentence(terminal: &mut Terminal) {
    terminal.press("a");
    terminal.until_text("Always allow this?");
    for end in 2..="actually no".len() {
        let typed = &"actually no"[..end];
        terminal.press(&typed[end - 1..]);
        terminal.until_text(&format!("> {}", typed.trim_end()));
    }
    terminal.press("\r");
}

/// Asserts that no rule was saved, and that a model reads the words of the user.
#[track_caller]
fn assert_refused(rig: &Rig) {
    let rules = rig.run(&["permissions", "list", "--json"]).json();
    let rules = rules.to_string();
    assert!(
        !rules.contains("touch made") && !rules.contains("mcp__s"),
        "{rules}"
    );
    let requests = rig.server.generation_requests();
    let is_told = requests.iter().any(|request| {
        let body = request.json().unwrap().to_string();
        body.contains("They said: actually no")
    });
    assert!(is_told, "no model reads the reason");
}

#[test]
fn sentence_refuses_a_call_of_a_server() {
    let rig = rig_with_server_call();
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
    terminal.until_armed_for("Call s.show");
    type_sentence(&mut terminal);
    terminal.until_text("So be it.");
    assert_refused(&rig);
    assert_eq!(count_starts(&rig), 0, "at the terminal");

    let rig = rig_with_server_call();
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (120, 30));
    terminal.until_text("answer:");
    terminal.answer_plain("actually no");
    terminal.until_text("So be it.");
    assert_refused(&rig);
    assert_eq!(count_starts(&rig), 0, "in plain lines");

    let rig = rig_with_server_call();
    let answers = ["actually no"];
    let Some((ran, shown)) = run_at_terminal(&rig, &["run", "--ask", "go"], "", &answers) else {
        return;
    };
    assert_eq!((ran.code(), count_starts(&rig)), (0, 0), "{shown}");
    assert_refused(&rig);
}

#[test]
fn sentence_refuses_a_call_of_a_subagent() {
    let rig = rig_with_subagent(command_call());
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
    terminal.until_armed_for("Run touch made (sub-agent scout)?");
    type_sentence(&mut terminal);
    terminal.until_text("So be it.");
    assert_refused(&rig);
    assert!(!rig.project().join("made").exists());

    let rig = rig_with_subagent(command_call());
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "go"], (120, 30));
    terminal.until_text("answer:");
    terminal.answer_plain("actually no");
    terminal.until_text("So be it.");
    assert_refused(&rig);
    assert!(!rig.project().join("made").exists());
}

#[test]
fn editor_that_saves_nothing_refuses_no_call_of_a_subagent() {
    let call = json!({"path": "a.txt", "content": "one\n"});
    let rig = rig_with_subagent(Reply::call("write_to_file", call));
    let environment = [("EDITOR", "true")];
    let mut terminal = Terminal::start_with(&rig, &["--", "go"], (100, 30), &environment);
    terminal.until_armed_for("Write a.txt");
    terminal.press("e");
    terminal.until_text("still waiting for your answer");
    terminal.until_armed_for("Write a.txt");
    assert!(!rig.project().join("a.txt").exists());
    terminal.press("n");
    terminal.until_text("So be it.");
    assert!(!rig.project().join("a.txt").exists());
}

#[test]
fn waiting_calls_of_servers_and_subagents_are_not_running() {
    let is_counted = |screen: &str, call: &str| {
        screen
            .lines()
            .any(|row| row.starts_with('…') && row.contains(call) && row.trim_end().ends_with(" s"))
    };
    let calls = Reply::calls([server_call(), server_call()]);
    let rig = rig_in_order([calls, Reply::text("So be it.")]);
    add_shell_server(&rig);
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
    terminal.until_armed_for("Call s.show");
    let shown = terminal.text();
    let waits = shown
        .lines()
        .any(|row| row.starts_with('…') && row.contains("s.show") && row.ends_with("waiting"));
    assert!(waits, "{shown}");
    terminal.press("n");
    terminal.until("the second question", |screen| {
        screen.contents().matches("not allowed").count() == 1
    });
    terminal.until_armed_for("Call s.show");
    terminal.press("n");
    terminal.until_text("So be it.");
    for screen in terminal.shown_screens() {
        assert!(!is_counted(&screen, "s.show"), "nothing ran:\n{screen}");
    }

    let rig = rig_with_subagent(command_call());
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
    terminal.until_armed_for("Run touch made (sub-agent scout)?");
    terminal.press("n");
    terminal.until_text("So be it.");
    for screen in terminal.shown_screens() {
        assert!(!is_counted(&screen, "touch made"), "nothing ran:\n{screen}");
    }
}

#[test]
fn call_that_waits_is_pending_for_editors() {
    let rig = rig_in_order([command_call(), Reply::text("So be it.")]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    editor.permission = "reject_once";
    editor.prompt(&session, "go");
    assert_eq!(editor.asked[0]["toolCall"]["title"], "`touch made`");
    let statuses: Vec<_> = ["tool_call", "tool_call_update"]
        .into_iter()
        .flat_map(|kind| editor.updates_of_kind(kind))
        .filter_map(|update| update["status"].as_str())
        .collect();
    assert!(!statuses.contains(&"in_progress"), "{statuses:?}");
    assert_eq!(statuses.last(), Some(&"failed"));
    assert!(!rig.project().join("made").exists());
}

#[test]
fn approval_of_the_web_page_is_headed_like_in_the_terminal() {
    let rig = rig_with_subagent(command_call());
    let page = ServedPage::start(&rig);
    let place = page.start_run(&rig, "ask", "go");
    page.wait_for_page(&place, "Waiting for approval: Run touch made");
    assert!(!rig.project().join("made").exists());
    let fields = [("do", "deny"), ("approval", "1"), ("reason", "actually no")];
    page.post(&place, &place, &fields);
    page.wait_for_page(&place, "So be it.");
    assert_refused(&rig);
}

#[test]
fn untrusted_folder_is_asked_about_in_plain_lines_and_nowhere_else() {
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [{"type": "command", "command": "touch owned"}]}]}});
    let new_rig = || {
        let script = Script::replies([Reply::text("Hello.").times(9)]).unwrap();
        let rig = Rig::untrusted(Api::Anthropic, script);
        std::fs::create_dir_all(rig.project().join(".claude")).unwrap();
        rig.write(".claude/settings.json", hook.to_string());
        rig
    };
    let rig = new_rig();
    let mut terminal = Terminal::start(&rig, &["--plain", "--", "hi"], (100, 40));
    terminal.until_text("Trust the folder?");
    assert!(terminal.text().contains("touch owned"));
    terminal.press("\r");
    terminal.until_text("Hello.");
    assert!(!rig.project().join("owned").exists(), "in plain lines");

    let rig = new_rig();
    let Some((ran, shown)) = run_at_terminal(&rig, &["run", "--ask", "hi"], "y\n", &[]) else {
        return;
    };
    assert_eq!(ran.code(), 0, "{shown}");
    assert!(!shown.contains("Trust the folder?"), "{shown}");
    assert!(!rig.project().join("owned").exists(), "with --ask");

    let rig = new_rig();
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    editor.prompt(&session, "hi");
    assert!(!rig.project().join("owned").exists(), "in an editor");

    let rig = new_rig();
    let page = ServedPage::start(&rig);
    let place = page.start_run(&rig, "ask", "hi");
    page.wait_for_page(&place, "Hello.");
    assert!(!rig.project().join("owned").exists(), "on the web page");
}

#[test]
fn subagent_shows_its_time_tokens_and_answer() {
    let rig = rig_with_subagent(Reply::text("I looked around."));
    let terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
    terminal.until_text("scout completed (");
    terminal.until("the answer", |screen| {
        let shown = screen.contents();
        shown.contains(" tokens)") && shown.contains("\n  I looked around.\n")
    });
}

#[test]
fn call_of_a_server_shows_its_arguments_and_result() {
    let rig = rig_with_server_call();
    let mut terminal = Terminal::start(&rig, &["--", "go"], (100, 30));
    terminal.until_armed_for("Call s.show(text: hi)?");
    terminal.press("y");
    terminal.until_text("So be it.");
    assert!(
        terminal.text().contains("✓ Call s.show(text: hi)"),
        "{}",
        terminal.text()
    );
}

#[test]
fn exact_folder_wins_over_longer_names() {
    let rig = rig_in_order([Reply::text("I see.")]);
    for file in ["src/login.py", "src-old/a.py", "srcs.txt"] {
        rig.write(file, "pass\n");
    }
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("look at @src");
    terminal.until_text("▸ @src/\n");
    terminal.press("\r");
    terminal.until_text("I see.");
    assert!(terminal.text().contains("> look at @src\n"));
}

#[test]
fn refused_connection_of_the_first_request_is_retried() {
    let rig = rig_in_order([]);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    let address = rig.server.base_url(Api::Anthropic);
    assert!(config.contains(&address), "{config}");
    let config = config.replace(&address, "http://127.0.0.1:1");
    rig.configure(&format!("{config}\n[retry]\nattempts = 2\n"));
    let mut terminal = Terminal::start(&rig, &["--", "go"], (80, 24));
    terminal.until_text("Cannot connect to http://127.0.0.1:1");
    terminal.until_idle();
    // The screens between two polls count, too.
    let screens = terminal.shown_screens();
    for retry in ["retry 1 of 2", "retry 2 of 2"] {
        assert!(
            screens.iter().any(|screen| screen.contains(retry)),
            "{retry}: {}",
            terminal.text()
        );
    }
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn piped_prompt_without_a_terminal_says_why_it_is_not_sent() {
    let rig = rig_in_order([]);
    let mut command = rig.command(&[]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    // haft may exit before it has read its input.
    drop(input.write_all(b"hi\n"));
    drop(input);
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let errors = String::from_utf8(ended.stderr).unwrap();
    assert!(
        errors.contains("an interactive session needs a terminal; without one, use `haft run"),
        "{errors}"
    );
    assert!(rig.server.requests().is_empty());
}
