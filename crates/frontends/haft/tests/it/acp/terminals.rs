//! The editor's own terminals: used only for commands that would run unconfined anyway.

use std::collections::HashMap;
use std::process::{Child, Command, Stdio};

use haft_testkit::Reply;
use serde_json::{Value, json};

use super::{Editor, rig, stop_reason};
use crate::rig::Rig;
use crate::sandbox::has_namespaces;

/// The terminals of an editor. Each is a process.
#[derive(Default)]
pub(super) struct Terminals {
    running: HashMap<String, Child>,
    ended: HashMap<String, (Value, String)>,
    /// Every method that was called, with its parameters.
    pub(super) called: Vec<(String, Value)>,
    /// If true, `terminal/create` fails.
    pub(super) refuses: bool,
    /// If true, `terminal/wait_for_exit` gets no response.
    pub(super) holds: bool,
}

impl Terminals {
    pub(super) fn respond(&mut self, method: &str, params: &Value) -> Option<Value> {
        self.called.push((method.to_owned(), params.clone()));
        let id = params["terminalId"].as_str().unwrap_or_default().to_owned();
        Some(match method {
            "terminal/create" => {
                let text = |value: &Value| value.as_str().unwrap().to_owned();
                let mut command = Command::new(text(&params["command"]));
                command
                    .args(params["args"].as_array().unwrap().iter().map(text))
                    .current_dir(text(&params["cwd"]));
                let environment = params["env"].as_array().unwrap();
                command.envs(
                    environment
                        .iter()
                        .map(|one| (text(&one["name"]), text(&one["value"]))),
                );
                // A secret of the editor's environment, which haft hides from its commands.
                command
                    .env("SECRET_API_KEY", "sk-of-the-editor")
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped());
                let id = format!("term-{}", self.running.len() + self.ended.len());
                self.running.insert(id.clone(), command.spawn().unwrap());
                json!({"terminalId": id})
            }
            "terminal/wait_for_exit" if self.holds => return None,
            "terminal/wait_for_exit" => self.record_exit(&id),
            "terminal/kill" => {
                drop(self.running.get_mut(&id).unwrap().kill());
                self.record_exit(&id);
                json!({})
            }
            "terminal/output" => {
                let (status, output) = &self.ended[&id];
                json!({"output": output, "truncated": false, "exitStatus": status})
            }
            "terminal/release" => json!({}),
            other => panic!("haft asked for {other}"),
        })
    }

    fn record_exit(&mut self, id: &str) -> Value {
        let ended = self.running.remove(id).unwrap().wait_with_output().unwrap();
        let signal = ended.status.code().is_none().then_some("SIGKILL");
        let status = json!({"exitCode": ended.status.code(), "signal": signal});
        self.ended.insert(
            id.to_owned(),
            (status.clone(), String::from_utf8(ended.stdout).unwrap()),
        );
        status
    }

    fn called_methods(&self) -> Vec<&str> {
        self.called
            .iter()
            .map(|(method, _)| method.as_str())
            .collect()
    }
}

fn run_command(line: &str) -> Reply {
    Reply::call("execute_command", json!({"command": line}))
}

fn run_outside_sandbox(line: &str) -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": line, "sandbox": "outside"}),
    )
}

fn start_with_terminals(rig: &Rig, arguments: &[&str]) -> (Editor, String) {
    let mut editor = Editor::start(rig, arguments);
    editor.permission = "allow_once";
    editor.call(
        "initialize",
        json!({"protocolVersion": 1, "clientCapabilities": {"terminal": true}}),
    );
    let session = editor.new_session(&rig.project());
    (editor, session)
}

/// Returns the last message that was sent to the model.
fn last_message(rig: &Rig) -> String {
    format!(
        "{:?}",
        rig.server
            .generation_requests()
            .last()
            .unwrap()
            .decode()
            .unwrap()
            .messages
            .last()
    )
}

#[test]
fn terminal_runs_approved_commands_outside_the_sandbox() {
    let rig = rig([
        run_outside_sandbox("echo at the terminal; echo made > made; exit 3"),
        Reply::text("Done."),
    ]);
    if !has_namespaces(&rig) {
        return;
    }
    let (mut editor, session) = start_with_terminals(&rig, &[]);
    assert_eq!(stop_reason(&editor.prompt(&session, "go")), "end_turn");
    assert_eq!(editor.asked.len(), 1, "it was asked for before");
    assert!(rig.project().join("made").exists());
    let seen = last_message(&rig);
    assert!(
        seen.contains("Exit code 3.") && seen.contains("at the terminal"),
        "{seen}"
    );
    let methods = editor.terminals.called_methods();
    let wanted = [
        "terminal/create",
        "terminal/wait_for_exit",
        "terminal/output",
        "terminal/release",
    ];
    assert_eq!(methods, wanted);
    let call = editor.updates_of_kind("tool_call")[0]["toolCallId"].clone();
    let updates = editor.updates_of_kind("tool_call_update");
    let of_call: Vec<_> = updates
        .iter()
        .filter(|update| update["toolCallId"] == call)
        .collect();
    let shown = of_call
        .iter()
        .find(|update| update["content"][0]["type"] == "terminal");
    assert_eq!(shown.unwrap()["content"][0]["terminalId"], "term-0");
    let last = of_call.last().unwrap();
    assert_eq!(
        (&last["status"], &last["content"]),
        (&json!("failed"), &Value::Null),
        "the terminal stays shown"
    );
}

#[test]
fn terminal_is_not_used_for_confined_commands() {
    for mode in ["ask", "auto"] {
        let rig = rig([
            run_command("echo inside; touch /outside-of-haft 2>/dev/null || echo held"),
            Reply::text("Done."),
        ]);
        if !has_namespaces(&rig) {
            return;
        }
        let (mut editor, session) = start_with_terminals(&rig, &["--permission-mode", mode]);
        assert_eq!(stop_reason(&editor.prompt(&session, "go")), "end_turn");
        assert!(
            editor.terminals.called.is_empty(),
            "{mode}: {:?}",
            editor.terminals.called
        );
        let seen = last_message(&rig);
        assert!(
            seen.contains("inside") && seen.contains("held"),
            "{mode}: {seen}"
        );
    }
}

#[test]
fn terminal_is_not_created_for_refused_commands() {
    let rig = rig([run_outside_sandbox("touch made"), Reply::text("Done.")]);
    let (mut editor, session) = start_with_terminals(&rig, &[]);
    editor.permission = "reject_once";
    editor.prompt(&session, "go");
    assert!(editor.terminals.called.is_empty() && !rig.project().join("made").exists());
}

#[test]
fn terminal_runs_all_commands_in_yolo_without_secrets() {
    let rig = rig([
        run_command("echo key=${SECRET_API_KEY-none} path=${PATH:+set} list=${HAFT_UNSET-none}"),
        Reply::text("Done."),
    ])
    .with([("SECRET_API_KEY", "sk-of-the-editor")]);
    let (mut editor, session) = start_with_terminals(&rig, &["--permission-mode", "yolo"]);
    assert_eq!(stop_reason(&editor.prompt(&session, "go")), "end_turn");
    assert!(
        editor.asked.is_empty()
            && editor
                .terminals
                .called_methods()
                .contains(&"terminal/create")
    );
    let seen = last_message(&rig);
    assert!(seen.contains("key=none path=set list=none"), "{seen}");
    let (_, created) = &editor.terminals.called[0];
    let arguments = created["args"].as_array().unwrap();
    assert!(
        arguments
            .last()
            .unwrap()
            .as_str()
            .unwrap()
            .starts_with("echo key="),
        "{created}"
    );
    assert!(
        !created["args"].to_string().contains("-u "),
        "an editor shows the arguments: {created}"
    );
}

#[test]
fn terminal_kills_a_command_after_its_timeout() {
    let arguments = json!({"command": "sleep 60", "timeout": 1});
    let rig = rig([
        Reply::call("execute_command", arguments),
        Reply::text("Late."),
        Reply::text("Late."),
    ]);
    let (mut editor, session) = start_with_terminals(&rig, &["--permission-mode", "yolo"]);
    editor.terminals.holds = true;
    assert_eq!(stop_reason(&editor.prompt(&session, "go")), "end_turn");
    let seen = format!(
        "{:?}",
        rig.server.generation_requests()[1]
            .decode()
            .unwrap()
            .messages
            .last()
    );
    assert!(seen.contains("Timed out after 1 s"), "{seen}");
    assert!(editor.terminals.called_methods().contains(&"terminal/kill"));
}

#[test]
fn terminal_kills_the_command_of_a_canceled_turn() {
    let rig = rig([run_command("sleep 600")]);
    let (mut editor, session) = start_with_terminals(&rig, &["--permission-mode", "yolo"]);
    editor.terminals.holds = true;
    let prompt = editor.send_prompt(&session, "go");
    while !editor
        .terminals
        .called_methods()
        .contains(&"terminal/wait_for_exit")
    {
        assert!(editor.read_message().is_some());
    }
    editor.notify("session/cancel", json!({"sessionId": session}));
    assert_eq!(stop_reason(&editor.wait_for_response(prompt)), "cancelled");
    assert_eq!(
        editor.terminals.called_methods()[2..],
        ["terminal/kill", "terminal/output", "terminal/release"]
    );
}

#[test]
fn terminal_refusal_makes_haft_run_the_command() {
    let rig = rig([run_command("echo by haft"), Reply::text("Done.")]);
    let (mut editor, session) = start_with_terminals(&rig, &["--permission-mode", "yolo"]);
    editor.terminals.refuses = true;
    assert_eq!(stop_reason(&editor.prompt(&session, "go")), "end_turn");
    let seen = last_message(&rig);
    assert!(
        seen.contains("by haft") && seen.contains("--- stdout ---"),
        "{seen}"
    );
}
