//! Active context: folders are described after a turn that changed them, and a description enters
//! the prompt only with a cold prefix.

use std::fs;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

fn write(path: &str, content: &str) -> Reply {
    Reply::call("write_to_file", json!({"path": path, "content": content}))
}

/// A project with active context switched on.
fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    enable_active_context(rig)
}

fn enable_active_context(rig: Rig) -> Rig {
    let config = fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!("{config}\n[context]\nactive = true\n"));
    rig
}

fn system_prompt(rig: &Rig, request: usize) -> String {
    rig.server.generation_requests()[request]
        .decode()
        .unwrap()
        .system
}

fn prefix_break_causes(ran: &Ran) -> Vec<Value> {
    let events = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "prefix_break");
    events.map(|event| event["cause"].clone()).collect()
}

const DESCRIPTION_PATH: &str = ".haft/active-context/src/pay/active.md";

#[test]
fn descriptions_cover_the_folders_that_a_turn_changed() {
    let replies = [
        write("src/pay/a.rs", "fn pay() {}\n"),
        Reply::text("Paid."),
        Reply::text("Takes money.\n\nLast change: pay.\n"),
    ];
    let rig = rig(replies);
    let ran = rig.task(&["let them pay"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert_eq!(
        fs::read_to_string(rig.project().join(DESCRIPTION_PATH)).unwrap(),
        "Takes money.\n\nLast change: pay.\n"
    );
    let asked = rig.server.generation_requests()[2].decode().unwrap();
    let about = format!("{:?}", asked.messages);
    for there in [
        "<folder>src/pay</folder>",
        "fn pay() {}",
        "let them pay",
        "Paid.",
        "(none yet)",
        "change=\\\"added\\\"",
    ] {
        assert!(about.contains(there), "no {there} in {about}");
    }
    let used: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "usage")
        .collect();
    assert_eq!(used.len(), 3, "what it costs is told");
    assert_eq!(ran.result()["outcome"], "completed");
    assert_eq!(
        rig.run(&["trust", "--show", "--json"]).json()["standing"],
        "trusted",
        "nothing of it would run"
    );

    // While its prefix is warm, the conversation keeps its system prompt. A new conversation gets
    // the new description.
    let first = rig.export()["id"].as_str().unwrap().to_owned();
    let rig = enable_active_context(rig.with_script(
        Script::replies([Reply::text("Yes.").times(3)]).unwrap(),
        Api::OpenaiChat,
    ));
    let warm = rig.task(&["-c", "and now?"]);
    assert!(
        !system_prompt(&rig, 0).contains("Takes money."),
        "{}",
        system_prompt(&rig, 0)
    );
    assert!(
        !prefix_break_causes(&warm).contains(&json!("system_changed")),
        "{:?}",
        prefix_break_causes(&warm)
    );
    rig.task(&["something new"]);
    assert!(
        system_prompt(&rig, 1).contains("PROJECT PACKAGE CONTEXT"),
        "{}",
        system_prompt(&rig, 1)
    );
    assert!(
        system_prompt(&rig, 1).contains("## `src/pay`\n\nTakes money."),
        "{}",
        system_prompt(&rig, 1)
    );
    let model = format!(
        "models.\"mock/{}\".cache={{ ttl = \"0s\" }}",
        crate::rig::MODEL
    );
    let cold = rig.task(&["--set", &model, "-r", &first, "and after a while?"]);
    assert_eq!(cold.code(), 0, "{}", cold.stderr());
    assert!(system_prompt(&rig, 2).contains("Takes money."));
    assert_eq!(prefix_break_causes(&cold)[0], "system_changed");
}

#[test]
fn descriptions_are_updated_from_the_previous_one() {
    let replies = [
        write("a.txt", "one\n"),
        Reply::text("Done."),
        Reply::text("Holds a word."),
    ];
    let rig = rig(replies);
    fs::create_dir_all(rig.project().join(".haft/active-context")).unwrap();
    rig.write(".haft/active-context/active.md", "Nothing yet.\n");
    rig.task(&["write a word"]);
    assert!(system_prompt(&rig, 0).contains("## `.`\n\nNothing yet."));
    let asked = format!(
        "{:?}",
        rig.server.generation_requests()[2]
            .decode()
            .unwrap()
            .messages
    );
    assert!(asked.contains("Nothing yet."), "{asked}");
    assert_eq!(
        fs::read_to_string(rig.project().join(".haft/active-context/active.md")).unwrap(),
        "Holds a word.\n"
    );
}

#[test]
fn descriptions_that_fail_cause_a_warning() {
    let rig = rig([
        write("src/pay/a.rs", "x\n"),
        Reply::text("Done."),
        Reply::text(""),
    ]);
    let ran = rig.task(&["go"]);
    assert_eq!(
        (ran.code(), &ran.result()["outcome"]),
        (0, &json!("completed"))
    );
    let warned = ran
        .events()
        .into_iter()
        .find(|event| event["code"] == "active_context")
        .expect("a warning");
    assert!(
        warned["message"]
            .as_str()
            .unwrap()
            .contains("`src/pay` was not brought up to date"),
        "{warned}"
    );
    assert!(!rig.project().join(DESCRIPTION_PATH).exists());
}

#[test]
fn descriptions_need_opt_in_changes_and_trust() {
    let replies = [write("src/a.rs", "x\n"), Reply::text("Done.")];
    let off = Rig::new(Api::OpenaiChat, Script::replies(replies.clone()).unwrap());
    assert_eq!(off.task(&["go"]).code(), 0);
    assert_eq!(off.server.generation_requests().len(), 2);
    let idle = rig([
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Nothing."),
    ]);
    assert_eq!(idle.task(&["look"]).code(), 0);
    assert_eq!(idle.server.generation_requests().len(), 2);
    let untrusted = rig(replies);
    untrusted.run(&["trust", "--revoke"]);
    assert_eq!(untrusted.task(&["go"]).code(), 0);
    assert_eq!(
        untrusted.server.generation_requests().len(),
        2,
        "nothing is written of a project that is not trusted"
    );
}
