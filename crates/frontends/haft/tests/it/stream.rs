//! Machine-readable input and output: events over a pipe, sessions driven over standard input, and
//! the format of Claude Code.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use haft_testkit::support::{McpServer, Revision, SHELL_MCP_SERVER};
use haft_testkit::{Recorded, Reply, Script, SeenPart, SeenRole};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::sandbox::has_namespaces;

/// A run that is driven line by line.
pub(crate) struct DrivenRun {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    seen: Vec<Value>,
}

impl DrivenRun {
    fn start(rig: &Rig, arguments: &[&str]) -> Self {
        let mut all = vec![
            "run",
            "--output-format",
            "stream-json",
            "--input-format",
            "stream-json",
        ];
        all.extend(arguments);
        Self::spawn(rig.command(&all))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
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
            seen: Vec::new(),
        }
    }

    pub(crate) fn send_line(&mut self, line: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    /// Reads until a line matches, and returns it.
    pub(crate) fn read_until(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert!(
                self.output.read_line(&mut line).unwrap() > 0,
                "the output ended: {:#?}",
                self.seen
            );
            let line: Value = serde_json::from_str(&line).unwrap();
            self.seen.push(line.clone());
            if fits(&line) {
                return line;
            }
        }
    }

    pub(crate) fn read_until_type(&mut self, kind: &str) -> Value {
        self.read_until(|line| line["type"] == kind)
    }

    /// Returns the next line, or `None` at the end of the output.
    pub(crate) fn read_next(&mut self) -> Option<Value> {
        let mut line = String::new();
        (self.output.read_line(&mut line).unwrap() > 0).then(|| {
            let line: Value = serde_json::from_str(&line).unwrap();
            self.seen.push(line.clone());
            line
        })
    }

    /// Reads to the end of the output, with an open input; returns the exit code and every line.
    pub(crate) fn finish_reading(mut self) -> (i32, Vec<Value>) {
        while self.read_next().is_some() {}
        self.finish()
    }

    /// Closes the input; returns the exit code and every line.
    pub(crate) fn finish(mut self) -> (i32, Vec<Value>) {
        drop(self.input.take());
        let mut line = String::new();
        while self.output.read_line(&mut line).unwrap() > 0 {
            self.seen.push(serde_json::from_str(&line).unwrap());
            line.clear();
        }
        (self.child.wait().unwrap().code().unwrap_or(-1), self.seen)
    }
}

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

fn prompt_line(text: &str) -> Value {
    json!({"type": "user", "text": text})
}

fn write_a() -> Reply {
    Reply::call("write_to_file", json!({"path": "a.txt", "content": "x"}))
}

#[test]
fn events_page_is_up_to_date() {
    let page = rig([]).run(&["events"]).stdout();
    let committed = include_str!("../../../../../docs/events.md");
    assert!(
        page == committed,
        "run `cargo run -p haft -- events > docs/events.md`"
    );
    let schemas = rig([]).run(&["events", "--json"]).json();
    assert!(
        schemas["event"].is_object() && schemas["input"].is_object(),
        "{schemas}"
    );
}

#[test]
fn stream_json_runs_several_turns_in_one_process() {
    let usage = || Usage {
        input: 10,
        output: 5,
        ..Usage::default()
    };
    let rig = rig([
        Reply::text("One.").with_usage(usage()),
        Reply::text("Two.").with_usage(usage()),
    ]);
    let mut driven = DrivenRun::start(&rig, &[]);
    driven.send_line(&prompt_line("first"));
    assert_eq!(driven.read_until_type("result")["text"], "One.");
    driven.send_line(&prompt_line("second"));
    let second = driven.read_until_type("result");
    assert_eq!(
        (&second["text"], &second["usage"]["input"], &second["turns"]),
        (&json!("Two."), &json!(10), &json!(1))
    );
    let (code, lines) = driven.finish();
    assert_eq!(code, 0);
    let numbers: Vec<_> = lines
        .iter()
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(
        numbers,
        (1..=lines.len() as u64).collect::<Vec<_>>(),
        "numbers go on over turns"
    );
    let resumed: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "conversation")
        .map(|line| &line["resumed"])
        .collect();
    assert_eq!(resumed, [&json!(false), &json!(true)]);
    let requests: Vec<_> = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    assert_eq!(requests[1].messages[..1], requests[0].messages[..]);
    assert_eq!(
        rig.run(&["conversations", "list", "--json"]).json()[0]["name"],
        "first"
    );
}

#[test]
fn early_prompt_waits_and_is_answered_after_end_of_input() {
    let rig = rig([Reply::text("One."), Reply::text("Two.")]);
    let mut driven = DrivenRun::start(&rig, &["first"]);
    driven.send_line(&prompt_line("second"));
    let (code, lines) = driven.finish();
    let results: Vec<_> = lines
        .iter()
        .filter(|line| line["type"] == "result")
        .map(|line| &line["text"])
        .collect();
    assert_eq!((code, results), (0, vec![&json!("One."), &json!("Two.")]));
}

#[test]
fn approval_request_is_answered_over_standard_input() {
    for (decision, exists) in [("allow", true), ("deny", false)] {
        let rig = rig([write_a(), Reply::text("Done.")]);
        let mut driven = DrivenRun::start(&rig, &["--ask", "make a.txt"]);
        let asked = driven.read_until_type("approval_request");
        assert_eq!(
            (&asked["tool"], &asked["arguments"]["path"]),
            (&json!("write_to_file"), &json!("a.txt")),
            "{asked}"
        );
        assert!(!rig.project().join("a.txt").exists());
        driven.send_line(&json!({"type": "approval", "id": asked["id"], "decision": decision, "message": "not now"}));
        driven.read_until_type("result");
        assert_eq!(rig.project().join("a.txt").exists(), exists);
        let told = rig.server.generation_requests()[1].decode().unwrap();
        assert_eq!(told.last_message_contains("They said: not now"), !exists);
        assert_eq!(driven.finish().0, 0);
    }
}

#[test]
fn server_form_is_filled_in_over_standard_input() {
    let filled = json!({"decision": "accept", "values": {"name": "Ada"}});
    for (answer, wanted) in [
        (
            Some(filled),
            r#"{"action":"accept","content":{"name":"Ada"}}"#,
        ),
        (
            Some(json!({"decision": "decline"})),
            r#"{"action":"decline"}"#,
        ),
        (None, r#"{"action":"decline"}"#),
    ] {
        let there = McpServer::start(Revision::Previous).unwrap();
        let ask = json!({"server_name": "web", "tool_name": "ask", "arguments": {}});
        let rig = rig([Reply::call("use_mcp_tool", ask), Reply::text("Done.")]);
        let file = rig.home().join("config.toml");
        let more = format!(
            "[mcp_servers.web]\nurl = \"{}\"\npermission = \"allow\"\n",
            there.url()
        );
        std::fs::write(
            &file,
            format!("{}{more}", std::fs::read_to_string(&file).unwrap()),
        )
        .unwrap();
        let mut driven = DrivenRun::start(&rig, &["--ask", "use it"]);
        let form = driven.read_until_type("form_request");
        assert_eq!(
            (&form["from"], &form["message"]),
            (&json!("the MCP server `web`"), &json!("Your name?"))
        );
        assert_eq!(
            (&form["fields"][0]["name"], &form["fields"][0]["kind"]),
            (&json!("name"), &json!("text"))
        );
        if let Some(mut answer) = answer {
            answer["type"] = "form".into();
            answer["id"] = form["id"].clone();
            driven.send_line(&answer);
        }
        let (code, lines) = driven.finish();
        let result = lines
            .iter()
            .find(|line| line["type"] == "tool_result")
            .unwrap();
        assert_eq!((code, &result["text"]), (0, &json!(wanted)));
    }
}

/// The server and the hook run a file that the model has just written.
#[test]
fn changed_server_and_hook_need_approval_before_they_start() {
    for (decision, runs) in [("allow", true), ("deny", false)] {
        let call = json!({"server_name": "s", "tool_name": "show", "arguments": {}});
        let rig = rig([
            Reply::call(
                "write_to_file",
                json!({"path": "server.sh", "content": SHELL_MCP_SERVER}),
            ),
            Reply::call("use_mcp_tool", call),
            Reply::text("Done."),
        ]);
        if !has_namespaces(&rig) {
            return;
        }
        rig.write(
            ".mcp.json",
            r#"{"mcpServers": {"s": {"command": "sh", "args": ["server.sh"]}}}"#,
        );
        std::fs::create_dir(rig.project().join(".haft")).unwrap();
        let hook =
            "[[hooks.stop]]\nhooks = [{ command = \"sh server.sh </dev/null; touch hooked\" }]\n";
        rig.write(".haft/config.toml", hook);
        rig.run(&["trust"]);
        let file = rig.home().join("config.toml");
        let more = "[permissions]\nallow = [\"mcp__s\", \"write_to_file\"]\n";
        std::fs::write(
            &file,
            format!("{}{more}", std::fs::read_to_string(&file).unwrap()),
        )
        .unwrap();
        let mut driven = DrivenRun::start(&rig, &["--ask", "go"]);
        for tool in ["mcp__s", "hook"] {
            let asked = driven.read_until_type("approval_request");
            assert_eq!(asked["tool"], tool, "{asked}");
            assert!(
                asked["reason"]
                    .as_str()
                    .unwrap()
                    .contains("`server.sh` changed"),
                "{asked}"
            );
            assert!(
                asked["arguments"]["command"]
                    .as_str()
                    .unwrap()
                    .contains("server.sh"),
                "{asked}"
            );
            driven.send_line(&json!({"type": "approval", "id": asked["id"], "decision": decision}));
        }
        driven.read_until_type("result");
        assert_eq!(driven.finish().0, 0);
        assert_eq!(rig.project().join("starts").exists(), runs);
        assert_eq!(rig.project().join("hooked").exists(), runs);
    }
}

#[test]
fn approval_request_is_denied_at_end_of_input() {
    let rig = rig([write_a(), Reply::text("Done.")]);
    let mut driven = DrivenRun::start(&rig, &["--ask", "make a.txt"]);
    driven.read_until_type("approval_request");
    let (_, lines) = driven.finish();
    assert_eq!(lines.last().unwrap()["type"], "result");
    assert!(!rig.project().join("a.txt").exists());
}

#[test]
fn interrupt_ends_the_turn_but_not_the_session() {
    let sleep = Reply::call(
        "execute_command",
        json!({"command": "sleep 600", "requires_approval": false}),
    );
    let rig = rig([sleep, Reply::text("As you like.")]);
    let mut driven = DrivenRun::start(&rig, &["--permission-mode", "yolo", "wait a minute"]);
    driven.read_until(|line| line["type"] == "tool_call" && line["phase"] == "finished");
    driven.send_line(&json!({"type": "interrupt"}));
    assert_eq!(driven.read_until_type("result")["outcome"], "aborted");
    driven.send_line(&prompt_line("never mind"));
    let last = driven.read_until_type("result");
    assert_eq!(
        (&last["outcome"], &last["text"]),
        (&json!("completed"), &json!("As you like."))
    );
    assert_eq!(driven.finish().0, 0);
}

/// The interrupt comes before haft has begun a turn with the prompt.
#[test]
fn interrupt_right_after_a_prompt_ends_its_turn() {
    let rig = rig([Reply::text("As you like.")]);
    let mut driven = DrivenRun::start(&rig, &[]);
    driven.send_line(&prompt_line("wait a minute"));
    driven.send_line(&json!({"type": "interrupt"}));
    assert_eq!(driven.read_until_type("result")["outcome"], "aborted");
    // An interrupt while nothing runs does not concern the next prompt.
    driven.send_line(&json!({"type": "interrupt"}));
    driven.send_line(&prompt_line("never mind"));
    assert_eq!(driven.read_until_type("result")["text"], "As you like.");
    assert_eq!(driven.finish().0, 0);
}

#[test]
fn invalid_line_is_reported_and_skipped() {
    let rig = rig([Reply::text("Hello.")]);
    let mut driven = DrivenRun::start(&rig, &[]);
    for bad in [
        json!("hi"),
        json!({"type": "user"}),
        json!({"type": "approval", "id": "x", "decision": "allow"}),
    ] {
        driven.send_line(&bad);
        assert!(
            driven.read_until_type("input_error")["message"]
                .as_str()
                .unwrap()
                .contains("left out")
        );
    }
    driven.send_line(&prompt_line("hi"));
    assert_eq!(driven.read_until_type("result")["text"], "Hello.");
    assert_eq!(driven.finish().0, 0);
    assert_eq!(
        DrivenRun::start(&rig, &[]).finish().0,
        2,
        "without a message there is nothing to do"
    );
}

#[test]
fn max_total_tokens_covers_all_turns() {
    let usage = || Usage {
        input: 60,
        output: 10,
        ..Usage::default()
    };
    let look = || Reply::call("list_files", json!({"path": "."})).with_usage(usage());
    let rig = rig([
        Reply::text("One.").with_usage(usage()),
        look(),
        look(),
        look(),
    ]);
    let mut driven = DrivenRun::start(&rig, &["--max-total-tokens", "200", "first"]);
    assert_eq!(driven.read_until_type("result")["outcome"], "completed");
    driven.send_line(&prompt_line("second"));
    let last = driven.read_until_type("result");
    assert_eq!(
        (&last["outcome"], &last["code"]),
        (&json!("exhausted"), &json!("max_tokens"))
    );
    assert_eq!(
        (driven.finish().0, rig.server.generation_requests().len()),
        (4, 3)
    );
}

fn claude_prompt_line(text: &str) -> Value {
    json!({"type": "user", "message": {"role": "user", "content": text}, "parent_tool_use_id": null, "session_id": "x"})
}

#[test]
fn compat_claude_reads_and_writes_claude_code_lines() {
    let rig = rig([write_a(), Reply::text("Done."), Reply::text("Again.")]);
    let mut driven = DrivenRun::start(
        &rig,
        &["--compat", "claude", "--ask", "--include-partial-messages"],
    );
    driven.send_line(
        &json!({"type": "control_request", "request_id": "r1", "request": {"subtype": "initialize", "hooks": null}}),
    );
    assert_eq!(
        driven.read_until_type("control_response")["response"]["request_id"],
        "r1"
    );
    driven.send_line(&claude_prompt_line("make a.txt"));
    let asked = driven.read_until_type("control_request");
    assert_eq!(asked["request"]["subtype"], "can_use_tool");
    let mut input = asked["request"]["input"].clone();
    input["path"] = json!("b.txt");
    let allow = json!({"behavior": "allow", "updatedInput": input});
    driven.send_line(&json!({"type": "control_response", "response": {"subtype": "success", "request_id": asked["request_id"], "response": allow}}));
    let result = driven.read_until_type("result");
    assert_eq!(
        (&result["subtype"], &result["result"], &result["num_turns"]),
        (&json!("success"), &json!("Done."), &json!(2))
    );
    assert!(rig.project().join("b.txt").exists() && !rig.project().join("a.txt").exists());
    driven.send_line(&claude_prompt_line("again"));
    assert_eq!(driven.read_until_type("result")["result"], "Again.");
    let (code, lines) = driven.finish();
    assert_eq!(code, 0);
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert!(
        init["tools"]
            .as_array()
            .unwrap()
            .contains(&json!("read_file")),
        "{init}"
    );
    for line in lines
        .iter()
        .filter(|line| !line["type"].as_str().unwrap().starts_with("control_"))
    {
        let kind = line["type"].as_str().unwrap();
        assert!(
            ["system", "assistant", "user", "result", "stream_event"].contains(&kind),
            "{line}"
        );
        assert_eq!(line["session_id"], init["session_id"], "{line}");
    }
}

#[test]
fn changed_arguments_are_checked_against_rules() {
    let rig = rig([write_a(), Reply::text("I may not.")]);
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[permissions]\ndeny = [\"write_to_file(secret/**)\"]\n"
    ));
    let mut driven = DrivenRun::start(&rig, &["--compat", "claude", "--ask", "make a.txt"]);
    let asked = driven.read_until_type("control_request");
    let allow =
        json!({"behavior": "allow", "updatedInput": {"path": "secret/a.txt", "content": "x"}});
    driven.send_line(&json!({"type": "control_response", "response": {"subtype": "success", "request_id": asked["request_id"], "response": allow}}));
    let result = driven.read_until_type("result");
    assert_eq!(
        result["permission_denials"][0]["tool_name"], "write_to_file",
        "{result}"
    );
    assert!(!rig.project().join("secret").exists());
    driven.finish();
}

/// Returns the number of times a request holds a text.
fn count_occurrences(request: &Recorded, text: &str) -> usize {
    String::from_utf8_lossy(&request.body).matches(text).count()
}

fn approval_line(asked: &Value) -> Value {
    json!({"type": "approval", "id": asked["id"], "decision": "allow"})
}

fn result_texts(lines: &[Value]) -> Vec<&str> {
    let results = lines.iter().filter(|line| line["type"] == "result");
    results
        .map(|line| {
            line["text"]
                .as_str()
                .or_else(|| line["result"].as_str())
                .unwrap()
        })
        .collect()
}

#[test]
fn prompt_sent_during_a_turn_joins_its_next_request() {
    let rig = rig([write_a(), Reply::text("Both."), Reply::text("Third.")]);
    let mut driven = DrivenRun::start(&rig, &["--ask", "make a.txt"]);
    let asked = driven.read_until_type("approval_request");
    driven.send_line(&prompt_line("and JOINED-1"));
    driven.send_line(&prompt_line("and JOINED-2"));
    driven.send_line(&approval_line(&asked));
    for text in ["and JOINED-1", "and JOINED-2"] {
        assert_eq!(driven.read_until_type("input_joined")["text"], text);
    }
    assert_eq!(driven.read_until_type("result")["text"], "Both.");
    driven.send_line(&prompt_line("third"));
    driven.read_until_type("result");
    let (code, lines) = driven.finish();
    assert_eq!((code, result_texts(&lines)), (0, vec!["Both.", "Third."]));
    let requests = rig.server.generation_requests();
    let seen: Vec<_> = requests
        .iter()
        .map(|request| request.decode().unwrap())
        .collect();
    assert_eq!(
        (
            count_occurrences(&requests[0], "JOINED"),
            seen[0].messages.len()
        ),
        (0, 1)
    );
    for (before, after) in [(0, 1), (1, 2)] {
        let kept = seen[before].messages.len();
        assert_eq!(
            seen[after].messages[..kept],
            seen[before].messages[..],
            "a request only appends"
        );
    }
    let shape: Vec<_> = seen[1]
        .messages
        .iter()
        .map(|message| (message.role, message.parts.len()))
        .collect();
    let roles = [
        SeenRole::User,
        SeenRole::Assistant,
        SeenRole::Tool,
        SeenRole::User,
    ];
    assert_eq!(
        shape,
        roles.into_iter().zip([1, 1, 1, 2]).collect::<Vec<_>>()
    );
    let joined: Vec<_> = seen[1].messages[3]
        .parts
        .iter()
        .filter_map(SeenPart::text)
        .collect();
    assert_eq!(joined, ["and JOINED-1", "and JOINED-2"]);
    for request in &requests[1..] {
        assert_eq!(
            (
                count_occurrences(request, "JOINED-1"),
                count_occurrences(request, "JOINED-2")
            ),
            (1, 1)
        );
    }
}

#[test]
fn prompt_sent_during_the_last_request_starts_a_turn() {
    let mut slow = Reply::text("One.");
    slow.delay_ms = 300;
    let rig = rig([slow, Reply::text("Two."), Reply::text("Three.")]);
    let mut driven = DrivenRun::start(&rig, &["first"]);
    driven.read_until_type("window");
    driven.send_line(&prompt_line("SECOND"));
    driven.send_line(&prompt_line("THIRD"));
    let (code, lines) = driven.finish();
    assert_eq!(
        (code, result_texts(&lines)),
        (0, vec!["One.", "Two.", "Three."])
    );
    assert!(!lines.iter().any(|line| line["type"] == "input_joined"));
    let requests = rig.server.generation_requests();
    let held: Vec<_> = requests
        .iter()
        .map(|request| {
            (
                count_occurrences(request, "SECOND"),
                count_occurrences(request, "THIRD"),
            )
        })
        .collect();
    assert_eq!(held, [(0, 0), (1, 0), (1, 1)]);
}

#[test]
fn prompt_waiting_at_an_interrupt_starts_a_turn() {
    let rig = rig([write_a(), Reply::text("As you like.")]);
    let mut driven = DrivenRun::start(&rig, &["--ask", "make a.txt"]);
    driven.read_until_type("approval_request");
    driven.send_line(&prompt_line("never mind"));
    driven.send_line(&json!({"type": "interrupt"}));
    assert_eq!(driven.read_until_type("result")["outcome"], "aborted");
    assert_eq!(driven.read_until_type("result")["text"], "As you like.");
    assert_eq!(driven.finish().0, 0);
    assert_eq!(
        count_occurrences(&rig.server.generation_requests()[1], "never mind"),
        1
    );
}

/// A joined prompt is stored before the request that holds it; a prompt that has not joined is
/// never stored.
#[test]
fn joined_prompt_survives_a_kill_once() {
    let write_b = Reply::call("write_to_file", json!({"path": "b.txt", "content": "x"}));
    let rig = rig([write_a(), write_b, Reply::text("Done.")]);
    let mut driven = DrivenRun::start(&rig, &["--ask", "make a.txt"]);
    let asked = driven.read_until_type("approval_request");
    driven.send_line(&prompt_line("and JOINED"));
    driven.send_line(&approval_line(&asked));
    driven.read_until_type("approval_request");
    driven.send_line(&prompt_line("and WAITED"));
    driven.child.kill().unwrap();
    driven.child.wait().unwrap();
    let done = rig.run(&["run", "-c", "GO-ON", "--output-format", "json"]);
    assert_eq!(done.json()["text"], "Done.");
    let last = rig.server.generation_requests().pop().unwrap();
    assert_eq!(
        (
            count_occurrences(&last, "and JOINED"),
            count_occurrences(&last, "and WAITED"),
            count_occurrences(&last, "GO-ON")
        ),
        (1, 0, 1)
    );
}

#[test]
fn compat_claude_prompts_join_the_turn() {
    let rig = rig([write_a(), Reply::text("Both.")]);
    let mut driven = DrivenRun::start(&rig, &["--compat", "claude", "--ask", "make a.txt"]);
    let asked = driven.read_until_type("control_request");
    driven.send_line(&claude_prompt_line("and JOINED"));
    let allow = json!({"behavior": "allow"});
    driven.send_line(&json!({"type": "control_response", "response": {"subtype": "success", "request_id": asked["request_id"], "response": allow}}));
    let (code, lines) = driven.finish();
    assert_eq!((code, result_texts(&lines)), (0, vec!["Both."]));
    assert_eq!(
        count_occurrences(&rig.server.generation_requests()[1], "and JOINED"),
        1
    );
}
