//! `haft acp` as an editor drives it: real pipes, a scripted model.

mod attached;
mod broken;
mod files;
mod forms;
mod killed;
mod modes;
mod queue;
mod terminals;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use haft_testkit::{Gate, Reply, Script, SeenRole, Stop};
use haft_types::Api;
use serde_json::{Value, json};

use crate::jobs::wait_until;
use crate::rig::Rig;
use crate::sandbox::has_namespaces;
use crate::serve::ServedPage;
use crate::terminal::Terminal;

/// An editor connected to `haft acp`.
pub(crate) struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The number of the last request.
    last: u64,
    /// Every update of a session, in order.
    updates: Vec<Value>,
    /// Responses that arrived while another one was awaited.
    answers: HashMap<u64, Value>,
    /// The kind of the option with which the editor answers permission requests.
    pub(crate) permission: &'static str,
    /// All permission requests.
    pub(crate) asked: Vec<Value>,
    /// The contents of the files that are open in the editor.
    buffers: HashMap<String, String>,
    /// Files that haft wrote through the editor.
    written: Vec<String>,
    /// What happens to the folders of the project, and the folder outside, while a file is read.
    swap: Option<(Swap, PathBuf, PathBuf)>,
    /// The answer to forms. `None` leaves them unanswered.
    form: Option<Value>,
    forms: Vec<Value>,
    terminals: terminals::Terminals,
}

impl Editor {
    fn start(rig: &Rig, arguments: &[&str]) -> Self {
        let mut all = vec!["acp"];
        all.extend(arguments);
        let mut command = rig.command(&all);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
            last: 0,
            updates: Vec::new(),
            answers: HashMap::new(),
            permission: "reject_once",
            asked: Vec::new(),
            buffers: HashMap::new(),
            written: Vec::new(),
            swap: None,
            form: None,
            forms: Vec::new(),
            terminals: terminals::Terminals::default(),
        }
    }

    /// Starts `haft acp` and sends `initialize` with the editor's capabilities.
    fn initialized(rig: &Rig, capabilities: Value) -> Self {
        let mut editor = Self::start(rig, &[]);
        let mut hello = json!({"protocolVersion": 1});
        hello["clientCapabilities"] = capabilities;
        assert_eq!(
            editor.call("initialize", hello)["result"]["protocolVersion"],
            1
        );
        editor
    }

    /// Starts an initialized editor with one session in the project.
    pub(crate) fn in_session(rig: &Rig, capabilities: Value) -> (Self, String) {
        let mut editor = Self::initialized(rig, capabilities);
        let id = editor.new_session(&rig.project());
        (editor, id)
    }

    fn new_session(&mut self, cwd: &Path) -> String {
        let made = self.call("session/new", json!({"cwd": cwd, "mcpServers": []}));
        made["result"]["sessionId"]
            .as_str()
            .unwrap_or_else(|| panic!("{made}"))
            .to_owned()
    }

    fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn send(&mut self, method: &str, params: Value) -> u64 {
        self.last += 1;
        let mut request = json!({"jsonrpc": "2.0", "id": self.last, "method": method});
        request["params"] = params;
        self.send_line(request.to_string().as_bytes());
        self.last
    }

    fn notify(&mut self, method: &str, params: Value) {
        let mut notification = json!({"jsonrpc": "2.0", "method": method});
        notification["params"] = params;
        self.send_line(notification.to_string().as_bytes());
    }

    /// Reads and records the next message, and responds if it is a request. Returns `None` at the
    /// end of the output.
    fn read_message(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line).unwrap() == 0 {
            return None;
        }
        let message: Value =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        match message["method"].as_str() {
            Some("session/update") => self.updates.push(message["params"]["update"].clone()),
            Some(method) if !message["id"].is_null() => {
                if method == "terminal/create" && self.terminals.refuses {
                    let error = json!({"code": -32603, "message": "no terminal"});
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                    self.send_line(answer.to_string().as_bytes());
                } else if let Some(answer) = self.response_to(method, &message["params"]) {
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": answer});
                    self.send_line(answer.to_string().as_bytes());
                }
            }
            _ => {}
        }
        Some(message)
    }

    /// Returns the editor's response to a request, or `None` to leave haft waiting.
    fn response_to(&mut self, method: &str, params: &Value) -> Option<Value> {
        let path = || params["path"].as_str().unwrap().to_owned();
        Some(match method {
            "session/request_permission" => {
                self.asked.push(params.clone());
                let options = params["options"].as_array().unwrap();
                let chosen = options
                    .iter()
                    .find(|option| option["kind"] == self.permission)?;
                json!({"outcome": {"outcome": "selected", "optionId": chosen["optionId"]}})
            }
            "fs/read_text_file" => {
                let open = self.buffers.get(&path()).cloned();
                let read = || match &self.swap {
                    Some((swap, project, outside)) => {
                        swap.read_meanwhile(project, outside, &path())
                    }
                    None => std::fs::read_to_string(path()).unwrap(),
                };
                json!({"content": open.unwrap_or_else(read)})
            }
            "fs/write_text_file" => {
                let text = params["content"].as_str().unwrap();
                std::fs::write(path(), text).unwrap();
                if let Some(open) = self.buffers.get_mut(&path()) {
                    text.clone_into(open);
                }
                self.written.push(path());
                json!(null)
            }
            "elicitation/create" => {
                self.forms.push(params.clone());
                self.form.clone()?
            }
            _ if method.starts_with("terminal/") => self.terminals.respond(method, params)?,
            other => panic!("haft asked for {other}"),
        })
    }

    fn wait_for_response(&mut self, id: u64) -> Value {
        while !self.answers.contains_key(&id) {
            let message = self
                .read_message()
                .unwrap_or_else(|| panic!("the output ended: {:#?}", self.updates));
            if let (Some(of), None) = (message["id"].as_u64(), message["method"].as_str()) {
                self.answers.insert(of, message);
            }
        }
        self.answers.remove(&id).unwrap()
    }

    fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.wait_for_response(id)
    }

    fn send_prompt(&mut self, session: &str, text: &str) -> u64 {
        self.send(
            "session/prompt",
            json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]}),
        )
    }

    pub(crate) fn prompt(&mut self, session: &str, text: &str) -> Value {
        let id = self.send_prompt(session, text);
        self.wait_for_response(id)
    }

    /// Reads until an update matches.
    fn read_until_update(&mut self, fits: impl Fn(&Value) -> bool) {
        let mut seen = 0;
        loop {
            if self.updates[seen..].iter().any(&fits) {
                return;
            }
            seen = self.updates.len();
            assert!(
                self.read_message().is_some(),
                "the output ended: {:#?}",
                self.updates
            );
        }
    }

    /// Reads until haft requests permission.
    fn read_until_permission_request(&mut self) {
        while self.asked.is_empty() {
            assert!(
                self.read_message().is_some(),
                "the output ended: {:#?}",
                self.updates
            );
        }
    }

    pub(crate) fn updates_of_kind(&self, kind: &str) -> Vec<&Value> {
        self.updates
            .iter()
            .filter(|update| update["sessionUpdate"] == kind)
            .collect()
    }

    /// Returns the agent's text, joined from all updates.
    fn agent_text(&self) -> String {
        self.updates_of_kind("agent_message_chunk")
            .iter()
            .map(|chunk| chunk["content"]["text"].as_str().unwrap())
            .collect()
    }

    /// Closes the input and returns the exit code.
    fn finish(mut self) -> i32 {
        drop(self.input.take());
        while self.read_message().is_some() {}
        self.child.wait().unwrap().code().unwrap_or(-1)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// A way to let `a/d` in the project lead elsewhere for a moment.
#[derive(Clone, Copy, Debug)]
enum Swap {
    /// `a/d` becomes a link.
    Link,
    /// `a` becomes a link.
    OuterLink,
    /// `a/d` is exchanged with the folder outside.
    Exchange,
}

impl Swap {
    fn read_meanwhile(self, project: &Path, outside: &Path, file: &str) -> String {
        let folder = match self {
            Self::Link | Self::Exchange => project.join("a/d"),
            Self::OuterLink => project.join("a"),
        };
        let kept = project.join("kept");
        match self {
            Self::Link | Self::OuterLink => {
                std::fs::rename(&folder, &kept).unwrap();
                std::os::unix::fs::symlink(outside, &folder).unwrap();
                let text = std::fs::read_to_string(file).unwrap();
                std::fs::remove_file(&folder).unwrap();
                std::fs::rename(&kept, &folder).unwrap();
                text
            }
            Self::Exchange => {
                std::fs::rename(&folder, &kept).unwrap();
                std::fs::rename(outside, &folder).unwrap();
                let text = std::fs::read_to_string(file).unwrap();
                std::fs::rename(&folder, outside).unwrap();
                std::fs::rename(&kept, &folder).unwrap();
                text
            }
        }
    }
}

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

/// Makes `auto` the configured mode, which limits the modes that an editor can choose.
const MODE_AUTO: (&str, &str) = ("HAFT_PERMISSIONS__MODE", "auto");

fn stop_reason(answer: &Value) -> &str {
    answer["result"]["stopReason"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn session_updates_show_text_plan_calls_and_diffs() {
    let todos = json!({"todos": [{"content": "Look", "status": "completed"}, {"content": "Fix", "status": "completed"}]});
    let rig = rig([
        Reply::call("todo_write", todos)
            .with_thinking("Where is it?")
            .with_text("I look."),
        Reply::call("read_file", json!({"path": "a.txt", "start_line": 1})),
        Reply::call(
            "replace_in_file",
            json!({"path": "a.txt", "diff": "<<<<<<< SEARCH\none\n=======\neins\n>>>>>>> REPLACE\n"}),
        ),
        Reply::text("Done."),
    ]);
    rig.write("a.txt", "one\ntwo\n");
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    editor.permission = "allow_once";
    let answer = editor.prompt(&session, "Translate one");
    assert_eq!(stop_reason(&answer), "end_turn");
    assert_eq!(editor.agent_text(), "I look.Done.");
    assert_eq!(
        editor.updates_of_kind("agent_thought_chunk")[0]["content"]["text"],
        "Where is it?"
    );
    let plan = &editor.updates_of_kind("plan")[0]["entries"];
    assert_eq!(
        (&plan[0]["status"], &plan[1]["content"]),
        (&json!("completed"), &json!("Fix"))
    );
    let calls = editor.updates_of_kind("tool_call");
    assert_eq!(
        calls.iter().map(|call| &call["kind"]).collect::<Vec<_>>(),
        ["read", "edit"]
    );
    let path = json!(rig.project().join("a.txt"));
    let whole = editor.updates_of_kind("tool_call_update");
    let read = whole
        .iter()
        .find(|update| update["title"] == "Read a.txt, from line 1")
        .unwrap();
    assert_eq!(read["locations"], json!([{"path": path, "line": 1}]));
    let edit = calls[1]["toolCallId"].clone();
    let of_edit: Vec<_> = whole
        .iter()
        .filter(|update| update["toolCallId"] == edit)
        .collect();
    let diff = &of_edit[0]["content"][0];
    assert_eq!(
        (&diff["type"], &diff["oldText"], &diff["newText"]),
        (&json!("diff"), &json!("one\n"), &json!("eins\n"))
    );
    let last = of_edit.last().unwrap();
    assert_eq!(last["status"], "completed");
    assert_eq!(
        last["content"][0]["newText"], "eins\ntwo\n",
        "after the call the whole file is shown"
    );
    let asked = &editor.asked[0];
    assert_eq!(asked["toolCall"]["toolCallId"], edit);
    let usage = *editor.updates_of_kind("usage_update").last().unwrap();
    assert!(
        usage["used"].as_u64().unwrap() > 0
            && usage["size"] == 200_000
            && usage["cost"]["currency"] == "USD"
    );
    assert_eq!(editor.finish(), 0);
    assert_eq!(
        std::fs::read_to_string(rig.project().join("a.txt")).unwrap(),
        "eins\ntwo\n"
    );
}

#[test]
fn permission_request_honors_reject_always_and_once() {
    let run = |line: &str| Reply::call("execute_command", json!({"command": line}));
    let rig = rig([
        run("touch one"),
        Reply::text("No?"),
        run("touch two"),
        run("touch two"),
        Reply::text("Yes."),
        Reply::call(
            "execute_command",
            json!({"command": "touch three", "sandbox": "outside"}),
        ),
        Reply::text("Out."),
    ]);
    if !has_namespaces(&rig) {
        return;
    }
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    assert_eq!(stop_reason(&editor.prompt(&session, "one")), "end_turn");
    assert!(!rig.project().join("one").exists());
    editor.permission = "allow_always";
    assert_eq!(stop_reason(&editor.prompt(&session, "two")), "end_turn");
    assert_eq!(
        editor.asked.len(),
        2,
        "once is enough for what is always allowed"
    );
    let always = editor.asked[1]["options"]
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["kind"] == "allow_always");
    let name = always.unwrap()["name"].as_str().unwrap();
    assert!(name.contains("touch"), "the rule is named: {name}");
    assert!(
        std::fs::read_to_string(rig.home().join("config.toml"))
            .unwrap()
            .contains("touch"),
        "and kept"
    );
    editor.permission = "allow_once";
    editor.prompt(&session, "three");
    let title = editor.asked[2]["toolCall"]["title"].as_str().unwrap();
    assert!(title.ends_with("(outside the sandbox)"), "{title}");
    assert!(rig.project().join("two").exists() && rig.project().join("three").exists());
}

#[test]
fn session_mode_and_model_can_change_between_prompts() {
    let write = |name: &str| Reply::call("write_to_file", json!({"path": name, "content": "x"}));
    let rig = rig([
        write("a"),
        Reply::text("a"),
        write("b"),
        Reply::text("b"),
        Reply::text("c"),
    ])
    .with([MODE_AUTO]);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[models.\"mock/other\"]\ncontext_window = 100000\nmax_output_tokens = 1000\n"
    ));
    let mut editor = Editor::initialized(&rig, json!({}));
    let made = editor.call(
        "session/new",
        json!({"cwd": rig.project(), "mcpServers": []}),
    );
    let session = made["result"]["sessionId"].as_str().unwrap().to_owned();
    let modes = made["result"]["modes"]["availableModes"]
        .as_array()
        .unwrap();
    assert_eq!(
        modes.iter().map(|mode| &mode["id"]).collect::<Vec<_>>(),
        ["plan", "ask", "accept-edits", "auto"]
    );
    let options = made["result"]["configOptions"].as_array().unwrap();
    assert_eq!(
        options
            .iter()
            .map(|one| &one["category"])
            .collect::<Vec<_>>(),
        ["mode", "model"]
    );
    editor.call(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "accept-edits"}),
    );
    editor.prompt(&session, "a");
    assert!(editor.asked.is_empty() && rig.project().join("a").exists());
    let model = json!({"sessionId": session, "configId": "model", "value": "mock/other"});
    let chosen = editor.call("session/set_config_option", model);
    assert_eq!(
        chosen["result"]["configOptions"][1]["currentValue"],
        "mock/other"
    );
    editor.prompt(&session, "b");
    assert_eq!(
        rig.server
            .generation_requests()
            .last()
            .unwrap()
            .decode()
            .unwrap()
            .model,
        "other"
    );
    for (method, params, code) in [
        (
            "session/set_mode",
            json!({"sessionId": session, "modeId": "yolo"}),
            -32602,
        ),
        (
            "session/set_mode",
            json!({"sessionId": "nobody", "modeId": "plan"}),
            -32002,
        ),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "model", "value": "mock/none"}),
            -32602,
        ),
        (
            "session/set_config_option",
            json!({"sessionId": session, "configId": "colour", "value": "red"}),
            -32602,
        ),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": []}),
            0,
        ),
        (
            "session/new",
            json!({"cwd": "relative", "mcpServers": []}),
            -32602,
        ),
        (
            "session/new",
            json!({"cwd": "/there/is/nothing", "mcpServers": []}),
            -32602,
        ),
    ] {
        let answer = editor.call(method, params.clone());
        assert_eq!(
            answer["error"]["code"].as_i64().unwrap_or_default(),
            code,
            "{method} {params}: {answer}"
        );
    }
}

#[test]
fn cancel_ends_a_turn_in_every_state() {
    for state in ["streaming", "silent", "asked", "running"] {
        let gate = Gate::default();
        let reply = match state {
            "streaming" => Reply::text("0123456789").held_halfway_by(&gate),
            "silent" => Reply::text("never").held_by(&gate),
            "asked" => Reply::call("execute_command", json!({"command": "touch asked"})),
            _ => Reply::call("execute_command", json!({"command": "sleep 600"})),
        };
        let rig = rig([reply, Reply::text("Again.")]);
        let (mut editor, session) = Editor::in_session(&rig, json!({}));
        editor.permission = if state == "running" {
            "allow_once"
        } else {
            "nothing"
        };
        let prompt = editor.send_prompt(&session, "go");
        match state {
            "streaming" => {
                editor.read_until_update(|update| update["sessionUpdate"] == "agent_message_chunk");
            }
            "silent" => while rig.server.generation_requests().is_empty() {},
            "asked" => editor.read_until_permission_request(),
            _ => editor.read_until_update(|update| update["status"] == "in_progress"),
        }
        // A second cancel has no effect.
        editor.notify("session/cancel", json!({"sessionId": session}));
        editor.notify("session/cancel", json!({"sessionId": session}));
        let answer = editor.wait_for_response(prompt);
        assert_eq!(stop_reason(&answer), "cancelled", "{state}");
        editor.permission = "reject_once";
        // The server sends the interrupted reply again.
        gate.open();
        assert_eq!(
            stop_reason(&editor.prompt(&session, "again")),
            "end_turn",
            "{state}"
        );
        assert_eq!(editor.finish(), 0, "{state}");
        assert!(!rig.project().join("asked").exists());
    }
}

#[test]
fn prompt_reports_refusals_and_provider_errors() {
    let refusal = Reply {
        stop: Some(Stop::Refusal),
        ..Reply::text("I can't.")
    };
    let rig = rig([refusal]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    assert_eq!(stop_reason(&editor.prompt(&session, "go")), "refusal");
    let rig = self::rig(std::iter::repeat_n(Reply::error(400, "no such thing"), 4));
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let failed = editor.prompt(&session, "go");
    assert!(
        failed["error"]["message"]
            .as_str()
            .is_some_and(|said| said.contains("no such thing")),
        "{failed}"
    );
}

#[test]
fn sessions_run_in_parallel_and_close() {
    let gate = Gate::default();
    // The replies are used in order: both sessions send a first turn.
    let replies = [Reply::text("First.").held_by(&gate), Reply::text("Second.")];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let other = editor.new_session(&rig.project());
    let first = editor.send_prompt(&session, "one");
    wait_until("the first session to wait for its reply", || {
        !rig.server.generation_requests().is_empty()
    });
    assert_eq!(stop_reason(&editor.prompt(&other, "three")), "end_turn");
    gate.open();
    assert_eq!(stop_reason(&editor.wait_for_response(first)), "end_turn");
    let listed = editor.call("session/list", json!({"cwd": rig.project()}));
    assert_eq!(
        listed["result"]["sessions"].as_array().unwrap().len(),
        2,
        "{listed}"
    );
    let closed = editor.call("session/close", json!({"sessionId": session}));
    assert!(closed["error"].is_null(), "{closed}");
    assert_eq!(editor.prompt(&session, "gone")["error"]["code"], -32002);
}

#[test]
fn prompt_accepts_files_images_and_commands() {
    let rig = rig([Reply::text("1"), Reply::text("2")]);
    rig.write("src/my file.rs", "fn main() {}\n");
    rig.write(
        ".haft/commands/greet.md",
        "Say hello to $ARGUMENTS in French.\n",
    );
    rig.run(&["trust"]);
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let root = rig.project().display().to_string();
    let pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let prompt = json!([
        {"type": "text", "text": "Look at "},
        {"type": "resource_link", "name": "file", "uri": format!("file://{root}/src/my%20file.rs")},
        {"type": "resource", "resource": {"uri": "zed:///selection", "text": "selected text"}},
        {"type": "image", "data": pixel, "mimeType": "image/png"},
    ]);
    let answer = editor.call(
        "session/prompt",
        json!({"sessionId": session, "prompt": prompt}),
    );
    assert_eq!(stop_reason(&answer), "end_turn");
    let request = rig.server.generation_requests()[0].decode().unwrap();
    let user = request
        .messages
        .iter()
        .find(|message| message.role == SeenRole::User)
        .unwrap();
    let text = format!("{user:?}");
    assert!(
        text.contains("src/my file.rs") && text.contains("selected text") && text.contains("Image"),
        "{text}"
    );
    let commands = editor.updates_of_kind("available_commands_update")[0]["availableCommands"]
        .as_array()
        .unwrap();
    let names: Vec<_> = commands
        .iter()
        .map(|command| command["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["greet", "init", "continue"]);
    editor.prompt(&session, "/greet Ada");
    let request = rig.server.generation_requests()[1].decode().unwrap();
    assert!(format!("{:?}", request.messages.last()).contains("Say hello to Ada in French."));
    let unknown = editor.prompt(&session, "/nothing");
    assert!(
        unknown["error"]["message"]
            .as_str()
            .unwrap()
            .contains("nothing"),
        "{unknown}"
    );
    let audio = json!([{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]);
    let refused = editor.call(
        "session/prompt",
        json!({"sessionId": session, "prompt": audio}),
    );
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
}

#[test]
fn authenticate_succeeds_once_a_model_is_configured() {
    let rig = rig([Reply::text("Here.")]);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure("");
    let mut editor = Editor::start(&rig, &[]);
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {"auth": {"terminal": true}}});
    let method = editor.call("initialize", hello)["result"]["authMethods"][0].clone();
    assert_eq!(
        (&method["type"], &method["args"]),
        (&json!("terminal"), &json!(["--setup"]))
    );
    let params = json!({"cwd": rig.project(), "mcpServers": []});
    assert_eq!(
        editor.call("session/new", params.clone())["error"]["code"],
        -32000
    );
    assert_eq!(
        editor.call("authenticate", json!({"methodId": method["id"]}))["error"]["code"],
        -32000
    );
    rig.configure(&config);
    assert!(editor.call("authenticate", json!({"methodId": method["id"]}))["error"].is_null());
    let session = editor.call("session/new", params)["result"]["sessionId"]
        .as_str()
        .unwrap()
        .to_owned();
    editor.prompt(&session, "hello");
    assert_eq!(editor.agent_text(), "Here.");
}

#[test]
fn configuration_error_is_the_answer_until_it_is_corrected() {
    let rig = rig([Reply::text("Here.")]);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure("modle = \"x\"\n");
    let mut editor = Editor::start(&rig, &[]);
    let hello = json!({"protocolVersion": 1, "clientCapabilities": {}});
    let params = json!({"cwd": rig.project(), "mcpServers": []});
    for (method, params) in [
        ("initialize", &hello),
        ("session/new", &params),
        ("session/list", &json!({})),
    ] {
        let answer = editor.call(method, params.clone());
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("modle"), "{method}: {answer}");
    }
    rig.configure(&config);
    assert_eq!(
        editor.call("initialize", hello)["result"]["protocolVersion"],
        1
    );
    let session = editor.new_session(&rig.project());
    editor.prompt(&session, "hello");
    assert_eq!(editor.agent_text(), "Here.");
    assert_eq!(editor.finish(), 0);
}

#[test]
fn prompt_separates_linked_files_from_text() {
    let rig = rig([Reply::text("Compared.")]);
    rig.write("a.txt", "a\n");
    rig.write("b.txt", "b\n");
    let (mut editor, session) = Editor::in_session(&rig, json!({}));
    let root = rig.project().display().to_string();
    let link = |name: &str| json!({"type": "resource_link", "name": name, "uri": format!("file://{root}/{name}")});
    let prompt = json!([link("a.txt"), link("b.txt"), {"type": "text", "text": "compare these"}]);
    let answer = editor.call(
        "session/prompt",
        json!({"sessionId": session, "prompt": prompt}),
    );
    assert_eq!(stop_reason(&answer), "end_turn");
    let request = rig.server.generation_requests()[0].decode().unwrap();
    let sent = format!("{:?}", request.messages);
    for text in ["- a.txt", "- b.txt", " compare these"] {
        assert!(sent.contains(text), "{text}: {sent}");
    }
}

#[test]
fn session_new_starts_the_editors_mcp_servers() {
    let call = json!({"server_name": "given", "tool_name": "echo", "arguments": {"text": "hi"}});
    let rig = rig([Reply::call("use_mcp_tool", call), Reply::text("Done.")]);
    if !has_namespaces(&rig) {
        return;
    }
    rig.write("server.sh", haft_testkit::support::SHELL_MCP_SERVER);
    let mut editor = Editor::initialized(&rig, json!({}));
    editor.permission = "allow_once";
    let server = json!({"name": "given", "command": "/bin/sh", "args": [rig.project().join("server.sh")], "env": []});
    let made = editor.call(
        "session/new",
        json!({"cwd": rig.project(), "mcpServers": [server]}),
    );
    let session = made["result"]["sessionId"].as_str().unwrap().to_owned();
    assert_eq!(stop_reason(&editor.prompt(&session, "use it")), "end_turn");
    let offered = rig.server.generation_requests()[0].decode().unwrap();
    assert!(
        format!("{offered:?}").contains("given"),
        "the server is offered"
    );
}

#[test]
fn conversations_match_between_all_front_ends() {
    let script = || {
        [
            Reply::call(
                "write_to_file",
                json!({"path": "a.txt", "content": "one\n"}),
            ),
            Reply::call("read_file", json!({"path": "a.txt"})),
            Reply::text("Done."),
        ]
    };
    let over_acp = rig(script()).with([MODE_AUTO]);
    let (mut editor, session) = Editor::in_session(&over_acp, json!({}));
    editor.call(
        "session/set_mode",
        json!({"sessionId": session, "modeId": "accept-edits"}),
    );
    editor.prompt(&session, "Write one");
    editor.finish();
    let headless = rig(script());
    headless.run(&["run", "--permission-mode", "accept-edits", "Write one"]);
    let on_the_page = rig(script());
    let page = ServedPage::start(&on_the_page);
    let place = page.start_run(&on_the_page, "accept-edits", "Write one");
    page.wait_for_page(&place, ">Completed<");
    drop(page);
    let comparable_conversation = |rig: &Rig| {
        let project = rig.project().display().to_string();
        let exported = rig.export();
        let message = |one: &Value| {
            let text = json!([one["role"], one["content"], one["metadata"]["origin"]]).to_string();
            text.replace(&project, "PROJECT")
        };
        let without_times = |text: String| {
            let mut value: Value = serde_json::from_str(&text).unwrap();
            remove_times_and_ids(&mut value);
            value
        };
        let messages = exported["messages"].as_array().unwrap();
        (
            exported["name"].clone(),
            messages
                .iter()
                .map(|one| without_times(message(one)))
                .collect::<Vec<_>>(),
        )
    };
    let at_the_terminal = rig(script());
    let mut terminal = Terminal::start(
        &at_the_terminal,
        &["--permission-mode", "accept-edits"],
        (100, 30),
    );
    terminal.until_text("> ");
    terminal.press("Write one\r");
    terminal.until_text("Done.");
    terminal.until_idle();
    terminal.press("\u{4}");
    assert_eq!(terminal.wait_for_exit().0, 0);
    assert_eq!(
        comparable_conversation(&at_the_terminal),
        comparable_conversation(&headless)
    );
    assert_eq!(
        comparable_conversation(&over_acp),
        comparable_conversation(&headless)
    );
    assert_eq!(
        comparable_conversation(&on_the_page),
        comparable_conversation(&headless)
    );
    let file = |rig: &Rig| std::fs::read(rig.project().join("a.txt")).unwrap();
    assert_eq!(file(&over_acp), file(&headless));
    assert_eq!(file(&on_the_page), file(&headless));
    assert_eq!(file(&at_the_terminal), file(&headless));
}

/// Removes what differs from run to run: times and ids.
fn remove_times_and_ids(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, _| {
                !matches!(
                    name.as_str(),
                    "mtime_ns" | "id" | "tool_call_id" | "mtime" | "modified"
                )
            });
            fields.values_mut().for_each(remove_times_and_ids);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_times_and_ids),
        Value::String(text) if text.contains("modified") => text.clear(),
        _ => {}
    }
}
