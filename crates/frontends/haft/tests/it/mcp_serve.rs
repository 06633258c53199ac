//! `haft mcp serve` over real pipes and sockets: every tool, approvals, progress, cancellation and
//! malformed input.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

/// A client that writes and reads lines.
struct TaskClient {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next: u64,
    /// Messages that were read while waiting for another one.
    heard: Vec<Value>,
    /// The `_meta` field of every request, in the revision without a handshake.
    meta: Option<Value>,
}

impl TaskClient {
    fn spawn(rig: &Rig) -> Self {
        let mut command = rig.command(&["mcp", "serve"]);
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
            next: 1,
            heard: Vec::new(),
            meta: None,
        }
    }

    /// Starts a client of the revisions with a handshake.
    fn open(rig: &Rig, capabilities: Value) -> Self {
        let mut client = Self::spawn(rig);
        let answer = client.initialize(capabilities);
        assert_eq!(answer["result"]["serverInfo"]["name"], "haft", "{answer}");
        client
    }

    /// Starts a client of the newest revision.
    fn open_newest(rig: &Rig, capabilities: Value) -> Self {
        let mut client = Self::spawn(rig);
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        });
        meta["io.modelcontextprotocol/clientCapabilities"] = capabilities;
        client.meta = Some(meta);
        client
    }

    fn initialize(&mut self, capabilities: Value) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let mut params = json!({"protocolVersion": "2025-11-25", "clientInfo": client});
        params["capabilities"] = capabilities;
        let answer = self.request("initialize", params);
        self.send_message(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    fn send_message(&mut self, message: &Value) {
        self.send_line(message.to_string().as_bytes());
    }

    fn send_line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    fn send_request(&mut self, method: &str, mut params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        if let Some(meta) = &self.meta {
            let mut meta = meta.clone();
            if let Some(token) = params["_meta"].get("progressToken").cloned() {
                meta["progressToken"] = token;
            }
            params["_meta"] = meta;
        }
        self.send_message(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Reads until a message matches, and keeps the messages before it.
    fn read_until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the output ended: {:#?}",
                self.heard
            );
            let message: Value = serde_json::from_str(&line)
                .expect("nothing but the protocol is on standard output");
            if fits(&message) {
                return message;
            }
            self.heard.push(message);
        }
    }

    fn read_response(&mut self, id: u64) -> Value {
        let answers = |message: &Value| message["id"] == id && message.get("method").is_none();
        if let Some(at) = self.heard.iter().position(answers) {
            return self.heard.remove(at);
        }
        self.read_until(answers)
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send_request(method, params);
        self.read_response(id)
    }

    fn send_call(&mut self, tool: &str, arguments: Value) -> u64 {
        let mut params = json!({ "name": tool });
        params["arguments"] = arguments;
        self.send_request("tools/call", params)
    }

    /// Calls a tool and returns its structured result.
    fn call_tool(&mut self, tool: &str, arguments: Value) -> Value {
        let id = self.send_call(tool, arguments);
        self.read_task(id)
    }

    /// Returns the task in the response to a call.
    fn read_task(&mut self, id: u64) -> Value {
        let answer = self.read_response(id);
        let result = &answer["result"];
        assert_eq!(result["isError"], false, "{answer}");
        let text: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"], "the text says the same");
        text
    }

    /// Returns the error text of a call that must fail.
    fn call_failing_tool(&mut self, tool: &str, arguments: Value) -> String {
        let id = self.send_call(tool, arguments);
        let answer = self.read_response(id);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    /// Closes the input, and waits until the server exits.
    fn close_input(mut self) -> i32 {
        drop(self.input.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

/// Returns a rig in which calls may choose every mode but `yolo`.
fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap()).with([MODE_AUTO])
}

const MODE_AUTO: (&str, &str) = ("HAFT_PERMISSIONS__MODE", "auto");

fn write_file_call(path: &str) -> Reply {
    Reply::call("write_to_file", json!({"path": path, "content": "x"}))
}

fn question_call() -> Reply {
    Reply::call(
        "ask_followup_question",
        json!({"question": "Which colour?", "options": ["red", "blue"]}),
    )
}

/// A reply that arrives after every test has ended.
fn endless_reply() -> Reply {
    Reply {
        delay_ms: 600_000,
        ..Reply::text("Too late.")
    }
}

const FORM_CAPABILITIES: fn() -> Value = || json!({"elicitation": {}});

#[test]
fn tools_list_describes_tools_in_both_revisions() {
    let rig = rig([]);
    for mut client in [
        TaskClient::open(&rig, json!({})),
        TaskClient::open_newest(&rig, json!({})),
    ] {
        let answer = client.request("tools/list", json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap();
        let names: BTreeSet<_> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        let wanted = [
            "answer_task",
            "cancel_task",
            "continue_task",
            "get_task",
            "list_tasks",
            "start_task",
        ];
        assert_eq!(names, BTreeSet::from(wanted));
        for tool in tools {
            let fields = tool["inputSchema"]["properties"].as_object().unwrap();
            assert!(
                fields
                    .values()
                    .all(|field| field["description"].is_string()),
                "{tool:#}"
            );
            assert_eq!(
                (&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]),
                (&json!("object"), &json!("object"))
            );
            assert!(!tool.to_string().contains("$ref"), "{tool:#}");
            let reads = ["get_task", "list_tasks"].contains(&tool["name"].as_str().unwrap());
            assert_eq!(tool["annotations"]["readOnlyHint"], reads);
        }
        let modes = &tools
            .iter()
            .find(|tool| tool["name"] == "start_task")
            .unwrap()["inputSchema"];
        assert!(modes.to_string().contains("accept-edits") && !modes.to_string().contains("yolo"));
        assert_eq!(client.close_input(), 0);
    }
}

#[test]
fn task_is_started_continued_and_listed() {
    for newest in [false, true] {
        let rig = rig([
            write_file_call("a.txt"),
            Reply::text("One."),
            Reply::text("Two."),
        ]);
        let mut client = if newest {
            TaskClient::open_newest(&rig, json!({}))
        } else {
            TaskClient::open(&rig, json!({}))
        };
        let done = client.call_tool(
            "start_task",
            json!({"prompt": "make a.txt", "permission_mode": "accept-edits", "wait_seconds": 60}),
        );
        assert_eq!(
            (&done["status"], &done["text"]),
            (&json!("completed"), &json!("One.")),
            "{done:#}"
        );
        assert_eq!(
            done["changed_files"],
            json!([{"path": "a.txt", "change": "added"}])
        );
        assert!(
            done["usage"]["output"].as_u64() > Some(0) && done["cost_usd"].as_f64() > Some(0.0),
            "{done:#}"
        );
        let id = &done["task_id"];
        let running =
            client.call_tool("continue_task", json!({"task_id": id, "prompt": "and now"}));
        assert!(
            ["running", "completed"].contains(&running["status"].as_str().unwrap()),
            "{running:#}"
        );
        let done = client.call_tool("get_task", json!({"task_id": id, "wait_seconds": 60}));
        assert_eq!(
            (&done["status"], &done["text"]),
            (&json!("completed"), &json!("Two.")),
            "{done:#}"
        );
        let listed = client.call_tool("list_tasks", json!({}));
        assert_eq!(
            (
                &listed["tasks"][0]["task_id"],
                &listed["tasks"][0]["status"]
            ),
            (id, &json!("completed"))
        );
        let tools = client.request("tools/list", json!({}))["result"]["tools"].clone();
        for (name, given) in [("start_task", &done), ("list_tasks", &listed)] {
            let tool = tools
                .as_array()
                .unwrap()
                .iter()
                .find(|tool| tool["name"] == name)
                .unwrap();
            jsonschema::validate(&tool["outputSchema"], given)
                .expect("what a tool gives fits its schema");
        }
        assert_eq!(client.close_input(), 0);
        assert_eq!(
            &rig.run(&["conversations", "list", "--json"]).json()[0]["id"],
            id
        );
    }
}

#[test]
fn approval_without_forms_waits_for_answer_task() {
    let said = json!({"decision": "deny", "reason": "not now"});
    for (answer, exists) in [
        (json!({"decision": "allow"}), true),
        (json!({"decision": "always"}), true),
        (said, false),
    ] {
        let rig = rig([write_file_call("a.txt"), Reply::text("Done.")]);
        let mut client = TaskClient::open(&rig, json!({}));
        let asks = client.call_tool(
            "start_task",
            json!({"prompt": "make a.txt", "permission_mode": "ask", "wait_seconds": 60}),
        );
        assert_eq!(
            (&asks["status"], &asks["approvals"][0]["tool"]),
            (&json!("waiting"), &json!("write_to_file"))
        );
        assert!(
            asks["approvals"][0]["subject"]
                .as_str()
                .unwrap()
                .contains("a.txt"),
            "{asks:#}"
        );
        assert!(!rig.project().join("a.txt").exists());
        let id = &asks["task_id"];
        assert!(
            client
                .call_failing_tool("answer_task", json!({"task_id": id, "answer": "yes"}))
                .contains("decision")
        );
        assert!(
            client
                .call_failing_tool("continue_task", json!({"task_id": id, "prompt": "x"}))
                .contains("still running")
        );
        let mut arguments = answer;
        (arguments["task_id"], arguments["wait_seconds"]) = (id.clone(), json!(60));
        let done = client.call_tool("answer_task", arguments.clone());
        assert_eq!(done["status"], "completed", "{done:#}");
        assert_eq!(rig.project().join("a.txt").exists(), exists);
        assert_eq!(
            rig.server.generation_requests()[1]
                .decode()
                .unwrap()
                .last_message_contains("not now"),
            !exists
        );
        let rules = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
        assert!(
            !rules.contains("allow = "),
            "only a user saves rules: {rules}"
        );
        assert!(
            client
                .call_failing_tool("answer_task", json!({"task_id": id, "decision": "allow"}))
                .contains("asks nothing")
        );
        assert_eq!(client.close_input(), 0);
    }
}

#[test]
fn configured_mode_limits_every_task() {
    for (configured, wanted) in [
        ("plan", "ask"),
        ("plan", "auto"),
        ("ask", "accept-edits"),
        ("accept-edits", "auto"),
    ] {
        let rig = Rig::new(
            Api::Anthropic,
            Script::turns([Reply::text("One."), Reply::text("Two.")]).unwrap(),
        );
        let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
        rig.configure(&format!("{config}[permissions]\nmode = \"{configured}\"\n"));
        let mut client = TaskClient::open(&rig, json!({}));
        let refused = client.call_failing_tool(
            "start_task",
            json!({"prompt": "x", "permission_mode": wanted, "cwd": rig.home()}),
        );
        assert!(
            refused.contains(&format!("than the configured mode `{configured}`")),
            "{refused}"
        );
        let done = client.call_tool("start_task", json!({"prompt": "x", "wait_seconds": 60}));
        let id = &done["task_id"];
        let refused = client.call_failing_tool(
            "continue_task",
            json!({"task_id": id, "prompt": "x", "permission_mode": wanted}),
        );
        assert!(refused.contains("configured mode"), "{refused}");
        let lower =
            json!({"task_id": id, "prompt": "x", "permission_mode": "plan", "wait_seconds": 60});
        assert_eq!(
            client.call_tool("continue_task", lower)["status"],
            "completed"
        );
        assert_eq!(client.close_input(), 0);
        assert_eq!(rig.server.generation_requests().len(), 2);
    }
}

/// The configured mode does not hold in folders that the caller chose and the user does not trust.
#[test]
fn untrusted_folder_limits_tasks_to_asking() {
    let rig = rig([write_file_call("a.txt"), write_file_call("a.txt")]);
    let folder = tempfile::tempdir().unwrap();
    let mut client = TaskClient::open(&rig, json!({}));
    for mode in [json!(null), json!("auto")] {
        let mut start = json!({"prompt": "make a.txt", "cwd": folder.path(), "wait_seconds": 60});
        if !mode.is_null() {
            start["permission_mode"] = mode;
        }
        let asks = client.call_tool("start_task", start);
        assert_eq!(asks["status"], "waiting", "{asks:#}");
        client.call_tool("cancel_task", json!({"task_id": asks["task_id"]}));
    }
    assert!(!folder.path().join("a.txt").exists());
    assert_eq!(client.close_input(), 0);
}

#[test]
fn approval_with_forms_is_decided_by_the_user() {
    let accept = |decision: &str| json!({"action": "accept", "content": {"decision": decision}});
    let cases = [
        (accept("allow"), true),
        (accept("deny"), false),
        (json!({"action": "decline"}), false),
        (accept("?"), false),
    ];
    for (filled, exists) in cases {
        let rig = rig([write_file_call("a.txt"), Reply::text("Done.")]);
        let mut client = TaskClient::open(&rig, FORM_CAPABILITIES());
        let start = json!({"prompt": "make a.txt", "permission_mode": "ask", "wait_seconds": 60});
        let call = client.send_call("start_task", start);
        let form = client.read_until(|message| message["method"] == "elicitation/create");
        assert!(
            form["params"]["message"]
                .as_str()
                .unwrap()
                .contains("a.txt"),
            "{form:#}"
        );
        assert_eq!(
            form["params"]["requestedSchema"]["properties"]["decision"]["type"],
            "string"
        );
        client.send_message(&json!({"jsonrpc": "2.0", "id": form["id"], "result": filled}));
        assert_eq!(client.read_task(call)["status"], "completed");
        assert_eq!(rig.project().join("a.txt").exists(), exists);
        assert_eq!(client.close_input(), 0);
    }
}

#[test]
fn answer_task_cannot_approve_for_a_client_with_forms() {
    let rig = rig([write_file_call("a.txt"), Reply::text("Done.")]);
    let mut client = TaskClient::open(&rig, FORM_CAPABILITIES());
    let started = client.call_tool(
        "start_task",
        json!({"prompt": "make a.txt", "permission_mode": "ask"}),
    );
    let id = &started["task_id"];
    let wait = client.send_call("get_task", json!({"task_id": id, "wait_seconds": 60}));
    let form = client.read_until(|message| message["method"] == "elicitation/create");
    for decision in ["allow", "always"] {
        let refused =
            client.call_failing_tool("answer_task", json!({"task_id": id, "decision": decision}));
        assert!(refused.contains("the user decides"), "{refused}");
    }
    // A client that cannot show the form it announced leaves the decision to its model.
    client.send_message(
        &json!({"jsonrpc": "2.0", "id": form["id"], "error": {"code": -32601, "message": "no"}}),
    );
    assert_eq!(client.read_task(wait)["status"], "waiting");
    let done = client.call_tool(
        "answer_task",
        json!({"task_id": id, "decision": "allow", "wait_seconds": 60}),
    );
    assert_eq!(done["status"], "completed");
    assert_eq!(client.close_input(), 0);
}

#[test]
fn newest_revision_repeats_the_call_with_the_form() {
    for (decision, exists) in [("allow", true), ("deny", false)] {
        let rig = rig([write_file_call("a.txt"), Reply::text("Done.")]);
        let mut client = TaskClient::open_newest(&rig, FORM_CAPABILITIES());
        let arguments =
            json!({"prompt": "make a.txt", "permission_mode": "ask", "wait_seconds": 60});
        let asked = client.request(
            "tools/call",
            json!({"name": "start_task", "arguments": arguments}),
        );
        let result = &asked["result"];
        assert_eq!(result["resultType"], "input_required", "{asked:#}");
        let (key, form) = result["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .next()
            .unwrap();
        assert_eq!(form["method"], "elicitation/create");
        let filled = json!({key.as_str(): {"action": "accept", "content": {"decision": decision}}});
        let again = json!({
            "name": "start_task", "arguments": arguments, "inputResponses": filled, "requestState": result["requestState"],
        });
        let done = client.request("tools/call", again);
        assert_eq!(
            done["result"]["structuredContent"]["status"], "completed",
            "{done:#}"
        );
        assert_eq!(rig.project().join("a.txt").exists(), exists);
        assert_eq!(client.close_input(), 0);
        assert_eq!(rig.server.generation_requests().len(), 2, "it is one task");
    }
}

#[test]
fn question_is_answered_by_tool_or_form() {
    for forms in [false, true] {
        let rig = rig([question_call(), Reply::text("Red it is.")]);
        let mut client = TaskClient::open(
            &rig,
            if forms {
                FORM_CAPABILITIES()
            } else {
                json!({})
            },
        );
        let call = client.send_call(
            "start_task",
            json!({"prompt": "paint it", "wait_seconds": 60}),
        );
        let done = if forms {
            let form = client.read_until(|message| message["method"] == "elicitation/create");
            assert!(
                form["params"]["message"]
                    .as_str()
                    .unwrap()
                    .contains("- blue"),
                "{form:#}"
            );
            let filled = json!({"action": "accept", "content": {"answer": "red"}});
            client.send_message(&json!({"jsonrpc": "2.0", "id": form["id"], "result": filled}));
            client.read_task(call)
        } else {
            let asks = client.read_task(call);
            assert_eq!(
                (&asks["status"], &asks["question"]),
                (
                    &json!("waiting"),
                    &json!({"question": "Which colour?", "options": ["red", "blue"]})
                )
            );
            let id = &asks["task_id"];
            assert!(
                client
                    .call_failing_tool("answer_task", json!({"task_id": id}))
                    .contains("`answer`")
            );
            client.call_tool(
                "answer_task",
                json!({"task_id": id, "answer": "red", "wait_seconds": 60}),
            )
        };
        assert_eq!(
            (&done["status"], &done["text"]),
            (&json!("completed"), &json!("Red it is.")),
            "{done:#}"
        );
        assert!(
            rig.server.generation_requests()[1]
                .decode()
                .unwrap()
                .last_message_contains("red")
        );
        assert_eq!(client.close_input(), 0);
    }
}

#[test]
fn progress_is_reported_while_a_call_waits() {
    let rig = rig([
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Done."),
    ]);
    let mut client = TaskClient::open(&rig, json!({}));
    let arguments = json!({"prompt": "look", "wait_seconds": 60});
    let params =
        json!({"name": "start_task", "arguments": arguments, "_meta": {"progressToken": "p"}});
    let id = client.send_request("tools/call", params);
    assert_eq!(client.read_task(id)["status"], "completed");
    let told: Vec<_> = client
        .heard
        .iter()
        .filter(|one| one["method"] == "notifications/progress")
        .collect();
    let steps: Vec<_> = told
        .iter()
        .map(|one| one["params"]["progress"].as_f64().unwrap())
        .collect();
    assert!(
        steps.len() > 1 && steps.windows(2).all(|two| two[0] < two[1]),
        "{told:#?}"
    );
    assert!(
        told.iter().any(|one| one["params"]["message"]
            .as_str()
            .unwrap()
            .contains("Done: List .")),
        "{told:#?}"
    );
    assert!(told.iter().all(|one| one["params"]["progressToken"] == "p"));
    assert_eq!(client.close_input(), 0);
}

#[test]
fn canceled_call_ends_the_task_only_with_cancel_with_call() {
    for (with_call, status) in [(false, "running"), (true, "aborted")] {
        let rig = rig([endless_reply()]);
        let mut client = TaskClient::open(&rig, json!({}));
        let arguments =
            json!({"prompt": "wait", "wait_seconds": 600, "cancel_with_call": with_call});
        let params =
            json!({"name": "start_task", "arguments": arguments, "_meta": {"progressToken": 1}});
        let id = client.send_request("tools/call", params);
        client.read_until(|message| message["method"] == "notifications/progress");
        client.send_message(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}));
        let task = client.call_tool("list_tasks", json!({}))["tasks"][0].clone();
        assert_eq!(task["name"], "wait", "{task:#}");
        let wait = if with_call { 60 } else { 0 };
        let task = client.call_tool(
            "get_task",
            json!({"task_id": task["task_id"], "wait_seconds": wait}),
        );
        assert_eq!(task["status"], status, "{task:#}");
        assert_eq!(
            client.call_tool("cancel_task", json!({"task_id": task["task_id"]}))["status"],
            "aborted"
        );
        assert!(
            !client.heard.iter().any(|message| message["id"] == id),
            "a cancelled request is not answered"
        );
        assert_eq!(client.close_input(), 0);
    }
}

#[test]
fn limits_end_a_task_that_continue_task_resumes() {
    let rig = rig([
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Done."),
    ]);
    let mut client = TaskClient::open(&rig, json!({}));
    let stopped = client.call_tool(
        "start_task",
        json!({"prompt": "look", "limits": {"max_turns": 1}, "wait_seconds": 60}),
    );
    assert_eq!(stopped["status"], "exhausted", "{stopped:#}");
    let done = client.call_tool(
        "continue_task",
        json!({"task_id": stopped["task_id"], "wait_seconds": 60}),
    );
    assert_eq!(
        (&done["status"], &done["text"]),
        (&json!("completed"), &json!("Done.")),
        "{done:#}"
    );
    assert_eq!(client.close_input(), 0);
}

#[test]
fn continue_task_resumes_after_disconnect_or_kill() {
    for kill in [false, true] {
        let rig = rig([write_file_call("a.txt"), Reply::text("Done.")]);
        let mut client = TaskClient::open(&rig, json!({}));
        let start = json!({"prompt": "make a.txt", "permission_mode": "ask", "wait_seconds": 60});
        let id = client.call_tool("start_task", start)["task_id"].clone();
        if kill {
            client.child.kill().unwrap();
            client.child.wait().unwrap();
        } else {
            assert_eq!(client.close_input(), 0);
        }
        assert!(!rig.project().join("a.txt").exists());
        let mut client = TaskClient::open(&rig, json!({}));
        let left = client.call_tool("get_task", json!({"task_id": id}));
        assert_eq!(left["status"], "aborted", "{left:#}");
        let go_on = json!({"task_id": id, "permission_mode": "accept-edits", "wait_seconds": 60});
        let done = client.call_tool("continue_task", go_on);
        assert_eq!(
            (&done["status"], &done["text"]),
            (&json!("completed"), &json!("Done.")),
            "{done:#}"
        );
        assert_eq!(client.close_input(), 0);
        let mut client = TaskClient::open(&rig, json!({}));
        let done = client.call_tool("get_task", json!({"task_id": id}));
        assert_eq!(
            (&done["status"], &done["text"]),
            (&json!("completed"), &json!("Done.")),
            "{done:#}"
        );
        assert_eq!(client.close_input(), 0);
    }
}

#[test]
fn question_survives_a_server_restart() {
    let rig = rig([question_call(), Reply::text("Blue it is.")]);
    let mut client = TaskClient::open(&rig, json!({}));
    let asks = client.call_tool(
        "start_task",
        json!({"prompt": "paint it", "wait_seconds": 60}),
    );
    assert_eq!(client.close_input(), 0);
    let mut client = TaskClient::open(&rig, json!({}));
    let still = client.call_tool("get_task", json!({"task_id": asks["task_id"]}));
    assert_eq!(
        (&still["status"], &still["question"]),
        (&json!("waiting"), &asks["question"])
    );
    let answer = json!({"task_id": asks["task_id"], "answer": "blue", "wait_seconds": 60});
    assert_eq!(
        client.call_tool("answer_task", answer)["text"],
        "Blue it is."
    );
    assert_eq!(client.close_input(), 0);
}

#[test]
fn tools_report_unknown_tasks_and_folders() {
    let rig = rig([]);
    let mut client = TaskClient::open(&rig, json!({}));
    for (tool, arguments, said) in [
        ("get_task", json!({"task_id": "nope"}), "there is no task"),
        (
            "continue_task",
            json!({"task_id": "nope", "prompt": "x"}),
            "there is no task",
        ),
        ("cancel_task", json!({"task_id": ""}), "there is no task"),
        (
            "start_task",
            json!({"prompt": "x", "cwd": "/no/such/folder"}),
            "is not a folder",
        ),
        (
            "list_tasks",
            json!({"cwd": "/no/such/folder"}),
            "is not a folder",
        ),
    ] {
        let failed = client.call_failing_tool(tool, arguments);
        assert!(failed.contains(said), "{tool}: {failed}");
    }
    let no_model = client.call_tool(
        "start_task",
        json!({"prompt": "x", "model": "no/such", "wait_seconds": 60}),
    );
    assert_eq!(no_model["status"], "failed", "{no_model:#}");
    assert!(
        no_model["message"].as_str().unwrap().contains("no/such"),
        "{no_model:#}"
    );
    for (name, arguments) in [
        ("start_task", json!({})),
        ("start_task", json!({"prompt": " "})),
        ("start_task", json!({"prompt": 5})),
        (
            "start_task",
            json!({"prompt": "x", "permission_mode": "yolo"}),
        ),
        (
            "start_task",
            json!({"prompt": "x", "permission_mode": "bypassPermissions"}),
        ),
        ("start_task", json!({"prompt": "x", "unknown": 1})),
        (
            "start_task",
            json!({"prompt": "x", "limits": {"max_turns": -1}}),
        ),
        ("get_task", json!({"task_id": 5})),
        ("no_such_tool", json!({})),
    ] {
        let answer = client.request("tools/call", json!({"name": name, "arguments": arguments}));
        assert_eq!(
            answer["error"]["code"], -32602,
            "{name} {arguments}: {answer}"
        );
    }
    assert_eq!(client.close_input(), 0);
    assert_eq!(
        rig.run(&["mcp", "serve", "--permission-mode", "yolo"])
            .code(),
        2
    );
    assert_eq!(rig.run(&["mcp", "serve", "--http", "0.0.0.0:0"]).code(), 2);
}

/// Malformed lines, each with the error code of its response; lines without a code get no response.
fn malformed_lines() -> Vec<(Vec<u8>, Option<i64>)> {
    let deep = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{}",
        "[".repeat(10_000)
    );
    let long = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}",
        "x".repeat(65 << 20)
    );
    let text = |line: &str| line.as_bytes().to_vec();
    vec![
        (b"\xff\xfe\x00".to_vec(), Some(-32700)),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xc3\x28\"}".to_vec(),
            Some(-32700),
        ),
        (text("not JSON"), Some(-32700)),
        (text("{"), Some(-32700)),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}}"),
            Some(-32700),
        ),
        (text("\u{0}"), Some(-32700)),
        (deep.into_bytes(), Some(-32700)),
        (long.into_bytes(), Some(-32700)),
        (text("[]"), Some(-32600)),
        (
            text("[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]"),
            Some(-32600),
        ),
        (text("null"), Some(-32600)),
        (text("5"), Some(-32600)),
        (text("\"text\""), Some(-32600)),
        (text("{\"id\":91,\"method\":\"ping\"}"), Some(-32600)),
        (
            text("{\"jsonrpc\":\"1.0\",\"id\":92,\"method\":\"ping\"}"),
            Some(-32600),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}"),
            Some(-32600),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":1.5,\"method\":\"ping\"}"),
            Some(-32600),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}"),
            Some(-32600),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":93,\"method\":5}"),
            Some(-32600),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":94,\"method\":\"no/such\"}"),
            Some(-32601),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":95,\"method\":\"\"}"),
            Some(-32601),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":96,\"method\":\"tools/call\"}"),
            Some(-32602),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":97,\"method\":\"tools/call\",\"params\":5}"),
            Some(-32600),
        ),
        (
            text(
                "{\"jsonrpc\":\"2.0\",\"id\":98,\"method\":\"tools/call\",\"params\":{\"name\":5}}",
            ),
            Some(-32602),
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"initialize\",\"params\":{}}"),
            Some(-32602),
        ),
        (text(""), None),
        (text("   \r"), None),
        (text("{}"), None),
        (text("{\"jsonrpc\":\"2.0\"}"), None),
        (
            text("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/nothing\"}"),
            None,
        ),
        (
            text(
                "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}",
            ),
            None,
        ),
        (
            text("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":5}"),
            None,
        ),
        (text("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}"), None),
        (
            text("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":1,\"message\":\"\"}}"),
            None,
        ),
        (text("{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":5}"), None),
    ]
}

#[test]
fn malformed_lines_get_errors_and_do_no_harm() {
    let rig = rig([]);
    for opened in [false, true] {
        let mut client = if opened {
            TaskClient::open(&rig, json!({}))
        } else {
            TaskClient::spawn(&rig)
        };
        for (line, code) in malformed_lines() {
            client.send_line(&line);
            let shown = String::from_utf8_lossy(&line[..line.len().min(100)]).into_owned();
            if let Some(code) = code {
                let answer = client.read_until(|message| message.get("error").is_some());
                // Before the handshake a well-formed request is rejected because of the missing
                // handshake.
                let early = !opened
                    && [-32601, -32602].contains(&code)
                    && answer["error"]["code"] == -32602;
                assert!(
                    early || answer["error"]["code"] == code,
                    "{shown}: {answer}"
                );
                assert!(
                    answer["error"]["message"]
                        .as_str()
                        .is_some_and(|text| !text.is_empty()),
                    "{shown}: {answer}"
                );
            }
            let alive = client.request("ping", json!({}));
            assert_eq!(alive["result"], json!({}), "{shown}");
            assert!(client.heard.is_empty(), "{shown}: {:?}", client.heard);
        }
        if !opened {
            assert!(client.initialize(json!({}))["result"].is_object());
        }
        assert_eq!(
            client.call_tool("list_tasks", json!({}))["tasks"],
            json!([])
        );
        assert_eq!(client.close_input(), 0);
    }
}

#[test]
fn duplicate_request_id_is_rejected() {
    let rig = rig([endless_reply()]);
    let mut client = TaskClient::open(&rig, json!({}));
    let id = client.call_tool("start_task", json!({"prompt": "wait"}))["task_id"].clone();
    let wait = client.send_call("get_task", json!({"task_id": id, "wait_seconds": 600}));
    client.next = wait;
    let twice = client.request("ping", json!({}));
    assert_eq!(twice["error"]["code"], -32600, "{twice}");
    client.call_tool("cancel_task", json!({"task_id": id}));
    assert_eq!(client.read_task(wait)["status"], "aborted");
    // The canceled task may not be stored yet; it can be continued nevertheless.
    let again = client.call_tool("continue_task", json!({"task_id": id}));
    assert_eq!(again["status"], "running", "{again:#}");
    assert_eq!(
        client.call_tool("cancel_task", json!({"task_id": id}))["status"],
        "aborted"
    );
    let free = std::mem::replace(&mut client.next, wait);
    assert_eq!(
        client.request("ping", json!({}))["result"],
        json!({}),
        "it is free again"
    );
    client.next = free;
    assert_eq!(client.close_input(), 0);
}

#[test]
fn server_exits_when_its_input_closes() {
    let rig = rig([endless_reply()]);
    assert_eq!(TaskClient::spawn(&rig).close_input(), 0);
    let mut client = TaskClient::open(&rig, json!({}));
    client.send_call("start_task", json!({"prompt": "wait", "wait_seconds": 600}));
    assert_eq!(client.close_input(), 0);
}

/// A server over HTTP that is killed when the test ends.
struct ServedTasks {
    child: Child,
    address: String,
    token: String,
}

impl ServedTasks {
    fn start(rig: &Rig, token: Option<&str>) -> Self {
        let mut command = rig.command(&["mcp", "serve", "--http"]);
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .envs(token.map(|token| ("HAFT_MCP_TOKEN", token)));
        let mut child = command.spawn().unwrap();
        let first = |stream: &mut dyn Read| {
            let mut line = String::new();
            BufReader::new(stream).read_line(&mut line).unwrap();
            line.trim().to_owned()
        };
        let url = first(child.stdout.as_mut().unwrap());
        let address = url
            .strip_prefix("http://")
            .and_then(|rest| rest.strip_suffix("/mcp"))
            .unwrap()
            .to_owned();
        let token = token.map_or_else(
            || {
                first(child.stderr.as_mut().unwrap())
                    .rsplit(' ')
                    .next()
                    .unwrap()
                    .to_owned()
            },
            str::to_owned,
        );
        Self {
            child,
            address,
            token,
        }
    }

    /// Returns the status and the rest of the response.
    fn post(&self, path: &str, headers: &str, body: &Value) -> (u16, String) {
        self.send("POST", path, headers, &body.to_string())
    }

    /// Returns the status and the rest of the response.
    fn send(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let accept =
            "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\n{headers}{accept}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (status, rest) = answer.split_once("\r\n").unwrap();
        (
            status.split(' ').nth(1).unwrap().parse().unwrap(),
            rest.to_owned(),
        )
    }
}

impl Drop for ServedTasks {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn http_requires_the_token_and_its_own_host() {
    let rig = rig([Reply::text("Done.")]);
    for given in [None, Some("mine-0123456789")] {
        let server = ServedTasks::start(&rig, given);
        let address = &server.address;
        let token = &server.token;
        assert!(address.starts_with("127.0.0.1:"), "{address}");
        let client = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let bearer = format!("authorization: Bearer {token}\r\n");
        let own = format!("host: {address}\r\n");
        let port = address.rsplit(':').next().unwrap();
        for (path, headers, status) in [
            ("/mcp", format!("{own}{bearer}"), 200),
            (
                "/mcp",
                format!("host: localhost:{port}\r\nauthorization: bearer {token}\r\n"),
                200,
            ),
            (
                "/mcp",
                format!("{own}{bearer}origin: http://{address}\r\n"),
                200,
            ),
            ("/mcp", own.clone(), 401),
            (
                "/mcp",
                format!("{own}authorization: Bearer {token}x\r\n"),
                401,
            ),
            ("/mcp", format!("{own}authorization: Bearer \r\n"), 401),
            ("/mcp", format!("{own}authorization: {token}\r\n"), 401),
            ("/", format!("{own}{bearer}"), 404),
            (
                "/mcp",
                format!("host: evil.example:{port}\r\n{bearer}"),
                403,
            ),
            ("/mcp", format!("host: 127.0.0.1:1\r\n{bearer}"), 403),
            (
                "/mcp",
                format!("{own}{bearer}origin: http://evil.example\r\n"),
                403,
            ),
            ("/mcp", format!("{own}{bearer}origin: null\r\n"), 403),
        ] {
            let (got, answer) = server.post(path, &headers, &hello);
            assert_eq!(got, status, "{path} {headers}: {answer}");
            assert_eq!(answer.contains("serverInfo"), status == 200, "{answer}");
        }
    }
}

#[test]
fn http_answers_the_end_of_a_session_with_204() {
    let rig = rig([Reply::text("Done.")]);
    let server = ServedTasks::start(&rig, None);
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let headers = format!(
        "host: {}\r\nauthorization: Bearer {}\r\n",
        server.address, server.token
    );
    let (_, answer) = server.post("/mcp", &headers, &hello);
    let session = answer
        .lines()
        .find_map(|line| line.strip_prefix("mcp-session-id: "))
        .unwrap_or_else(|| panic!("{answer}"))
        .to_owned();
    let headers =
        format!("{headers}mcp-session-id: {session}\r\nmcp-protocol-version: 2025-11-25\r\n");
    let (status, answer) = server.send("DELETE", "/mcp", &headers, "");
    assert_eq!(status, 204, "{answer}");
}

#[test]
fn http_runs_a_task_without_a_session() {
    let rig = rig([Reply::text("Done.")]);
    let server = ServedTasks::start(&rig, None);
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let arguments = json!({"prompt": "hi", "wait_seconds": 60});
    let params = json!({"name": "start_task", "arguments": arguments, "_meta": meta});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let headers = format!(
        "host: {}\r\nauthorization: Bearer {}\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: start_task\r\n",
        server.address, server.token
    );
    let (status, answer) = server.post("/mcp", &headers, &call);
    assert_eq!(status, 200, "{answer}");
    assert!(
        answer.contains("\"completed\"") && answer.contains("Done."),
        "{answer}"
    );
}
