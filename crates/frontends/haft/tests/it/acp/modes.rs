//! Switching the mode of a session while calls wait behind a running one.

use std::time::{Duration, Instant};

use haft_testkit::{Reply, ScriptCall};
use serde_json::json;

use super::{Editor, MODE_AUTO, rig, stop_reason};
use crate::rig::Rig;
use crate::sandbox::has_namespaces;

/// A command that creates `begun` and ends once the file `go` exists.
fn waiting_command() -> ScriptCall {
    let command = "touch begun; while [ ! -e go ]; do sleep 0.02; done";
    ScriptCall::new("execute_command", json!({"command": command}))
}

/// Runs a reply with a waiting command and the call `second`, and switches the mode before `second`
/// starts. Returns `None` if no sandbox is available.
fn run_with_mode_switch(
    from: &'static str,
    to: &'static str,
    second: ScriptCall,
) -> Option<(Rig, Editor)> {
    let rig = rig([
        Reply::calls([waiting_command(), second]),
        Reply::text("Done."),
        Reply::text("Done."),
    ])
    .with([MODE_AUTO]);
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
        editor.read_until_permission_request();
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
    assert_eq!(stop_reason(&editor.wait_for_response(prompt)), "end_turn");
    Some((rig, editor))
}

fn write_second() -> ScriptCall {
    ScriptCall::new("write_to_file", json!({"path": "second", "content": "x"}))
}

fn touch_second() -> ScriptCall {
    ScriptCall::new("execute_command", json!({"command": "touch second"}))
}

fn touch_second_outside() -> ScriptCall {
    ScriptCall::new(
        "execute_command",
        json!({"command": "touch second", "sandbox": "outside"}),
    )
}

#[test]
fn configured_mode_limits_the_modes_of_an_editor() {
    for (configured, offered, refused) in [
        (
            "plan",
            &["plan"][..],
            &["ask", "accept-edits", "auto", "yolo"][..],
        ),
        ("ask", &["plan", "ask"], &["accept-edits", "auto", "yolo"]),
        (
            "accept-edits",
            &["plan", "ask", "accept-edits"],
            &["auto", "yolo"],
        ),
    ] {
        let rig = rig([
            Reply::call("write_to_file", json!({"path": "a", "content": "x"})),
            Reply::text("Done."),
        ])
        .with([("HAFT_PERMISSIONS__MODE", configured)]);
        let mut editor = Editor::initialized(&rig, json!({}));
        editor.permission = "reject_once";
        let made = editor.call(
            "session/new",
            json!({"cwd": rig.project(), "mcpServers": []}),
        );
        let session = made["result"]["sessionId"].as_str().unwrap().to_owned();
        let modes = made["result"]["modes"]["availableModes"]
            .as_array()
            .unwrap();
        let names: Vec<_> = modes
            .iter()
            .map(|mode| mode["id"].as_str().unwrap())
            .collect();
        assert_eq!(names, offered, "{configured}");
        for mode in refused {
            for (method, params) in [
                (
                    "session/set_mode",
                    json!({"sessionId": session, "modeId": mode}),
                ),
                (
                    "session/set_config_option",
                    json!({"sessionId": session, "configId": "mode", "value": mode}),
                ),
            ] {
                let answer = editor.call(method, params);
                assert_eq!(
                    answer["error"]["code"], -32602,
                    "{configured} {mode}: {answer}"
                );
            }
        }
        editor.prompt(&session, "go");
        assert_eq!(
            rig.project().join("a").exists(),
            configured == "accept-edits"
        );
        editor.call("session/close", json!({"sessionId": session}));
        // A session that is loaded again begins with the configured mode, too.
        let loaded = editor.call(
            "session/load",
            json!({"sessionId": session, "cwd": rig.project(), "mcpServers": []}),
        );
        assert_eq!(
            loaded["result"]["modes"]["currentModeId"], configured,
            "{loaded}"
        );
        editor.finish();
    }
}

#[test]
fn set_mode_applies_to_calls_that_have_not_started() {
    for (from, to, second, asked, done) in [
        ("auto", "ask", write_second(), 1, false),
        ("auto", "ask", touch_second(), 1, false),
        ("auto", "accept-edits", write_second(), 0, true),
        ("auto", "accept-edits", touch_second(), 1, false),
        ("auto", "plan", write_second(), 0, false),
        ("auto", "plan", touch_second(), 0, false),
        ("ask", "accept-edits", write_second(), 0, true),
        ("ask", "auto", touch_second(), 0, true),
        ("ask", "auto", touch_second_outside(), 1, false),
    ] {
        let what = format!("{from} to {to}: {} {}", second.name, second.arguments);
        let Some((rig, editor)) = run_with_mode_switch(from, to, second) else {
            return;
        };
        assert_eq!(
            (editor.asked.len(), rig.project().join("second").exists()),
            (asked, done),
            "{what}"
        );
    }
}
