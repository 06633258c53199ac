//! `haft context replay` compared with the requests that the scripted server received, and with bad
//! input.

use std::io::Write as _;

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::context::run_twelve_requests;
use crate::rig::Rig;

fn replay(rig: &Rig, arguments: &[&str]) -> Value {
    let mut all = vec!["context", "replay", "--json"];
    all.extend(arguments);
    let ran = rig.run(&all);
    assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.stderr());
    serde_json::from_slice(&ran.0.stdout).unwrap()
}

/// A rig whose model is never asked.
fn rig_with_unused_model() -> Rig {
    Rig::new(
        Api::OpenaiChat,
        Script::turns([Reply::text("Hello.")]).unwrap(),
    )
}

/// Chat messages of `steps` steps, each of which reads a file.
fn chat_with_steps(steps: usize) -> Value {
    let mut messages =
        vec![json!({"role": "user", "content": "Read them. You must never touch Cargo.lock."})];
    for step in 0..steps {
        let function = json!({"name": "read_file", "arguments": format!("{{\"path\":\"file{}.rs\"}}", step % 5)});
        let calls = json!([{"id": format!("c{step}"), "type": "function", "function": function}]);
        messages.push(json!({"role": "assistant", "content": "Reading.", "tool_calls": calls}));
        let text = format!("line of file {step}\n").repeat(120);
        messages.push(json!({"role": "tool", "tool_call_id": format!("c{step}"), "content": text}));
    }
    messages.push(json!({"role": "assistant", "content": "Done."}));
    json!({"messages": messages})
}

#[test]
fn recorded_policy_reproduces_the_sent_bodies() {
    for api in Api::ALL {
        let (rig, _) = run_twelve_requests(api);
        let told = replay(&rig, &["--policy", "default,none,recorded"]);
        let policies = told["policies"].as_array().unwrap();
        assert_eq!(policies[0]["same_bytes"], 12, "{api}");
        assert_ne!(
            policies[1]["same_bytes"], 12,
            "{api}: reminders make a difference"
        );
        assert_eq!(policies[2]["requests"], 12, "{api}");
        // The replayed bodies equal the received ones, not only the logged ones.
        let folder = rig.project().join("bodies");
        replay(
            &rig,
            &["--policy", "default", "--bodies", folder.to_str().unwrap()],
        );
        for (index, sent) in rig.server.generation_requests().iter().enumerate() {
            let body =
                std::fs::read(folder.join(format!("default/{:04}.json", index + 1))).unwrap();
            assert!(body == sent.body, "{api}, request {}", index + 1);
        }
    }
}

#[test]
fn default_policies_are_compared_with_the_sent_requests() {
    let (rig, events) = run_twelve_requests(Api::Anthropic);
    let told = replay(&rig, &[]);
    let policies = told["policies"].as_array().unwrap();
    let names: Vec<_> = policies.iter().map(|one| one["policy"].clone()).collect();
    assert_eq!(
        names,
        [
            "recorded",
            "default",
            "no-reminders",
            "front",
            "tail",
            "cache-aware"
        ]
    );
    let why = rig.run(&["context", "why", "--json"]).json();
    assert_eq!(
        policies[0]["breaks"],
        why["breaks"].as_array().unwrap().len(),
        "the row of the sent requests agrees with `context why`"
    );
    let billed: u64 = events
        .iter()
        .filter(|event| event["type"] == "usage")
        .map(|event| {
            let usage = &event["usage"];
            ["input", "cached_input", "cache_write"]
                .iter()
                .map(|class| usage[class].as_u64().unwrap())
                .sum::<u64>()
        })
        .sum();
    assert_eq!(policies[0]["tokens"], billed);
    let former = replay(&rig, &["--policy", "none"]);
    assert_eq!(
        (
            &former["policies"][0]["tokens"],
            &former["policies"][0]["cost"]
        ),
        (&policies[2]["tokens"], &policies[2]["cost"])
    );
}

#[test]
fn from_file_replays_deterministically_and_draws() {
    let rig = rig_with_unused_model();
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    writeln!(packed, "{}\n{}", chat_with_steps(12), chat_with_steps(5)).unwrap();
    rig.write("chats.jsonl.gz", packed.finish().unwrap());
    let arguments = [
        "--from-file",
        "chats.jsonl.gz",
        "--policy",
        "none,tail,cache-aware,cache-aware+prune:4k:0.5:1",
        "--rule",
        "anthropic",
        "--prices",
        "0.1/1.25",
        "--reminders",
        "1000:0.25",
    ];
    let told = replay(&rig, &arguments);
    assert_eq!(told, replay(&rig, &arguments));
    assert_eq!(told["conversations"], 2);
    let policies = told["policies"].as_array().unwrap();
    let of = |index: usize, key: &str| {
        policies[index][key]
            .as_f64()
            .unwrap_or_else(|| panic!("{key}"))
    };
    assert_eq!(policies[0]["requests"], 19);
    assert!(
        of(0, "cost") < of(2, "cost") && of(2, "cost") < of(1, "cost"),
        "{policies:#?}"
    );
    assert!(of(3, "peak") < of(2, "peak"));
    assert_eq!(policies[2]["regret"], 0);
    assert_ne!(
        policies[3]["regret"], 0,
        "files are read again that were cleared"
    );
    assert_eq!(
        policies[3]["must_keep"],
        json!({"kept": 2, "all": 2}),
        "what the user said is never cleared"
    );

    for name in ["plot.svg", "plot.html"] {
        let mut all = vec!["context", "replay", "--plot", name];
        all.extend(arguments);
        let ran = rig.run(&all);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        let table = String::from_utf8(ran.0.stdout).unwrap();
        assert!(
            table.contains("POLICY") && table.contains("cache-aware+prune:4k:0.5:1"),
            "{table}"
        );
        let drawn = std::fs::read_to_string(rig.project().join(name)).unwrap();
        assert!(
            drawn.contains("<svg")
                && drawn.contains("cost of the input so far")
                && !drawn.contains("<script")
        );
        assert_eq!(drawn.contains("<table"), name.ends_with("html"));
    }
}

#[test]
fn import_reads_a_folder_and_reports_broken_files() {
    let rig = rig_with_unused_model();
    std::fs::create_dir_all(rig.project().join("logs/deeper")).unwrap();
    let line = |uuid: &str, parent: Value, kind: &str, message: Value| {
        let time = "2026-01-01T10:00:00Z";
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": time, "message": message})
    };
    let usage = json!({"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 5});
    let said = json!({"id": "m1", "role": "assistant", "model": "claude", "content": [{"type": "text", "text": "Hi."}], "usage": usage});
    let session = format!(
        "{}\n{}\n",
        line(
            "a",
            Value::Null,
            "user",
            json!({"role": "user", "content": "Hello"})
        ),
        line("b", json!("a"), "assistant", said),
    );
    rig.write("logs/deeper/session.jsonl", session);
    rig.write("logs/broken.jsonl", "{\"messages\": [");
    rig.write("logs/notes.txt", "not looked at");
    let ran = rig.run(&[
        "context",
        "replay",
        "--import",
        "logs",
        "--policy",
        "default,recorded",
        "--json",
    ]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(
        ran.stderr().contains("skipped `logs/broken.jsonl`"),
        "{}",
        ran.stderr()
    );
    let told: Value = serde_json::from_slice(&ran.0.stdout).unwrap();
    assert_eq!(told["conversations"], 1);
    assert_eq!(
        told["policies"][1]["usage"],
        json!({"input": 3, "cached_input": 90, "cache_write": 7})
    );
}

#[test]
fn import_reads_an_openhands_folder_as_one_conversation() {
    let rig = rig_with_unused_model();
    let fixture = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../extensions/imports/fixtures/openhands-sdk/input"
    );
    rig.write(
        "oh/1/base_state.json",
        std::fs::read(format!("{fixture}/base_state.json")).unwrap(),
    );
    for event in std::fs::read_dir(format!("{fixture}/events")).unwrap() {
        let event = event.unwrap();
        rig.write(
            &format!("oh/1/events/{}", event.file_name().display()),
            std::fs::read(event.path()).unwrap(),
        );
    }
    let ran = rig.run(&[
        "context", "replay", "--import", "oh", "--policy", "default", "--json",
    ]);
    assert_eq!(
        (ran.code(), ran.stderr().contains("skipped")),
        (0, false),
        "{}",
        ran.stderr()
    );
    let told: Value = serde_json::from_slice(&ran.0.stdout).unwrap();
    assert_eq!(
        (&told["conversations"], &told["policies"][0]["requests"]),
        (&json!(1), &json!(3))
    );
}

#[test]
fn replay_rejects_bad_input_with_a_reason() {
    let rig = rig_with_unused_model();
    rig.write("empty.jsonl", "");
    rig.write("broken.jsonl", "{\"messages\": [");
    rig.write("bytes.jsonl", b"\xff\xfe\x00");
    rig.write(
        "silent.json",
        r#"{"messages": [{"role": "user", "content": "Anybody?"}]}"#,
    );
    std::fs::create_dir(rig.project().join("nothing")).unwrap();
    for (arguments, problem) in [
        (vec!["--from-file", "empty.jsonl"], "it is empty"),
        (vec!["--from-file", "broken.jsonl"], "not JSON"),
        (vec!["--from-file", "bytes.jsonl"], "line 1 is not UTF-8"),
        (vec!["--from-file", "silent.json"], "has a request"),
        (vec!["--from-file", "missing.json"], "missing.json"),
        (vec!["--import", "nothing"], "no conversation in `nothing`"),
        (vec!["--import", "missing"], "cannot read the folder"),
        (
            vec!["--from-file", "silent.json", "--policy", "middle"],
            "`middle` is not a policy",
        ),
        (
            vec!["--from-file", "silent.json", "--rule", "lru"],
            "`lru` is not a cache rule",
        ),
        (
            vec!["--from-file", "silent.json", "--prices", "cheap"],
            "0.1/1.25",
        ),
        (
            vec!["--from-file", "silent.json", "--plot", "plot.png"],
            ".svg or .html",
        ),
        (vec![], "conversation"),
    ] {
        let mut all = vec!["context", "replay"];
        all.extend(&arguments);
        let ran = rig.run(&all);
        assert_eq!(ran.code(), 2, "{arguments:?}: {}", ran.stderr());
        assert!(
            ran.stderr().contains(problem),
            "{arguments:?}: {}",
            ran.stderr()
        );
    }
}

/// A rig without a configured model.
fn rig_without_model() -> Rig {
    let rig = rig_with_unused_model();
    rig.configure("");
    rig
}

#[test]
fn replay_without_a_model_names_the_assumed_one() {
    let rig = rig_without_model();
    rig.write("chat.json", chat_with_steps(6).to_string());
    let told = replay(&rig, &["--from-file", "chat.json", "--policy", "default"]);
    assert_eq!(
        (&told["model"], &told["model_source"]),
        (&json!("assumed/model"), &json!("assumed"))
    );
    assert_eq!(
        (&told["context_window"], &told["tokenizer_factor"]),
        (&json!(200_000), &json!(1.0))
    );
    let ran = rig.run(&[
        "context",
        "replay",
        "--from-file",
        "chat.json",
        "--policy",
        "default",
    ]);
    let table = String::from_utf8(ran.0.stdout).unwrap();
    let line = "model assumed/model, because none is declared, and the recording names none of the catalogue; `--model` names one: window 200,000";
    assert!(table.contains(line), "{table}");

    // The figures are equal if a model is configured and the assumed one is requested.
    let rig = rig_with_unused_model();
    rig.write("chat.json", chat_with_steps(6).to_string());
    let asked = replay(
        &rig,
        &[
            "--from-file",
            "chat.json",
            "--policy",
            "default",
            "--model",
            "assumed",
        ],
    );
    assert_eq!(asked, told);
}

#[test]
fn replay_uses_the_recorded_model_if_it_is_known() {
    let rig = rig_without_model();
    let session = |model: &str| {
        let line = |kind: &str, payload: Value| {
            json!({"timestamp": "2025-10-01T10:00:00Z", "type": kind, "payload": payload})
                .to_string()
        };
        let said = |role: &str, text: &str| {
            let kind = if role == "user" {
                "input_text"
            } else {
                "output_text"
            };
            line(
                "response_item",
                json!({"type": "message", "role": role, "content": [{"type": kind, "text": text}]}),
            )
        };
        [
            line(
                "session_meta",
                json!({"id": "s", "model_provider": "openai"}),
            ),
            line("turn_context", json!({"model": model})),
            said("user", "Hello"),
            said("assistant", "Hi."),
        ]
        .join("\n")
    };
    let listed = haft_model::BuiltIn::get()
        .model_names()
        .find(|name| name.starts_with("openai/"))
        .unwrap();
    rig.write("known.jsonl", session(listed.trim_start_matches("openai/")));
    let told = replay(&rig, &["--from-file", "known.jsonl", "--policy", "default"]);
    assert_eq!(
        (&told["model"], &told["model_source"]),
        (&json!(listed), &json!("recorded"))
    );
    rig.write("unknown.jsonl", session("nobody-knows-it"));
    let told = replay(
        &rig,
        &["--from-file", "unknown.jsonl", "--policy", "default"],
    );
    assert_eq!(told["model_source"], "assumed");
}

#[test]
fn recorded_policy_is_compared_on_counted_conversations_only() {
    let rig = rig_without_model();
    let line = |id: &str, usage: Value| {
        let messages =
            json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]);
        json!({"id": id, "source": "s", "licence": "MIT", "messages": messages, "usage": usage})
            .to_string()
    };
    let counted = json!([{"at": 1, "input": 10, "read": 0, "write": 5}]);
    rig.write(
        "all.jsonl",
        format!("{}\n{}\n", line("one", counted), line("two", json!([]))),
    );
    let ran = rig.run(&[
        "context",
        "replay",
        "--json",
        "--from-file",
        "all.jsonl",
        "--policy",
        "recorded,default",
    ]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    assert!(
        ran.stderr()
            .contains("1 of 2 conversations are left out of every row"),
        "{}",
        ran.stderr()
    );
    let told: Value = serde_json::from_slice(&ran.0.stdout).unwrap();
    assert_eq!(told["conversations"], 1);
    assert_eq!(
        (
            &told["policies"][0]["requests"],
            &told["policies"][1]["requests"]
        ),
        (&json!(1), &json!(1))
    );
    rig.write("none.jsonl", line("two", json!([])));
    let ran = rig.run(&[
        "context",
        "replay",
        "--from-file",
        "none.jsonl",
        "--policy",
        "recorded",
    ]);
    assert_eq!(ran.code(), 2, "{}", ran.stderr());
    assert!(
        ran.stderr().contains("needs the provider's counts"),
        "{}",
        ran.stderr()
    );
}
