//! `haft proxy --save`: consent, and the bodies that reach the model.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;

use haft_testkit::Script;
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

/// A model server that records bodies. It refuses every fifth request.
struct Upstream {
    address: String,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Upstream {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let bodies = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&bodies);
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(body) = read_body(&mut stream) else {
                    continue;
                };
                let number = {
                    let mut seen = seen.lock().unwrap();
                    seen.push(body);
                    seen.len()
                };
                let status = if number % 5 == 0 {
                    "429 Too Many Requests"
                } else {
                    "200 OK"
                };
                let reply = r#"{"choices":[{"message":{"content":"ok"},"finish_reason":"stop"}]}"#;
                let length = reply.len();
                let head = format!(
                    "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
                );
                let _ = stream.write_all(format!("{head}{reply}").as_bytes());
            }
        });
        Self { address, bodies }
    }

    fn last_body(&self) -> String {
        self.bodies.lock().unwrap().last().unwrap().clone()
    }
}

fn read_body(stream: &mut TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    String::from_utf8(body).ok()
}

/// A running proxy that is killed when it is dropped.
struct SavingProxy {
    child: Child,
    address: String,
}

impl SavingProxy {
    fn start(rig: &Rig, upstream: &Upstream, options: &[&str]) -> Self {
        let url = format!("http://{}", upstream.address);
        let mut arguments = vec!["proxy", "--port", "0", "--upstream", &url];
        arguments.extend(options);
        let mut child = rig
            .command(&arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let address = line.split("http://").nth(1).unwrap();
        let address = address.split(". ").next().unwrap().to_owned();
        Self { child, address }
    }

    /// Sends a request and returns the status of the reply.
    fn send(&self, agent: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\nuser-agent: {agent}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
        );
        stream
            .write_all(format!("{head}{body}").as_bytes())
            .unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply.split(' ').nth(1).unwrap_or_default().to_owned()
    }

    fn stop(mut self) -> String {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut said).unwrap();
        said
    }
}

impl Drop for SavingProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a request after `steps` tool calls.
fn request_after(steps: usize) -> String {
    let mut messages = vec![
        json!({"role": "system", "content": "You are an agent."}),
        json!({"role": "user", "content": "Fix the bug."}),
    ];
    for number in 0..steps {
        let arguments = json!({"command": format!("make part{number}")}).to_string();
        let id = format!("call-{number}");
        let call = json!({"id": id, "type": "function", "function": {"name": "shell", "arguments": arguments}});
        messages.push(json!({"role": "assistant", "content": null, "tool_calls": [call]}));
        let text = format!("part {number} is built\n").repeat(500);
        messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
    }
    let tool = json!({"type": "function", "function": {"name": "shell", "parameters": {}}});
    json!({"model": "m", "messages": messages, "tools": [tool]}).to_string()
}

fn rig_with_consent() -> Rig {
    let rig = Rig::new(Api::OpenaiChat, Script::replies([]).unwrap());
    let set = rig.run(&["config", "set", "proxy.save.agents", r#"["codex"]"#]);
    assert_eq!(set.code(), 0, "{}", set.stderr());
    let set = rig.run(&["config", "set", "proxy.save.budget", "20000"]);
    assert_eq!(set.code(), 0, "{}", set.stderr());
    rig
}

fn count_cleared(body: &str) -> usize {
    body.matches("left out this result").count()
}

#[test]
fn save_sends_the_same_bytes_after_kills() {
    let rig = rig_with_consent();
    let upstream = Upstream::start();
    let mut sent = Vec::new();
    for steps in 0..40 {
        // Killed without warning after each request.
        let proxy = SavingProxy::start(&rig, &upstream, &["--save"]);
        let status = proxy.send("codex_exec/0.169", &request_after(steps));
        assert!(["200", "429"].contains(&status.as_str()), "{status}");
        sent.push(upstream.last_body());
    }
    assert!(count_cleared(&sent[39]) > 5);
    let proxy = SavingProxy::start(&rig, &upstream, &["--save"]);
    for (steps, body) in sent.iter().enumerate() {
        proxy.send("codex_exec/0.169", &request_after(steps));
        assert_eq!(&upstream.last_body(), body, "{steps} steps");
    }
    assert_eq!(sent[3], request_after(3), "a short request is not changed");
    let shown: Value = serde_json::from_str(&sent[39]).unwrap();
    let notice = shown["messages"][3]["content"].as_str().unwrap();
    let file = notice.split(" is in ").nth(1).unwrap();
    let text = std::fs::read_to_string(file.trim_end_matches(']')).unwrap();
    assert_eq!(text, "part 0 is built\n".repeat(500));
}

#[test]
fn save_records_requests_as_received_and_as_sent() {
    let rig = rig_with_consent();
    let upstream = Upstream::start();
    let proxy = SavingProxy::start(&rig, &upstream, &["--save"]);
    for steps in 0..40 {
        proxy.send("codex_exec/0.169", &request_after(steps));
    }
    let body = upstream.last_body();
    let said = proxy.stop();
    assert!(said.contains("requests were rewritten"), "{said}");
    assert!(said.contains("input saved: "), "{said}");
    let listed = rig
        .run(&["conversations", "list", "--namespace", "proxy", "--json"])
        .json();
    let rows = listed.as_array().unwrap();
    let last_request = |is_received: bool| {
        let row = rows
            .iter()
            .find(|row| {
                let name = row["name"].as_str().unwrap();
                name.ends_with(" (as received)") == is_received
            })
            .unwrap();
        let id = row["id"].as_str().unwrap();
        (
            id.to_owned(),
            rig.run(&["context", "show", id, "--raw"]).stdout(),
        )
    };
    assert_eq!(last_request(true).1, request_after(39));
    let (id, shown) = last_request(false);
    assert_eq!(shown, body);
    let texts = rig.home().join("state").join("proxy");
    assert!(texts.read_dir().unwrap().next().is_some());
    let purged = rig.run(&["conversations", "purge", "--force", &id]);
    assert_eq!(purged.code(), 0, "{}", purged.stderr());
    assert!(
        texts.read_dir().unwrap().next().is_none(),
        "removed with it"
    );
}

#[test]
fn save_needs_consent() {
    let rig = rig_with_consent();
    let run = |arguments: &[&str]| {
        let ran = rig.run(arguments);
        assert_eq!(ran.code(), 2);
        ran.stderr()
    };
    insta::assert_snapshot!(run(&["proxy", "--save", "--", "gemini"]), @"haft: requests of `gemini` may not be rewritten: add `gemini` to `proxy.save.agents` in your configuration, or leave out `--save`");
    rig.run(&["config", "set", "proxy.save.agents", r#"["gemini"]"#]);
    insta::assert_snapshot!(run(&["proxy", "--save", "--", "gemini"]), @"haft: the tools of `gemini` cannot be relied on to open files in haft's state folder: set `proxy.save.spill_dir` to a folder that they can read");
    rig.run(&["config", "set", "proxy.save.spill_dir", "texts"]);
    insta::assert_snapshot!(run(&["proxy", "--save", "--", "gemini"]), @"haft: `proxy.save.spill_dir` is `texts`: it must be an absolute path");
}

#[test]
fn save_passes_requests_of_other_agents() {
    let rig = rig_with_consent();
    let upstream = Upstream::start();
    let proxy = SavingProxy::start(&rig, &upstream, &["--save", "--dry-run"]);
    for agent in ["codex_exec/0.169", "curl/8"] {
        for steps in 0..40 {
            let body = request_after(steps);
            proxy.send(agent, &body);
            assert_eq!(upstream.last_body(), body, "{agent}");
        }
    }
    let said = proxy.stop();
    assert!(
        said.contains("requests would have been rewritten"),
        "{said}"
    );
    assert!(
        said.contains("40 requests passed unchanged: its agent is not allowed in `proxy.save`"),
        "{said}"
    );
}
