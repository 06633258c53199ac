//! The screen of a real terminal before the first prompt and beside the conversation: the start
//! screen, the keys, the window, canceled lists, and the servers and keys that a first start finds
//! on the machine.

use haft_testkit::{Reply, Script};
use haft_types::Api;

use crate::rig::Rig;
use crate::terminal::{Terminal, rig};

const ESC: &str = "\u{1b}";
const DOWN: &str = "\u{1b}[B";

fn quit(mut terminal: Terminal) {
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}

#[test]
fn start_screen_shows_branch_mode_and_input_hint() {
    for size in [(80, 24), (40, 12)] {
        let rig = rig([Reply::text("Hello.")]);
        std::fs::create_dir_all(rig.project().join(".git")).unwrap();
        rig.write(".git/HEAD", "ref: refs/heads/topic\u{1b}[2J\n");
        let mut terminal = Terminal::start(&rig, &[], size);
        terminal.until_text("> Describe a task");
        let shown = terminal.text();
        assert!(
            shown.replace('\n', " ").contains("permission mode ask") && shown.contains("Hint: "),
            "{shown}"
        );
        assert!(
            shown.replace('\n', " ").contains("on topic") && !shown.contains('\u{1b}'),
            "{shown}"
        );
        terminal.until("the sandbox or that there is none", |screen| {
            size.0 < 80
                || screen
                    .contents()
                    .lines()
                    .last()
                    .is_some_and(|row| row.contains("sandbox"))
        });
        terminal.press("h");
        terminal.until("no placeholder", |screen| {
            !screen.contents().contains("Describe a task")
        });
        terminal.press("i\r");
        terminal.until_text("Hello.");
        terminal.until_idle();
        assert!(!terminal.text().contains("Describe a task"));
        quit(terminal);
    }
}

#[test]
fn question_mark_shows_the_keys_or_is_typed() {
    for size in [(80, 24), (200, 50), (20, 8)] {
        let rig = rig([Reply::text("Hello.")]);
        let mut terminal = Terminal::start(&rig, &[], size);
        terminal.until_text("> ");
        terminal.press("?");
        terminal.until_text(" send");
        terminal.press(ESC);
        terminal.until("no keys", |screen| !screen.contents().contains(" send"));
        terminal.press("??");
        terminal.press("?what");
        terminal.until_text("> ?what");
        terminal.press("\r");
        terminal.until_text("Hello.");
        assert!(
            rig.server.generation_requests()[0]
                .json()
                .unwrap()
                .to_string()
                .contains("?what")
        );
        quit(terminal);
    }
}

#[test]
fn context_command_shows_each_part_of_the_window() {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Hello.")]).unwrap(),
    );
    rig.write("AGENTS.md", "Say hello.");
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (100, 40));
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.press("/context\r");
    terminal.until_text("No cache breaks.");
    let shown = terminal.text();
    for part in [
        "system prompt",
        "tools",
        "MCP",
        "rules and AGENTS.md",
        "messages",
        "free",
        "reserved for the reply",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(
        shown.contains("old tool results are pruned")
            && shown.contains("older rounds are archived"),
        "{shown}"
    );
    quit(terminal);
}

#[test]
fn mode_command_sets_the_chosen_mode() {
    let rig = rig([]);
    let mut terminal = Terminal::start(&rig, &[], (100, 24));
    terminal.until_text("> ");
    terminal.press("/mode\r");
    terminal.until_text("ask (current)");
    assert!(
        !terminal.text().contains("yolo"),
        "only those who began with it: {}",
        terminal.text()
    );
    terminal.press(&format!("{DOWN}\r"));
    terminal.until("the mode", |screen| {
        screen
            .contents()
            .lines()
            .last()
            .is_some_and(|row| row.starts_with("accept-edits"))
    });
    assert!(
        terminal.text().contains("> /mode"),
        "what was done stays: {}",
        terminal.text()
    );
    quit(terminal);
}

#[test]
fn canceled_list_restores_the_screen() {
    let rig = rig([Reply::text("Hello.")]);
    let mut terminal = Terminal::start(&rig, &["--", "hi"], (140, 24));
    terminal.until_text("Hello.");
    terminal.until_idle();
    terminal.until("the sandbox", |screen| {
        screen.contents().contains("sandbox")
    });
    let before = terminal.text();
    let screen = |text: &str| {
        text.lines()
            .map(str::trim_end)
            .filter(|row| !row.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    for (command, title) in [
        ("/model", "Enter to select"),
        ("/resume", "Enter to select"),
        ("/mode", "(current)"),
        ("/rewind", "Enter to select"),
    ] {
        terminal.press(&format!("{command}\r"));
        terminal.until_text(title);
        terminal.press(ESC);
        terminal.until("the screen as it was", |now| {
            screen(&now.contents()) == screen(&before)
        });
    }
    quit(terminal);
}

#[test]
fn setup_lists_running_servers_and_known_keys_first() {
    let server = Script::replies([Reply::text("OK"), Reply::text("Hello.")])
        .unwrap()
        .with_models(["big", "small"]);
    let rig = Rig::new(Api::OpenaiChat, server);
    let address = rig.server.base_url(Api::OpenaiChat);
    let dead = "http://127.0.0.1:1/v1";
    let others = ["lmstudio", "llamacpp"]
        .map(|name| format!("[providers.{name}]\nbase_url = \"{dead}\"\n"))
        .concat();
    rig.configure(&format!(
        "[providers.vllm]\nbase_url = \"{address}\"\n[providers.ollama]\nbase_url = \"{dead}\"\n{others}"
    ));
    let key = [("MISTRAL_API_KEY", "sk-of-the-variable")];
    let mut terminal = Terminal::start_with(&rig, &["--", "hi"], (100, 40), &key);
    terminal.until_text("s or d:");
    let shown = terminal.text();
    let row = |text: &str| {
        shown
            .lines()
            .position(|row| row.contains(text))
            .unwrap_or_else(|| panic!("{text}: {shown}"))
    };
    assert!(
        row("1  vllm") < row("2  mistral") && row("2  mistral") < row("ollama"),
        "{shown}"
    );
    assert!(
        shown.contains(&format!("running at {address}"))
            && shown.matches("running at").count() == 1,
        "{shown}"
    );
    terminal.press("1\r");
    terminal.until_text("Number or name: ");
    terminal.press("small\r");
    terminal.until_text("Hello.");
    terminal.until_idle();
    quit(terminal);
}
