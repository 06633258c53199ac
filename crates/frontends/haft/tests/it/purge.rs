//! After a purge, no file of haft holds the text of the conversation.

use std::path::{Path, PathBuf};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;
use crate::terminal::Terminal;

/// A single word, so that the search index stores it unchanged.
const PLANTED: &str = "zebraquince7719";

/// Returns the files below a folder that hold the planted word.
fn files_with_planted_word(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files_with_planted_word(&path));
        } else if std::fs::read(&path)
            .unwrap()
            .windows(PLANTED.len())
            .any(|bytes| bytes == PLANTED.as_bytes())
        {
            found.push(path);
        }
    }
    found
}

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::replies(replies).unwrap()).with([("HAFT_LOG_LEVEL", "trace")])
}

/// Returns the id of the newest conversation.
fn newest_conversation(rig: &Rig) -> String {
    rig.run(&["conversations", "list", "--json"]).json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[track_caller]
fn run_successfully(rig: &Rig, arguments: &[&str]) -> String {
    let ran = rig.run(arguments);
    assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.stderr());
    ran.stdout()
}

#[test]
fn purge_removes_the_text_from_every_file() {
    let line = format!("for i in $(seq 1 9000); do echo {PLANTED} $i; done");
    let rig = rig([
        Reply::text("Hello."),
        Reply::call(
            "execute_command",
            json!({"command": line, "requires_approval": false}),
        ),
        Reply::call(
            "write_to_file",
            json!({"path": "a.txt", "content": format!("{PLANTED}\n")}),
        ),
        Reply::text(format!("It is {PLANTED}.")),
        Reply::text("In the background."),
        Reply::text("At the terminal."),
    ]);
    rig.task(&["something else"]);
    let other = newest_conversation(&rig);
    assert_eq!(rig.task(&[&format!("remember {PLANTED}")]).code(), 0);
    let id = newest_conversation(&rig);
    assert_ne!(id, other);
    let job = run_successfully(&rig, &["run", "--bg", "-c", &format!("{PLANTED} again")]);
    rig.run(&["jobs", "attach", job.trim()]);
    let mut terminal = Terminal::start(&rig, &["-c"], (100, 30));
    terminal.until_text("/help");
    terminal.press(&format!("{PLANTED} typed\r"));
    terminal.until_text("At the terminal.");
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    run_successfully(&rig, &["conversations", "backup"]);
    run_successfully(
        &rig,
        &[
            "conversations",
            "new",
            PLANTED,
            "--metadata",
            &format!("parent={id}"),
        ],
    );
    let message =
        rig.run(&["conversations", "show", &id, "--json"]).json()["messages"][0]["message_id"]
            .clone();
    run_successfully(
        &rig,
        &[
            "conversations",
            "revise",
            message.as_str().unwrap(),
            &format!("{PLANTED} revised"),
            "--conversation",
            &id,
        ],
    );
    assert!(
        run_successfully(&rig, &["conversations", "search", "--all", PLANTED]).contains(PLANTED)
    );
    run_successfully(&rig, &["conversations", "backup"]);
    let held = files_with_planted_word(rig.home());
    for part in [
        "conversations.db",
        "backups",
        "spill",
        "history",
        "jobs",
        "search.db",
    ] {
        assert!(
            held.iter()
                .any(|path| path.display().to_string().contains(part)),
            "{part}: {held:?}"
        );
    }

    let refused = rig.run(&["conversations", "purge", &id]);
    assert!(
        refused.code() == 2 && refused.stderr().contains("--force"),
        "{}",
        refused.stderr()
    );
    assert!(!files_with_planted_word(rig.home()).is_empty());
    let purged = rig.run(&["conversations", "purge", &id, "--force", "--json"]);
    assert_eq!(purged.code(), 0, "{}", purged.stderr());
    assert_eq!(
        purged.json()["purged"].as_array().unwrap().len(),
        2,
        "with the one of a sub-agent"
    );
    assert_eq!(files_with_planted_word(rig.home()), Vec::<PathBuf>::new());

    assert_eq!(rig.run(&["conversations", "show", &id]).code(), 2);
    assert!(run_successfully(&rig, &["conversations", "show", &other]).contains("something else"));
    assert!(
        run_successfully(&rig, &["conversations", "search", "--all", "something"])
            .contains("something")
    );
    assert_eq!(
        rig.run(&["conversations", "export", &other]).json()["messages"][1]["content"],
        "Hello."
    );
    assert_eq!(rig.run(&["doctor"]).code(), 0);
    assert_eq!(
        files_with_planted_word(rig.home()),
        Vec::<PathBuf>::new(),
        "nothing brings it back"
    );
}

#[test]
fn purge_includes_trash_and_forks() {
    let rig = rig([Reply::text(PLANTED), Reply::text("Hello.")]);
    rig.task(&["say it"]);
    let id = newest_conversation(&rig);
    let fork = rig.run(&["conversations", "fork", &id, "--json"]).json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let refused = rig.run(&["conversations", "purge", &id, "--force"]);
    assert!(
        refused.code() == 2 && refused.stderr().contains(&fork),
        "{}",
        refused.stderr()
    );
    run_successfully(&rig, &["conversations", "delete", &id]);
    run_successfully(&rig, &["conversations", "purge", &id, "--forks", "--force"]);
    assert_eq!(files_with_planted_word(rig.home()), Vec::<PathBuf>::new());
    assert_eq!(rig.run(&["conversations", "show", &fork]).code(), 2);
}

#[test]
fn purge_of_a_fork_keeps_shared_messages() {
    let rig = rig([Reply::text("Kept."), Reply::text(PLANTED)]);
    rig.task(&["say it"]);
    let id = newest_conversation(&rig);
    let fork = rig.run(&["conversations", "fork", &id, "--json"]).json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    rig.task(&["-r", &fork, "and more"]);
    assert!(!files_with_planted_word(rig.home()).is_empty());
    run_successfully(&rig, &["conversations", "purge", &fork, "--force"]);
    assert_eq!(files_with_planted_word(rig.home()), Vec::<PathBuf>::new());
    assert!(run_successfully(&rig, &["conversations", "show", &id]).contains("Kept."));
}

#[test]
fn purge_asks_twice() {
    let rig = rig([Reply::text(PLANTED)]);
    rig.task(&["say it"]);
    let id = newest_conversation(&rig);
    for answers in [["n", ""], ["y", "no"], ["y", "y"], ["y", &id[..8]]] {
        let mut terminal = Terminal::start(&rig, &["conversations", "purge", &id], (160, 30));
        terminal.until_text("(y/n)");
        terminal.press(&format!("{}\r", answers[0]));
        if answers[0] == "y" {
            terminal.until_text("for good:");
            terminal.press(&format!("{}\r", answers[1]));
        }
        let purged = answers[1] == &id[..8];
        assert_eq!(
            terminal.wait_for_exit().0,
            if purged { 0 } else { 2 },
            "{answers:?}"
        );
        assert_eq!(
            files_with_planted_word(rig.home()).is_empty(),
            purged,
            "{answers:?}"
        );
    }
}

#[test]
fn revise_changes_the_stored_and_the_sent_message() {
    let rig = rig([Reply::text("Hello."), Reply::text("Again.")]);
    rig.task(&["say hello"]);
    let message = rig.export()["messages"][0]["message_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let revised = rig.run(&[
        "conversations",
        "revise",
        &message[..8],
        "say goodbye",
        "--metadata",
        "why=test",
        "--json",
    ]);
    assert_eq!(revised.code(), 0, "{}", revised.stderr());
    assert_eq!(revised.json()["message"]["message_id"], json!(message));
    let export = rig.export();
    assert_eq!(export["messages"][0]["content"], "say goodbye");
    rig.task(&["-c", "and now?"]);
    let sent = rig.server.generation_requests()[1].decode().unwrap();
    assert!(
        format!("{sent:?}").contains("say goodbye") && !format!("{sent:?}").contains("say hello")
    );
    assert_eq!(
        rig.run(&["conversations", "revise", &message[..8]]).code(),
        2,
        "nothing to change"
    );
    assert_eq!(
        rig.run(&["conversations", "revise", "ffffffff", "x"])
            .code(),
        2
    );
}
