//! An editor follows, answers and steers a session of another process.

use haft_testkit::Reply;
use serde_json::json;

use super::{Editor, rig, stop_reason};
use crate::attach::{StayingRun, allow, attach, question, stored_inputs, wait_for_state};
use crate::rig::Rig;
use crate::terminal::write_a;

/// Loads the session of another process.
fn load(rig: &Rig, id: &str) -> Editor {
    let mut editor = Editor::initialized(rig, json!({"session": {"notices": {}}}));
    editor.permission = "allow_once";
    let params = json!({"sessionId": id, "cwd": rig.project(), "mcpServers": []});
    let loaded = editor.call("session/load", params);
    assert!(loaded["error"].is_null(), "{loaded}");
    editor
}

#[test]
fn editor_answers_and_steers_a_run_of_another_process() {
    let rig = rig([write_a(), question(), Reply::text("Blue it is.")]);
    let run = StayingRun::start(&rig, &["make a.txt"]);
    let id = wait_for_state(&rig, "asking");
    let mut editor = load(&rig, &id);
    editor.read_until_permission_request();
    assert_eq!(
        editor.asked[0]["toolCall"]["locations"][0]["path"],
        json!(rig.project().join("a.txt"))
    );
    editor.read_until_update(|update| {
        update["content"]["text"]
            .as_str()
            .is_some_and(|text| text.contains("Which color?"))
    });
    assert!(rig.project().join("a.txt").exists());
    wait_for_state(&rig, "idle");
    let answer = editor.prompt(&id, "blue");
    assert_eq!(stop_reason(&answer), "end_turn");
    assert!(
        editor.agent_text().contains("Blue it is."),
        "{}",
        editor.agent_text()
    );
    // The turn so far was repeated once.
    let prompts: Vec<_> = editor
        .updates_of_kind("user_message_chunk")
        .iter()
        .map(|chunk| chunk["content"]["text"].clone())
        .collect();
    assert_eq!(prompts, ["make a.txt"]);
    assert_eq!(run.finish().code(), 0);
    assert_eq!(stored_inputs(&rig), ["make a.txt"]);
    assert_eq!(editor.finish(), 0);
}

#[test]
fn editor_sees_the_answer_that_came_first_and_goes_on_after_the_session() {
    let rig = rig([write_a(), question(), Reply::text("Here.")]);
    let mut run = StayingRun::start(&rig, &["make a.txt"]);
    let id = wait_for_state(&rig, "asking");
    let mut editor = load(&rig, &id);
    // The editor shows the question and does not answer.
    editor.permission = "none";
    editor.read_until_permission_request();
    let mut client = attach(&rig);
    let request = client.read_until_type("approval_request");
    client.send_line(&allow(&request));
    editor.read_until_update(|update| {
        update
            .to_string()
            .contains("The question was answered elsewhere: allowed.")
    });
    client.read_until_type("idle");
    run.kill();
    assert_eq!(client.finish().0, 1);
    editor.read_until_update(|update| update.to_string().contains("The next prompt goes on here."));
    // The conversation is free, so the next prompt opens it here.
    let answer = editor.prompt(&id, "blue");
    assert_eq!(stop_reason(&answer), "end_turn");
    assert!(
        editor.agent_text().contains("Here."),
        "{}",
        editor.agent_text()
    );
    assert_eq!(editor.finish(), 0);
}
