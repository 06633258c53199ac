//! Prompts that arrive while a turn runs, and deleted sessions.

use haft_testkit::{Gate, Reply};
use serde_json::json;

use super::{Editor, rig, stop_reason};

#[test]
fn prompts_of_a_session_run_in_order() {
    let gate = Gate::default();
    let first = Reply::text("First answer.").held_halfway_by(&gate);
    let rig = rig([
        first,
        Reply::text("Second answer."),
        Reply::text("Third answer."),
    ]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let first = editor.send_prompt(&session, "one");
    editor.read_until_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let second = editor.send_prompt(&session, "two");
    let third = editor.send_prompt(&session, "three");
    gate.open();
    for prompt in [first, second, third] {
        assert_eq!(stop_reason(&editor.wait_for_response(prompt)), "end_turn");
    }
    assert_eq!(
        editor.agent_text(),
        "First answer.Second answer.Third answer."
    );
    editor.finish();
    let exported = rig.export();
    let asked: Vec<_> = exported["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["role"] == "user")
        .collect();
    assert_eq!(
        asked.iter().map(|one| &one["content"]).collect::<Vec<_>>(),
        ["one", "two", "three"]
    );
}

#[test]
fn cancel_ends_the_turn_and_all_waiting_prompts() {
    let gate = Gate::default();
    let rig = rig([
        Reply::text("0123456789").held_halfway_by(&gate),
        Reply::text("Later."),
    ]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let first = editor.send_prompt(&session, "one");
    editor.read_until_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let second = editor.send_prompt(&session, "two");
    editor.notify("session/cancel", json!({"sessionId": session}));
    for prompt in [first, second] {
        assert_eq!(stop_reason(&editor.wait_for_response(prompt)), "cancelled");
    }
    assert_eq!(
        rig.server.generation_requests().len(),
        1,
        "what waited was never sent"
    );
    // The server sends the interrupted reply again.
    gate.open();
    assert_eq!(stop_reason(&editor.prompt(&session, "three")), "end_turn");
}

#[test]
fn cancel_request_cancels_one_waiting_prompt() {
    let gate = Gate::default();
    let rig = rig([
        Reply::text("First answer.").held_halfway_by(&gate),
        Reply::text("Third answer."),
    ]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let first = editor.send_prompt(&session, "one");
    editor.read_until_update(|update| update["sessionUpdate"] == "agent_message_chunk");
    let second = editor.send_prompt(&session, "two");
    let third = editor.send_prompt(&session, "three");
    editor.notify("$/cancel_request", json!({"requestId": second}));
    assert_eq!(stop_reason(&editor.wait_for_response(second)), "cancelled");
    gate.open();
    for prompt in [first, third] {
        assert_eq!(stop_reason(&editor.wait_for_response(prompt)), "end_turn");
    }
    assert_eq!(editor.agent_text(), "First answer.Third answer.");
}

#[test]
fn cancel_right_after_a_prompt_is_not_lost() {
    let rig = rig([Reply::text("never").held_by(&Gate::default())]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let prompt = editor.send_prompt(&session, "one");
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(stop_reason(&editor.wait_for_response(prompt)), "cancelled");
}

#[test]
fn session_delete_moves_a_session_to_the_trash() {
    let rig = rig([
        Reply::text("Here."),
        Reply::text("0123456789").held_halfway_by(&Gate::default()),
    ]);
    let mut editor = Editor::start(&rig, &[]);
    let hello = editor.call("initialize", json!({"protocolVersion": 1}));
    let offered = &hello["result"]["agentCapabilities"]["sessionCapabilities"];
    assert!(
        offered["delete"].is_object() && offered["fork"].is_null(),
        "{offered}"
    );
    let session = editor.new_session(&rig.project());
    editor.prompt(&session, "hello");
    // A running turn is ended before its session is deleted. Deleting a session twice, or one that
    // never existed, succeeds.
    let running = editor.send_prompt(&session, "more");
    editor.read_until_update(|update| update["content"]["text"] == "0");
    let delete =
        |editor: &mut Editor, id: &str| editor.call("session/delete", json!({"sessionId": id}));
    assert_eq!(delete(&mut editor, &session)["result"], json!({}));
    assert_eq!(stop_reason(&editor.wait_for_response(running)), "cancelled");
    for id in [session.as_str(), "never-was"] {
        assert_eq!(delete(&mut editor, id)["result"], json!({}), "{id}");
    }
    assert_eq!(
        editor.call("session/list", json!({}))["result"]["sessions"],
        json!([])
    );
    let load = json!({"sessionId": session, "cwd": rig.project(), "mcpServers": []});
    assert_eq!(
        editor.call("session/load", load.clone())["error"]["code"],
        -32002
    );
    let restored = rig.run(&["conversations", "restore", &session]);
    assert_eq!(restored.code(), 0, "{}", restored.stderr());
    assert!(editor.call("session/load", load)["error"].is_null());
}
