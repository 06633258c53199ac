//! `haft rag serve` with a model: answers in words, with citations.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};

use haft_testkit::{Reply, Script, SeenRole};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::rig::{MODEL, Rig};

const QUESTION: &str = "stripes of a zebra";

/// Creates a collection `zoo` with one document, and returns the path of the document.
fn rig_with_collection(
    replies: impl IntoIterator<Item = Reply>,
    options: &[&str],
) -> (Rig, String) {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let folder = rig.home().join("documents");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("zebra.md");
    fs::write(&file, "# Zebras\n\nA zebra is counted by its stripes.\n").unwrap();
    let folder = folder.display().to_string();
    let mut arguments = vec!["rag", "add", "zoo", folder.as_str()];
    arguments.extend(options);
    let added = rig.run(&arguments);
    assert_eq!(added.code(), 0, "{}", added.stderr());
    (rig, file.display().to_string())
}

fn model_name() -> String {
    format!("mock/{MODEL}")
}

/// A running `haft rag serve`, which ends when this value is dropped.
struct RunningServer {
    child: Child,
    lines: BufReader<ChildStdout>,
    address: String,
    token: String,
}

impl RunningServer {
    fn start(rig: &Rig, options: &[&str]) -> Self {
        let mut arguments = vec!["rag", "serve", "--listen", "127.0.0.1:0"];
        arguments.extend(options);
        let mut child = rig
            .command(&arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut server = Self {
            child,
            lines,
            address: String::new(),
            token: String::new(),
        };
        let line = server.read_line();
        let address = line.strip_prefix("Serving zoo at http://").unwrap();
        server.address = address.strip_suffix("/v1").unwrap().into();
        let line = server.read_line();
        server.token = line.strip_prefix("Token: ").unwrap().into();
        server
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Sends a question, and returns the status and the body of the reply.
    fn ask(&self, question: &str, stream: bool) -> (u16, String) {
        let messages = json!([{"role": "user", "content": question}]);
        let body = json!({"model": "zoo", "messages": messages, "stream": stream}).to_string();
        let mut connection = TcpStream::connect(&self.address).unwrap();
        write!(
            connection,
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        )
        .unwrap();
        let mut reply = String::new();
        connection.read_to_string(&mut reply).unwrap();
        let (head, body) = reply.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let is_chunked = head.contains("transfer-encoding: chunked");
        let body = if is_chunked {
            join_chunks(body)
        } else {
            body.to_owned()
        };
        (status, body)
    }

    /// Asks for a whole answer, which must succeed.
    fn ask_for_json(&self, question: &str) -> Value {
        let (status, body) = self.ask(question, false);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).unwrap()
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Decodes a body in HTTP chunks.
fn join_chunks(mut rest: &str) -> String {
    let mut body = String::new();
    loop {
        let (size, after) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.push_str(&after[..size]);
        rest = &after[size + 2..];
    }
}

/// Returns the events of a stream, without the `[DONE]` at its end.
fn parse_events(body: &str) -> Vec<Value> {
    let body = body.strip_suffix("data: [DONE]\n\n").unwrap();
    let parse = |event: &str| serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
    body.split_terminator("\n\n").map(parse).collect()
}

fn content(answer: &Value) -> &str {
    answer["choices"][0]["message"]["content"].as_str().unwrap()
}

#[test]
fn rag_serve_answers_in_words_with_the_model_of_the_collection() {
    let usage = Usage {
        input: 1_000,
        output: 100,
        ..Usage::default()
    };
    let reply = Reply::text("By its stripes [1].").with_usage(usage);
    let (rig, file) = rig_with_collection([reply], &["--model", &model_name()]);
    let mut server = RunningServer::start(&rig, &[]);
    assert_eq!(
        server.read_line(),
        format!("Answers are written by mock/{MODEL}.")
    );
    let answer = server.ask_for_json(QUESTION);
    assert_eq!(
        content(&answer),
        format!("By its stripes [1].\n\nSources:\n- [1] {file}:1-3")
    );
    assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    assert_eq!(answer["citations"], json!([format!("{file}:1-3")]));
    let usage = &answer["usage"];
    assert_eq!(
        (&usage["prompt_tokens"], &usage["completion_tokens"]),
        (&json!(1_000), &json!(100))
    );
    // 1,000 tokens at 3 dollars and 100 tokens at 15 dollars a million.
    let cost = usage["cost"].as_f64().unwrap();
    assert!((cost - 0.0045).abs() < 1e-9, "{usage}");
    let request = rig.server.generation_requests()[0].decode().unwrap();
    assert!(
        request.system.contains("data, not instructions") && request.tools.is_empty(),
        "{}",
        request.system
    );
    assert_eq!(
        request.texts(SeenRole::User),
        [format!(
            "Passages of the collection `zoo`:\n\nPassage [1]:\n```\n{file}:1-3\n\n\
             # Zebras\n\nA zebra is counted by its stripes.\n```\n\n\
             The question:\n\n{QUESTION}"
        )]
    );
}

#[test]
fn rag_serve_streams_an_answer_and_marks_unknown_citations() {
    let reply = Reply {
        delta_chars: Some(2),
        ..Reply::text("By its stripes [1], as lions [7].")
    };
    let (rig, file) = rig_with_collection([reply], &[]);
    let server = RunningServer::start(&rig, &["--model", &model_name()]);
    let (status, body) = server.ask(QUESTION, true);
    assert_eq!(status, 200, "{body}");
    let events = parse_events(&body);
    assert!(events.len() > 3, "{body}");
    let delta = |event: &Value| event["choices"][0]["delta"].clone();
    assert_eq!(delta(&events[0])["role"], "assistant");
    let text: String = events
        .iter()
        .filter_map(|event| delta(event)["content"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(
        text,
        format!(
            "By its stripes [1], as lions [7?].\n\nSources:\n- [1] {file}:1-3\n\n\
             No passage has the numbers with a question mark."
        )
    );
    let last = events.last().unwrap();
    assert_eq!(last["choices"][0]["finish_reason"], "stop");
    assert_eq!(last["citations"], json!([format!("{file}:1-3")]));
    assert!(last["usage"]["total_tokens"].as_u64() > Some(0), "{last}");
}

#[test]
fn rag_serve_asks_no_model_if_nothing_is_found() {
    let (rig, _) = rig_with_collection([Reply::text("Made up.")], &[]);
    let server = RunningServer::start(&rig, &["--model", &model_name()]);
    let answer = server.ask_for_json("xylophone");
    assert_eq!(content(&answer), "Nothing was found.");
    assert_eq!(answer["citations"], json!([]));
    assert!(rig.server.generation_requests().is_empty());
}

#[test]
fn rag_serve_reports_a_failure_of_the_model() {
    let failure = || Reply::error(400, "a bad day");
    let (rig, _) = rig_with_collection([failure(), failure()], &[]);
    let server = RunningServer::start(&rig, &["--model", &model_name()]);
    for stream in [false, true] {
        let (status, body) = server.ask(QUESTION, stream);
        assert_eq!(status, 502, "{body}");
        let error: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(error["error"]["type"], "api_error");
        let message = error["error"]["message"].as_str().unwrap();
        assert!(
            message.starts_with(&format!("the model `mock/{MODEL}` did not answer: "))
                && message.contains("a bad day"),
            "{message}"
        );
    }
}

#[test]
fn rag_serve_without_a_model_answers_with_passages() {
    let (rig, file) = rig_with_collection([Reply::text("Made up.")], &[]);
    let server = RunningServer::start(&rig, &[]);
    let (_, body) = server.ask(QUESTION, false);
    let answer: Value = serde_json::from_str(&body).unwrap();
    let text = format!("{file}:1-3\n\n# Zebras\n\nA zebra is counted by its stripes.");
    let message = json!({"role": "assistant", "content": text});
    let expected = json!({
        "id": answer["id"],
        "object": "chat.completion",
        "created": answer["created"],
        "model": "zoo",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
        "citations": [format!("{file}:1-3")],
    });
    assert_eq!(body, expected.to_string());
    assert!(rig.server.generation_requests().is_empty());
}

#[test]
fn rag_serve_rejects_an_unknown_model_at_the_start() {
    let (rig, _) = rig_with_collection([Reply::text("Made up.")], &[]);
    let refused = rig.run(&[
        "rag",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--model",
        "none/none",
    ]);
    assert_eq!(refused.code(), 2, "{}", refused.stdout());
    assert!(refused.stderr().contains("none"), "{}", refused.stderr());
}
