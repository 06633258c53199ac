//! Switching the mode of a session while calls wait behind a running one.

use std::time::{Duration, Instant};

use haft_testkit::{Reply, ScriptCall};
use serde_json::json;

use super::{Editor, rig, stop_reason};
use crate::rig::Rig;
use crate::sandbox::has_namespaces;

/// A command that creates `begun` and ends once the file `go` exists.
fn gate() -> ScriptCall {
    let command = "touch begun; while [ ! -e go ]; do sleep 0.02; done";
    ScriptCall::new("execute_command", json!({"command": command}))
}

/// Runs a reply with a waiting command and the call `second`, and switches the mode before `second`
/// starts. Returns `None` if no sandbox is available.
fn switched(from: &'static str, to: &'static str, second: ScriptCall) -> Option<(Rig, Editor)> {
    let rig = rig([
        Reply::calls([gate(), second]),
        Reply::text("Done."),
        Reply::text("Done."),
    ]);
    if !has_namespaces(&rig) {
        return None;
    }
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    editor.call(
        "session/set_mode",
        json!({"sessionId": session, "modeId": from}),
    );
    editor.permission = "allow_once";
    let prompt = editor.send_prompt(&session, "go");
    if from == "ask" {
        editor.until_asked();
    }
    let since = Instant::now();
    while !rig.project().join("begun").exists() {
        assert!(
            since.elapsed() < Duration::from_mins(1),
            "the command never began: {:#?}",
            editor.updates
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    editor.asked.clear();
    editor.permission = "reject_once";
    editor.call(
        "session/set_mode",
        json!({"sessionId": session, "modeId": to}),
    );
    rig.write("go", "");
    assert_eq!(stop_reason(&editor.answer(prompt)), "end_turn");
    Some((rig, editor))
}

fn write() -> ScriptCall {
    ScriptCall::new("write_to_file", json!({"path": "second", "content": "x"}))
}

fn touch() -> ScriptCall {
    ScriptCall::new("execute_command", json!({"command": "touch second"}))
}

fn touch_outside() -> ScriptCall {
    ScriptCall::new(
        "execute_command",
        json!({"command": "touch second", "sandbox": "outside"}),
    )
}

#[test]
fn a_call_that_waits_is_judged_by_the_mode_in_which_it_starts() {
    for (from, to, second, asked, done) in [
        ("auto", "ask", write(), 1, false),
        ("auto", "ask", touch(), 1, false),
        ("auto", "accept-edits", write(), 0, true),
        ("auto", "accept-edits", touch(), 1, false),
        ("auto", "plan", write(), 0, false),
        ("auto", "plan", touch(), 0, false),
        ("ask", "accept-edits", write(), 0, true),
        ("ask", "auto", touch(), 0, true),
        ("ask", "auto", touch_outside(), 1, false),
    ] {
        let what = format!("{from} to {to}: {} {}", second.name, second.arguments);
        let Some((rig, editor)) = switched(from, to, second) else {
            return;
        };
        assert_eq!(
            (editor.asked.len(), rig.project().join("second").exists()),
            (asked, done),
            "{what}"
        );
    }
}
