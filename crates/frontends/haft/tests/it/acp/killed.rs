//! Interruptions of a turn: haft is killed or terminated, or the editor disconnects. The
//! conversation survives, the turn resumes, and nothing is duplicated.

use haft_testkit::{Gate, Reply};
use serde_json::json;

use super::{Editor, rig, stop_reason};
use crate::rig::Rig;

/// The states in which a turn is interrupted.
const STATES: [&str; 4] = ["answered", "streaming", "asked", "running"];

/// The replies of a turn that reaches `state`. A streamed reply ends once the gate opens.
fn replies(state: &str, gate: &Gate) -> Vec<Reply> {
    let again = || Reply::text("Went on.");
    match state {
        "answered" => vec![Reply::text("First."), Reply::text("Second.")],
        "streaming" => {
            let slow = Reply::text("0123456789".repeat(30)).held_halfway_by(gate);
            vec![slow, again()]
        }
        "asked" => {
            let asks = Reply::call("execute_command", json!({"command": "echo x >> ran"}));
            vec![asks, again()]
        }
        _ => {
            let runs = Reply::call(
                "execute_command",
                json!({"command": "echo x >> ran; sleep 600"}),
            );
            vec![runs, again()]
        }
    }
}

/// Starts a turn and returns once it has reached `state`.
fn start_turn_until(state: &str, rig: &Rig) -> (Editor, String) {
    let (mut editor, session) = Editor::in_session(rig, json!({}));
    editor.permission = if state == "running" {
        "allow_once"
    } else {
        "nothing"
    };
    let prompt = editor.send_prompt(&session, "go");
    match state {
        "answered" => drop(editor.wait_for_response(prompt)),
        "streaming" => {
            editor.read_until_update(|update| update["sessionUpdate"] == "agent_message_chunk");
        }
        "asked" => editor.read_until_permission_request(),
        _ => {
            editor.read_until_permission_request();
            while !rig.project().join("ran").exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
    (editor, session)
}

/// Loads the conversation in a new process and resumes it.
fn resume_in_new_process(state: &str, rig: &Rig, session: &str) {
    let mut editor = Editor::initialized(rig, json!({}));
    editor.permission = "allow_once";
    let loaded = editor.call(
        "session/load",
        json!({"sessionId": session, "cwd": rig.project(), "mcpServers": []}),
    );
    assert!(loaded["error"].is_null(), "{state}: {loaded}");
    let users = editor.updates_of_kind("user_message_chunk");
    assert_eq!(
        users
            .iter()
            .map(|chunk| &chunk["content"]["text"])
            .collect::<Vec<_>>(),
        ["go"],
        "{state}"
    );
    let text = if state == "answered" {
        "more"
    } else {
        "/continue"
    };
    let answer = editor.prompt(session, text);
    assert_eq!(stop_reason(&answer), "end_turn", "{state}");
    assert_eq!(editor.finish(), 0, "{state}");
}

fn assert_nothing_is_duplicated(state: &str, rig: &Rig) {
    let exported = rig.export();
    let messages = exported["messages"].as_array().unwrap();
    let users = messages
        .iter()
        .filter(|one| one["role"] == "user" && one["content"] == "go")
        .count();
    assert_eq!(users, 1, "{state}: the prompt is there once");
    let last = messages.last().unwrap();
    let text = match state {
        "answered" => "Second.".to_owned(),
        // The interrupted reply is requested again.
        "streaming" => "0123456789".repeat(30),
        _ => "Went on.".to_owned(),
    };
    assert_eq!(
        (&last["role"], &last["content"]),
        (&json!("assistant"), &json!(text)),
        "{state}"
    );
    let ran = std::fs::read_to_string(rig.project().join("ran")).unwrap_or_default();
    assert!(
        ran == "x\n" || (ran.is_empty() && matches!(state, "answered" | "streaming")),
        "{state}: ran {ran:?}"
    );
}

#[test]
fn session_resumes_after_sigkill() {
    for state in STATES {
        let gate = Gate::default();
        let rig = rig(replies(state, &gate));
        let (editor, session) = start_turn_until(state, &rig);
        editor.kill();
        gate.open();
        resume_in_new_process(state, &rig, &session);
        assert_nothing_is_duplicated(state, &rig);
    }
}

#[test]
fn session_resumes_after_the_editor_disconnects() {
    for state in STATES {
        let gate = Gate::default();
        let rig = rig(replies(state, &gate));
        let (editor, session) = start_turn_until(state, &rig);
        assert_eq!(editor.finish(), 0, "{state}");
        gate.open();
        resume_in_new_process(state, &rig, &session);
        assert_nothing_is_duplicated(state, &rig);
    }
}

#[test]
fn session_resumes_after_sigterm() {
    for state in STATES {
        let gate = Gate::default();
        let rig = rig(replies(state, &gate));
        let (mut editor, session) = start_turn_until(state, &rig);
        let process = editor.child.id().to_string();
        assert!(
            std::process::Command::new("kill")
                .args(["-TERM", &process])
                .status()
                .unwrap()
                .success()
        );
        assert_eq!(editor.child.wait().unwrap().code(), Some(0), "{state}");
        gate.open();
        resume_in_new_process(state, &rig, &session);
        assert_nothing_is_duplicated(state, &rig);
    }
}

#[test]
fn session_load_follows_a_session_of_another_process() {
    let gate = Gate::default();
    let rig = rig([Reply::text("Done.").held_by(&gate)]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let prompt = editor.send_prompt(&session, "go");
    while rig.server.generation_requests().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut other = Editor::initialized(&rig, json!({}));
    let params = json!({"sessionId": session, "cwd": rig.project(), "mcpServers": []});
    let loaded = other.call("session/load", params.clone());
    assert!(loaded["error"].is_null(), "{loaded}");
    gate.open();
    other.read_until_update(|update| update["content"]["text"] == "Done.");
    assert_eq!(stop_reason(&editor.wait_for_response(prompt)), "end_turn");
    // The editor that opened the session begins its turns.
    let refused = other.prompt(&session, "more");
    assert!(
        refused["error"]["message"]
            .as_str()
            .is_some_and(|message| message.contains("no turn is running")),
        "{refused}"
    );
    let unknown = other.call(
        "session/load",
        json!({"sessionId": "nobody", "cwd": rig.project(), "mcpServers": []}),
    );
    assert_eq!(unknown["error"]["code"], -32002, "{unknown}");
    editor.kill();
    assert!(other.call("session/resume", params)["error"].is_null());
}
