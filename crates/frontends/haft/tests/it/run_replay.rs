//! `haft conversations replay`: equal runs, the first difference, and runs that cannot be replayed.
//! The campaign `replays` covers the kinds of runs.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::json;

use crate::rig::Rig;

/// A run that reads a file and is refused a command.
fn rig_with_run() -> Rig {
    let replies = [
        Reply::call("read_file", json!({"path": "notes.txt"})),
        Reply::call(
            "execute_command",
            json!({"command": "touch made.txt", "requires_approval": false}),
        ),
        Reply::text("It is not allowed."),
    ];
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap()).with([
        ("HAFT_PERMISSIONS__MODE", "ask"),
        ("HAFT_SANDBOX__MODE", "off"),
    ]);
    rig.write("notes.txt", "alpha\nbeta\n");
    rig.write("AGENTS.md", "Use short sentences.\n");
    assert!(rig.run(&["trust"]).code() == 0);
    let ran = rig.run(&["run", "Read the notes."]);
    assert!([0, 3].contains(&ran.code()), "{}", ran.stderr());
    rig
}

#[test]
fn replay_of_an_unchanged_run_is_equal_and_sends_nothing() {
    let rig = rig_with_run();
    let sent = rig.server.generation_requests().len();
    let ran = rig.run(&["conversations", "replay"]);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert!(
        ran.stdout()
            .ends_with("2 decisions on calls were compared.\nThe run is equal to its record.\n"),
        "{}",
        ran.stdout()
    );
    assert_eq!(rig.server.generation_requests().len(), sent);
}

#[test]
fn replay_names_the_first_difference() {
    let rig = rig_with_run();
    rig.write("AGENTS.md", "Use long sentences.\n");
    assert!(rig.run(&["trust"]).code() == 0);
    let ran = rig.run(&["conversations", "replay"]);
    assert_eq!(ran.code(), 1, "{}{}", ran.stdout(), ran.stderr());
    assert!(
        ran.stdout()
            .ends_with("\n- Use short sentences.\n+ Use long sentences.\n"),
        "{}",
        ran.stdout()
    );
}

#[test]
fn replay_compares_decisions() {
    let rig = rig_with_run();
    let ran = rig.run(&[
        "conversations",
        "replay",
        "--permission-mode",
        "yolo",
        "--json",
    ]);
    assert_eq!(ran.code(), 1, "{}", ran.stderr());
    let report = ran.json();
    let first = &report["first_difference"];
    assert_eq!(
        (&first["in"], &first["tool"], &first["field"]),
        (&json!("call"), &json!("execute_command"), &json!("verdict"))
    );
    assert_eq!(first["recorded"], json!(["permission_denied"]));
    assert_eq!(first["today"], json!(["ran"]));
    assert!(
        !rig.project().join("made.txt").exists(),
        "a replay runs no command"
    );
}

#[test]
fn live_tools_compare_results_in_a_copy() {
    let rig = rig_with_run();
    let live = ["conversations", "replay", "--live-tools"];
    assert_eq!(rig.run(&live).code(), 0, "{}", rig.screen(&live));
    rig.write("notes.txt", "alpha\ngamma\n");
    let changed = rig.run(&[&live[..], &["--json"]].concat());
    let first = &changed.json()["first_difference"];
    assert_eq!(
        (&first["in"], &first["field"]),
        (&json!("call"), &json!("result.text"))
    );
    // Commands that are allowed now run in the copy.
    let allowed = [&live[..], &["--permission-mode", "yolo"]].concat();
    assert_eq!(rig.run(&allowed).code(), 1);
    assert!(!rig.project().join("made.txt").exists());
}

#[test]
fn context_test_checks_a_saved_run() {
    let rig = rig_with_run();
    let saved = rig.run(&["conversations", "replay", "--save", "run.json"]);
    assert_eq!(saved.code(), 0, "{}", saved.stderr());
    let text = std::fs::read_to_string(rig.project().join("run.json")).unwrap();
    assert!(!text.contains(&rig.project().display().to_string()));
    rig.write(
        ".haft/context-tests/runs.toml",
        "[[run]]\nfile = \"run.json\"\n",
    );
    let equal =
        "ok   runs.toml: run.json replays as recorded: 3 requests and 2 decisions are equal\n";
    assert_eq!(rig.run(&["context", "test"]).stdout(), equal);
    rig.write("AGENTS.md", "Use long sentences.\n");
    assert!(rig.run(&["trust"]).code() == 0);
    let changed = rig.run(&["context", "test"]);
    assert_eq!(changed.code(), 1, "{}", changed.stdout());
    assert!(
        changed
            .stdout()
            .starts_with("FAIL runs.toml: run.json replays as recorded: request 1 differs: "),
        "{}",
        changed.stdout()
    );
}

#[test]
fn replay_reports_why_a_run_cannot_be_replayed() {
    let rig = rig_with_run();
    let messages = rig.export()["messages"].clone();
    let prompt = messages[0]["message_id"].as_str().unwrap()[..8].to_owned();
    assert_eq!(rig.run(&["conversations", "new", "empty"]).code(), 0);
    let expect_reason = |run: &[&str], reason: &str| {
        let ran = rig.run(&[&["conversations", "replay"][..], run].concat());
        assert_eq!(ran.code(), 2, "{}", ran.stdout());
        assert!(ran.stderr().contains(reason), "{}", ran.stderr());
    };
    expect_reason(&[], "there is no log of its requests");
    let listed = rig.run(&["conversations", "list", "--json"]).json();
    let named = |one: &&serde_json::Value| one["name"] == "Read the notes.";
    let run = listed.as_array().unwrap().iter().find(named).unwrap();
    let id = run["id"].as_str().unwrap();
    let revised = rig.run(&[
        "conversations",
        "revise",
        &prompt,
        "Other words.",
        "--conversation",
        id,
    ]);
    assert_eq!(revised.code(), 0, "{}", revised.stderr());
    expect_reason(&[id], "1 message was revised");
    rig.write("broken.json", "{}");
    expect_reason(&["broken.json"], "is not a recorded run");
}
