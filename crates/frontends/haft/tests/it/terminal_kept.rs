//! Prompt history across sessions, the terminal after a panic, and vim keys.

use haft_testkit::Reply;

use crate::terminal::{Terminal, rig};

#[test]
fn history_search_finds_prompts_of_earlier_sessions() {
    let rig = rig([Reply::text("One."), Reply::text("Two.")]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("the first words with AKIAIOSFODNN7EXAMPLE\r");
    terminal.until_text("One.");
    terminal.until_idle();
    terminal.press("/cost\r");
    terminal.until_text("1 request:");
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);

    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    terminal.press("\u{12}first");
    terminal.until_text("the first words with");
    assert!(
        !terminal.text().contains("AKIAIOSFODNN7EXAMPLE"),
        "{}",
        terminal.text()
    );
    terminal.press("\u{1b}");
    terminal.until("the end of the search", |screen| {
        !screen.contents().contains("search: ")
    });
    terminal.press("\u{1b}[A");
    terminal.until_text("> /cost");
    terminal.press("\u{3}\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    let folder = rig.home().join("state/history");
    let files = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| std::fs::read_to_string(file.unwrap().path()).unwrap());
    let kept: String = files.collect();
    assert!(
        kept.contains("the first words") && !kept.contains("AKIAIOSFODNN7EXAMPLE"),
        "{kept}"
    );
}

#[test]
fn panic_restores_the_terminal_and_is_logged() {
    let rig = rig([Reply::text("Never said.")]);
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("> ");
    assert!(!terminal.is_restored());
    // Only debug builds panic on this prompt.
    terminal.press("panic, please\r");
    terminal.until_text("this was asked for");
    let (code, left) = terminal.wait_for_exit();
    assert_eq!(code, 1, "{left}");
    let log = rig.run(&["logs", "--all", "--json"]).stdout();
    assert!(
        log.contains("\"message\":\"panic\"") && log.contains("history.rs"),
        "{log}"
    );
    assert!(!log.contains("this was asked for"), "{log}");
}

#[test]
fn vim_editing_changes_the_input() {
    let rig = rig([Reply::text("Hello.")]);
    rig.configure(
        &(std::fs::read_to_string(rig.home().join("config.toml")).unwrap()
            + "[tui]\nediting = \"vim\"\n"),
    );
    let mut terminal = Terminal::start(&rig, &[], (80, 24));
    terminal.until_text("INSERT");
    terminal.press("say somthing");
    terminal.until_text("> say somthing");
    terminal.press("\u{1b}");
    terminal.until_text("NORMAL");
    terminal.press("bcwhello\r");
    terminal.until_text("Hello.");
    assert!(
        terminal.text().contains("> say hello"),
        "{}",
        terminal.text()
    );
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
}
