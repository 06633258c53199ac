//! Traces of runs and tasks as a collector at a real socket receives them (`--features otel`).
//!
//! The messages are declared here after the specification of OTLP, not taken from the library that
//! sends them.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haft_testkit::{Reply, Script, When};
use haft_types::Api;
use prost::Message;
use serde_json::{Value, json};

use crate::rig::{MODEL, Ran, Rig};
#[cfg(feature = "postgres")]
use crate::workers::{Team, reply_after, send_signal, spawn_silently};
#[cfg(feature = "postgres")]
use crate::worktrees::command_call;

#[derive(Clone, PartialEq, Message)]
struct Export {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    resource: Option<Described>,
    #[prost(message, repeated, tag = "2")]
    scopes: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
struct Described {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeSpans {
    #[prost(message, repeated, tag = "2")]
    spans: Vec<Span>,
}

#[derive(Clone, PartialEq, Message)]
struct Span {
    #[prost(bytes, tag = "1")]
    trace: Vec<u8>,
    #[prost(bytes, tag = "2")]
    id: Vec<u8>,
    #[prost(bytes, tag = "4")]
    parent: Vec<u8>,
    #[prost(string, tag = "5")]
    name: String,
    #[prost(int32, tag = "6")]
    kind: i32,
    #[prost(fixed64, tag = "7")]
    start: u64,
    #[prost(fixed64, tag = "8")]
    end: u64,
    #[prost(message, repeated, tag = "9")]
    attributes: Vec<Attribute>,
    #[prost(message, optional, tag = "15")]
    status: Option<Status>,
}

#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(string, tag = "2")]
    message: String,
    #[prost(int32, tag = "3")]
    code: i32,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "OneValue", tags = "1, 3, 4, 5")]
    value: Option<OneValue>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum OneValue {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Number(i64),
    #[prost(double, tag = "4")]
    Real(f64),
    #[prost(message, tag = "5")]
    List(Values),
}

#[derive(Clone, PartialEq, Message)]
struct Values {
    #[prost(message, repeated, tag = "1")]
    values: Vec<AnyValue>,
}

impl AnyValue {
    fn to_json(&self) -> Value {
        match self.value.as_ref().unwrap() {
            OneValue::Text(text) => json!(text),
            OneValue::Number(number) => json!(number),
            OneValue::Real(real) => json!(real),
            OneValue::List(list) => list.values.iter().map(Self::to_json).collect(),
        }
    }
}

fn attribute_values(attributes: &[Attribute]) -> BTreeMap<String, Value> {
    attributes
        .iter()
        .map(|one| (one.key.clone(), one.value.as_ref().unwrap().to_json()))
        .collect()
}

impl Span {
    fn attribute(&self, key: &str) -> Value {
        attribute_values(&self.attributes)
            .remove(key)
            .unwrap_or_default()
    }
}

/// The head of a request, and its body.
type Taken = (String, Vec<u8>);

/// A collector that records the requests it receives.
#[derive(Clone)]
struct Collector {
    address: String,
    taken: Arc<Mutex<Vec<Taken>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let this = Self {
            address,
            taken: Arc::default(),
        };
        let taken = Arc::clone(&this.taken);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let taken = Arc::clone(&taken);
                std::thread::spawn(move || taken.lock().unwrap().extend(answer_request(stream)));
            }
        });
        this
    }

    /// Makes a command send its spans to this collector as soon as they end.
    fn with_exporter(&self, mut command: Command) -> Command {
        command.env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://{}", self.address),
        );
        command.env("OTEL_BSP_SCHEDULE_DELAY", "50");
        command
    }

    fn spans(&self) -> Vec<Span> {
        let taken = self.taken.lock().unwrap();
        let exports = taken
            .iter()
            .map(|(_, body)| Export::decode(&body[..]).unwrap());
        let scopes = exports
            .flat_map(|export| export.resources)
            .flat_map(|resource| resource.scopes);
        scopes.flat_map(|scope| scope.spans).collect()
    }
}

/// Reads one request and answers with success.
fn answer_request(mut stream: TcpStream) -> Option<Taken> {
    stream
        .set_read_timeout(Some(Duration::from_mins(1)))
        .unwrap();
    let mut read = Vec::new();
    let mut piece = [0; 8_192];
    loop {
        if let Some(at) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8(read[..at].to_vec())
                .unwrap()
                .to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .unwrap();
            if read.len() >= at + 4 + length.parse::<usize>().unwrap() {
                let _ = stream.write_all(
                    b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
                );
                return Some((head, read[at + 4..].to_vec()));
            }
        }
        match stream.read(&mut piece).ok()? {
            0 => return None,
            count => read.extend(&piece[..count]),
        }
    }
}

/// Returns the spans below one as lines: kind, name, error, and these attributes.
fn span_tree(spans: &[Span], parent: &[u8], depth: usize, shown: &[&str]) -> Vec<String> {
    let mut below: Vec<_> = spans.iter().filter(|span| span.parent == parent).collect();
    below.sort_by_key(|span| (span.start, span.end));
    let lines = below.into_iter().flat_map(|span| {
        assert!(span.start <= span.end && span.id.len() == 8, "{span:?}");
        let status = span.status.clone().unwrap_or_default();
        let status = if status.code == 2 {
            format!(" !{}", status.message)
        } else {
            String::new()
        };
        let kind = ["", "", "", "client ", "", "consumer "][span.kind as usize];
        let told = shown
            .iter()
            .map(|key| (key, span.attribute(key)))
            .filter(|(_, value)| !value.is_null());
        let told: String = told
            .map(|(key, value)| format!(" {}={value}", key.split_once('.').unwrap().1))
            .collect();
        let line = format!("{}{kind}{}{status}{told}", "  ".repeat(depth), span.name);
        [vec![line], span_tree(spans, &span.id, depth + 1, shown)].concat()
    });
    lines.collect()
}

fn encode_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn trace_holds_turns_requests_and_calls_but_no_text() {
    let of = |agent: &str, results: usize| When {
        last_contains: (results == 0).then(|| agent.into()),
        tool_results: Some(results),
        ..When::default()
    };
    let started =
        "mode: parallel\nsubagents:\n  - name: helper\n    task: WORD-SUB of the sub-agent.\n";
    let start = Reply::call("run_named_subagents", json!({ "subagents": started }));
    let replies = [
        Reply::error(503, "Overloaded."),
        Reply::call("read_file", json!({"path": "WORD-MISSING.txt"})).when(of("WORD-PROMPT", 0)),
        Reply::text("WORD-HELPED").when(of("WORD-SUB", 0)),
        start.when(of("", 1)),
        Reply::text("WORD-ANSWER").when(of("", 2)),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    rig.write(
        ".haft/agents/helper.md",
        "---\nname: helper\ndescription: Helps\n---\nHelp.\n",
    );
    assert_eq!(rig.run(&["trust"]).code(), 0);
    let collector = Collector::start();
    let mut command = collector.with_exporter(rig.command(&[
        "run",
        "--output-format",
        "stream-json",
        "WORD-PROMPT",
    ]));
    command
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue")
        .env("OTEL_RESOURCE_ATTRIBUTES", "deployment=night");
    let ran = Ran(command.output().unwrap());
    assert_eq!(ran.code(), 0, "{}", ran.stderr());

    let spans = collector.spans();
    let shown = [
        "gen_ai.operation.name",
        "gen_ai.provider.name",
        "haft.tool.status",
        "haft.outcome",
    ];
    let chat = format!("client chat {MODEL}");
    let expected = [
        "invoke_agent main operation.name=\"invoke_agent\" provider.name=\"mock\" outcome=\"completed\"".to_owned(),
        format!("  {chat} !retried operation.name=\"chat\" provider.name=\"mock\""),
        format!("  {chat} operation.name=\"chat\" provider.name=\"mock\""),
        "  execute_tool read_file !not_found operation.name=\"execute_tool\" tool.status=\"error\"".to_owned(),
        format!("  {chat} operation.name=\"chat\" provider.name=\"mock\""),
        "  execute_tool run_named_subagents operation.name=\"execute_tool\" tool.status=\"success\"".to_owned(),
        "    invoke_agent helper operation.name=\"invoke_agent\" provider.name=\"mock\" outcome=\"completed\""
            .to_owned(),
        format!("      {chat} operation.name=\"chat\" provider.name=\"mock\""),
        format!("  {chat} operation.name=\"chat\" provider.name=\"mock\""),
    ];
    assert_eq!(span_tree(&spans, &[], 0, &shown), expected);

    let events = ran.events();
    let conversation = events[0]["conversation_id"]
        .as_str()
        .unwrap()
        .replace('-', "");
    assert!(
        spans
            .iter()
            .all(|span| encode_hex(&span.trace) == conversation),
        "a conversation is a trace"
    );
    let usage: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "usage")
        .collect();
    let told: Vec<_> = spans
        .iter()
        .filter(|span| span.kind == 3 && !span.attribute("haft.cost_usd").is_null())
        .collect();
    assert_eq!((usage.len(), told.len()), (4, 4));
    for (event, span) in usage.iter().zip(told) {
        let count = |key: &str| event["usage"][key].as_u64().unwrap_or(0);
        let input = count("input") + count("cached_input") + count("cache_write");
        assert_eq!(
            span.attribute("gen_ai.usage.input_tokens"),
            json!(input),
            "{event}"
        );
        assert_eq!(
            span.attribute("gen_ai.usage.cache_read.input_tokens"),
            json!(count("cached_input")),
            "{event}"
        );
        assert_eq!(
            span.attribute("gen_ai.usage.output_tokens"),
            event["usage"]["output"]
        );
        assert_eq!(span.attribute("haft.cost_usd"), event["cost"]["total"]);
        assert_eq!(span.attribute("gen_ai.request.model"), MODEL);
        assert_eq!(span.attribute("gen_ai.agent.name"), event["agent"]);
        for (attribute, key) in [
            ("haft.tools.names", "name"),
            ("haft.tools.cache_read", "cached_input"),
            ("haft.tools.cache_creation", "cache_write"),
            ("haft.tools.uncached", "input"),
        ] {
            let shares = event["tools"].as_array();
            let shares = shares.map(|tools| {
                tools
                    .iter()
                    .map(|tool| tool[key].clone())
                    .collect::<Value>()
            });
            assert_eq!(span.attribute(attribute), shares.unwrap_or_default());
        }
    }
    let taken = collector.taken.lock().unwrap();
    for (head, body) in &*taken {
        assert!(
            head.starts_with("post /v1/traces ") && head.contains("\r\nx-team: blue"),
            "{head}"
        );
        assert!(
            !body.windows(5).any(|five| five == b"WORD-"),
            "text is in a span"
        );
        for resource in Export::decode(&body[..]).unwrap().resources {
            let about = attribute_values(&resource.resource.unwrap().attributes);
            assert_eq!(
                (&about["service.name"], &about["deployment"]),
                (&json!("haft"), &json!("night"))
            );
        }
    }
}

/// Runs a task that needs no tool, and returns what was logged as a warning.
fn logged_warnings(change: impl FnOnce(&mut Command)) -> Vec<String> {
    let rig = Rig::new(
        Api::Anthropic,
        Script::replies([Reply::text("Done.")]).unwrap(),
    );
    let mut command = rig.command(&["run", "go"]);
    change(&mut command);
    let ran = Ran(command.output().unwrap());
    assert_eq!(
        (ran.code(), ran.stdout().as_str()),
        (0, "Done.\n"),
        "{}",
        ran.stderr()
    );
    rig.run(&["logs", "--level", "warn"])
        .stdout()
        .lines()
        .map(str::to_owned)
        .collect()
}

#[test]
fn unreachable_collector_causes_one_warning() {
    let gone = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let logged = logged_warnings(|command| {
        // One request for each span, so that several fail.
        command
            .env("OTEL_BSP_SCHEDULE_DELAY", "1")
            .env("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "1");
        command.env(
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            format!("http://{gone}/v1/traces"),
        );
    });
    assert!(
        logged.len() == 1 && logged[0].contains("traces are lost"),
        "{logged:?}"
    );
    // A collector that accepts connections and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let logged = logged_warnings(|command| {
        command.env(
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            format!("http://{}", silent.local_addr().unwrap()),
        );
    });
    assert!(
        logged.len() == 1 && logged[0].contains("traces may be lost"),
        "{logged:?}"
    );
}

#[test]
fn exporter_is_off_without_endpoint_or_if_disabled() {
    let collector = Collector::start();
    let endpoint = format!("http://{}", collector.address);
    for switched in [
        ("OTEL_SDK_DISABLED", "true"),
        ("OTEL_TRACES_EXPORTER", "none"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", ""),
    ] {
        let logged = logged_warnings(|command| {
            command
                .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
                .env(switched.0, switched.1);
        });
        assert!(logged.is_empty(), "{logged:?}");
    }
    assert!(collector.taken.lock().unwrap().is_empty());
}

#[cfg(feature = "postgres")]
#[test]
fn postgres_trace_continues_after_a_task_is_taken_over() {
    let replies = |shared: &std::path::Path| {
        let at = shared.display();
        let wait = format!("echo ran >> {at}/ran; while [ ! -e {at}/go ]; do sleep 0.1; done");
        [
            reply_after(0, command_call(&wait)),
            reply_after(1, Reply::text("Done.")),
        ]
    };
    let Some(team) = Team::with_shared_folder("traces", replies) else {
        return;
    };
    let collector = Collector::start();
    let id = team.add_task("go", &["--max-budget-usd", "1"]);
    let one = team.new_host();
    let other = team.new_host();
    let mut worker =
        spawn_silently(&mut collector.with_exporter(team.worker_command(one.path(), &[])));
    team.wait_until("the command runs and its request is told", |team| {
        team.shared.path().join("ran").exists() && !collector.spans().is_empty()
    });
    worker.kill().unwrap();
    worker.wait().unwrap();
    let mut worker =
        spawn_silently(&mut collector.with_exporter(team.worker_command(other.path(), &[])));
    team.wait_until("the task ends", |team| {
        team.show_task(id)["ended_at"].is_i64()
    });
    // Spans that are not sent yet are sent before the worker exits.
    send_signal(&worker, "-TERM");
    let begun = Instant::now();
    while worker.try_wait().unwrap().is_none() {
        assert!(
            begun.elapsed() < Duration::from_mins(2),
            "the worker does not end: {}",
            team.show_task(id)
        );
        std::thread::sleep(Duration::from_millis(100));
    }
    std::fs::write(team.shared.path().join("go"), "").unwrap();

    let spans = collector.spans();
    let task = team.show_task(id);
    let trace = task["conversation"].as_str().unwrap().replace('-', "");
    assert!(
        spans.iter().all(|span| encode_hex(&span.trace) == trace),
        "{spans:?}"
    );
    let shown = [
        "haft.task.id",
        "haft.task.attempt",
        "haft.task.labels",
        "haft.tool.status",
        "haft.outcome",
    ];
    let label = &team.label;
    let expected = [
        format!(
            "consumer task task.id={id} task.attempt=2 task.labels=[\"{label}\"] outcome=\"completed\""
        ),
        "  invoke_agent main outcome=\"completed\"".to_owned(),
        "    execute_tool execute_command !interrupted tool.status=\"error\"".to_owned(),
        format!("    client chat {MODEL}"),
    ];
    assert_eq!(span_tree(&spans, &[], 0, &shown), expected, "{task}");
    // The spans that the first worker sent before it was killed.
    let ids: Vec<_> = spans.iter().map(|span| &span.id).collect();
    let lost: Vec<_> = spans
        .iter()
        .filter(|span| !span.parent.is_empty() && !ids.contains(&&span.parent))
        .collect();
    assert_eq!(
        lost.iter()
            .map(|span| span.name.as_str())
            .collect::<Vec<_>>(),
        [format!("chat {MODEL}")]
    );
    let root = spans.iter().find(|span| span.name == "task").unwrap();
    assert_eq!(
        root.attribute("haft.cost_usd"),
        task["result"]["cost"]["total"]
    );
}
