//! Calls of imported conversations never run, wherever the conversation came from and however it
//! is continued.

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

const MARKER: &str = "ran.txt";

fn rig() -> Rig {
    let replies = (1..=9).map(|n| Reply::text(format!("Answer {n}.")));
    Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap())
}

/// A conversation of OpenAI's format that ends with a call of a command.
fn pending_call() -> Value {
    json!([
        {"role": "user", "content": "Build it"},
        {"role": "assistant", "content": "", "tool_calls": [{
            "id": "call_1",
            "type": "function",
            "function": {
                "name": "execute_command",
                "arguments": json!({"command": format!("touch {MARKER}"), "requires_approval": false})
                    .to_string(),
            },
        }]},
    ])
}

/// Imports a file and returns the id of the conversation.
fn import(rig: &Rig, name: &str, text: &str) -> String {
    rig.write(name, text);
    let ran = rig.run(&["conversations", "import", name, "--json"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    ran.json()[0]["id"].as_str().unwrap().to_owned()
}

/// Continues the conversation without a prompt, in the mode that asks nothing. Returns the result of
/// the call that the model was sent.
fn continue_without_prompt(rig: &Rig, arguments: &[&str]) -> String {
    let ran = rig.task(arguments);
    assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
    assert!(!rig.project().join(MARKER).exists(), "the call ran");
    let sent = rig.server.generation_requests();
    let body = String::from_utf8_lossy(&sent.last().unwrap().body).into_owned();
    assert!(
        body.contains("the conversation was imported"),
        "the model is told: {body}"
    );
    body
}

#[test]
fn imported_call_does_not_run_without_a_prompt() {
    for mode in ["accept-edits", "auto", "yolo"] {
        let rig = rig();
        let id = import(&rig, "chat.json", &pending_call().to_string());
        let ran = rig.run(&["run", "-r", &id, "--permission-mode", mode]);
        assert_eq!(ran.code(), 0, "{}{}", ran.stdout(), ran.stderr());
        assert!(!rig.project().join(MARKER).exists(), "{mode}");
    }
    let rig = rig();
    let id = import(&rig, "chat.json", &pending_call().to_string());
    continue_without_prompt(&rig, &["-r", &id]);
}

#[test]
fn imported_call_does_not_run_from_an_export() {
    let from = rig();
    let id = import(&from, "chat.json", &pending_call().to_string());
    let document = from.run(&["conversations", "export", &id]).stdout();
    let to = rig();
    let id = import(&to, "export.json", &document);
    continue_without_prompt(&to, &["-r", &id]);
}

#[test]
fn imported_call_does_not_run_if_it_was_appended_by_a_second_import() {
    let rig = rig();
    let mut document: Value = {
        let id = import(&rig, "chat.json", &pending_call().to_string());
        rig.run(&["conversations", "export", &id]).json()
    };
    // A conversation of this store gets the call by a later import of a longer document.
    let other = self::rig();
    let messages = document["messages"].as_array().unwrap().clone();
    document["messages"] = json!([messages[0]]);
    let id = import(&other, "short.json", &document.to_string());
    document["messages"] = json!(messages);
    assert_eq!(import(&other, "long.json", &document.to_string()), id);
    continue_without_prompt(&other, &["-r", &id]);
}

#[test]
fn imported_call_does_not_run_in_a_fork() {
    let rig = rig();
    let id = import(&rig, "chat.json", &pending_call().to_string());
    let forked = rig.run(&["conversations", "fork", &id, "--json"]);
    assert_eq!(forked.code(), 0, "{}", forked.stderr());
    let fork = forked.json()["id"].as_str().unwrap().to_owned();
    continue_without_prompt(&rig, &["-r", &fork]);

    let rig = self::rig();
    let id = import(&rig, "chat.json", &pending_call().to_string());
    continue_without_prompt(&rig, &["-r", &id, "--fork-session"]);

    // The fork ends before the result of the call.
    let rig = self::rig();
    let mut answered = pending_call();
    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "done"});
    answered.as_array_mut().unwrap().push(result);
    let id = import(&rig, "chat.json", &answered.to_string());
    let document = rig.run(&["conversations", "export", &id]).json();
    let reply = document["messages"][1]["message_id"].as_str().unwrap();
    let forked = rig.run(&["conversations", "fork", &id, "--at", reply, "--json"]);
    assert_eq!(forked.code(), 0, "{}", forked.stderr());
    let fork = forked.json()["id"].as_str().unwrap().to_owned();
    continue_without_prompt(&rig, &["-r", &fork]);
}

#[test]
fn imported_call_of_another_agent_does_not_run() {
    let rig = rig();
    let line = |value: Value| format!("{value}\n");
    let session = "0a1b2c3d-0000-4000-8000-0000000000aa";
    let text = line(json!({
        "type": "user", "uuid": "0a1b2c3d-0000-4000-8000-000000000001", "parentUuid": null,
        "sessionId": session, "timestamp": "2026-11-01T00:00:00Z", "cwd": "/p",
        "message": {"role": "user", "content": "Build it"},
    })) + &line(json!({
        "type": "assistant", "uuid": "0a1b2c3d-0000-4000-8000-000000000002",
        "parentUuid": "0a1b2c3d-0000-4000-8000-000000000001", "sessionId": session,
        "timestamp": "2026-11-01T00:00:01Z", "cwd": "/p",
        "message": {"role": "assistant", "model": "m", "content": [
            {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": format!("touch {MARKER}")}},
        ]},
    }));
    let id = import(&rig, "session.jsonl", &text);
    continue_without_prompt(&rig, &["-r", &id]);
}
