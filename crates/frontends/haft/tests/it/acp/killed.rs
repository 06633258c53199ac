//! Interruptions of a turn: haft is killed or terminated, or the editor disconnects. The
//! conversation survives, the turn resumes, and nothing is duplicated.

use haft_testkit::{Gate, Reply};
use serde_json::{Value, json};

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
                json!({"command": "echo x >> ran; sleep 30"}),
            );
            vec![runs, again()]
        }
    }
}

/// Starts a turn and returns once it has reached `state`.
fn come_to(state: &str, rig: &Rig) -> (Editor, String) {
    let (mut editor, session) = Editor::in_session(rig, json!({}));
    editor.permission = if state == "running" {
        "allow_once"
    } else {
        "nothing"
    };
    let prompt = editor.send_prompt(&session, "go");
    match state {
        "answered" => drop(editor.answer(prompt)),
        "streaming" => editor.until(|update| update["sessionUpdate"] == "agent_message_chunk"),
        "asked" => editor.until_asked(),
        _ => {
            editor.until_asked();
            while !rig.project().join("ran").exists() {
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        }
    }
    (editor, session)
}

/// Loads the conversation in a new process and resumes it.
fn goes_on(state: &str, rig: &Rig, session: &str) {
    let mut editor = Editor::initialized(rig, json!({}));
    editor.permission = "allow_once";
    let loaded = editor.call(
        "session/load",
        json!({"sessionId": session, "cwd": rig.project(), "mcpServers": []}),
    );
    assert!(loaded["error"].is_null(), "{state}: {loaded}");
    let users = editor.of_kind("user_message_chunk");
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
    assert_eq!(editor.end(), 0, "{state}");
}

fn check(state: &str, rig: &Rig) {
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
fn haft_is_killed() {
    for state in STATES {
        let gate = Gate::default();
        let rig = rig(replies(state, &gate));
        let (editor, session) = come_to(state, &rig);
        editor.kill();
        gate.open();
        goes_on(state, &rig, &session);
        check(state, &rig);
    }
}

#[test]
fn the_editor_is_gone() {
    for state in STATES {
        let gate = Gate::default();
        let rig = rig(replies(state, &gate));
        let (editor, session) = come_to(state, &rig);
        assert_eq!(editor.end(), 0, "{state}");
        gate.open();
        goes_on(state, &rig, &session);
        check(state, &rig);
    }
}

#[test]
fn haft_is_asked_to_end() {
    for state in STATES {
        let gate = Gate::default();
        let rig = rig(replies(state, &gate));
        let (mut editor, session) = come_to(state, &rig);
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
        goes_on(state, &rig, &session);
        check(state, &rig);
    }
}

#[test]
fn a_conversation_that_is_open_elsewhere_is_not_opened_twice() {
    let rig = rig([Reply::text("never").held_by(&Gate::default())]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    editor.send_prompt(&session, "go");
    while rig.server.generations().is_empty() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let mut other = Editor::initialized(&rig, json!({}));
    let params = json!({"sessionId": session, "cwd": rig.project(), "mcpServers": []});
    let refused: Value = other.call("session/load", params.clone());
    assert!(
        refused["error"]["message"]
            .as_str()
            .is_some_and(|message| !message.is_empty()),
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
