//! One conversation over the four wire protocols: equal events, equal neutral requests, nothing
//! refused.

use base64::Engine;
use haft_testkit::{Script, Seen};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;

const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn run_conversation(api: Api) -> (Vec<Value>, Vec<Seen>, Value) {
    let script = Script::from_yaml("twelve_turns.yaml", include_str!("twelve_turns.yaml")).unwrap();
    let rig = Rig::new(api, script);
    rig.write("notes.txt", "alpha\nbeta\n");
    rig.write(
        "dot.png",
        base64::engine::general_purpose::STANDARD
            .decode(PIXEL)
            .unwrap(),
    );
    let ran = rig.task(&["make the file"]);
    assert_eq!(ran.code(), 0, "{api}: {}", ran.stderr());
    assert!(
        rig.server.refusals().is_empty(),
        "{api}: {:?}",
        rig.server.refusals()
    );
    assert_eq!(
        std::fs::read_to_string(rig.project().join("out/new.txt"))
            .unwrap()
            .lines()
            .next(),
        Some("ALPHA")
    );
    let project = rig.project().display().to_string();
    let seen = rig
        .server
        .generation_requests()
        .iter()
        .map(|request| without_project_path(request.decode().unwrap(), &project))
        .collect();
    (ran.events(), seen, rig.export())
}

/// Removes the project folder, which differs from run to run, from the system prompt.
fn without_project_path(mut seen: Seen, project: &str) -> Seen {
    seen.system = seen.system.replace(project, "PROJECT");
    seen.system = seen
        .system
        .lines()
        .filter(|line| !line.contains("/tmp"))
        .collect::<Vec<_>>()
        .join("\n");
    seen
}

/// Removes everything that differs between runs and APIs from events: ids, times, the pieces of a
/// text, token estimates (each API sends reasoning back in its own form), and the count of
/// reasoning tokens (Anthropic reports none).
fn normalize_events(events: &[Value]) -> Vec<Value> {
    let mut out: Vec<Value> = Vec::new();
    let mut calls: Vec<String> = Vec::new();
    for event in events {
        let mut event = event.clone();
        let fields = event.as_object_mut().unwrap();
        for volatile in [
            "conversation_id",
            "seq",
            "cwd",
            "duration_ms",
            "tokens",
            "layers",
            "remaining",
        ] {
            fields.remove(volatile);
        }
        if let Some(usage) = fields.get_mut("usage").and_then(Value::as_object_mut) {
            usage.remove("reasoning");
        }
        if fields
            .get("type")
            .is_some_and(|kind| kind == "prefix_break")
        {
            fields.remove("message_id");
            fields.remove("cost");
        }
        if let Some(id) = fields.get("id").and_then(Value::as_str).map(str::to_owned) {
            let number = calls
                .iter()
                .position(|known| *known == id)
                .unwrap_or_else(|| {
                    calls.push(id);
                    calls.len() - 1
                });
            fields.insert("id".into(), json!(number));
        }
        if fields
            .get("phase")
            .is_some_and(|phase| phase == "arguments")
        {
            continue;
        }
        // Received text is compared once parsed: APIs that carry objects may format them
        // differently.
        fields.remove("raw");
        let kind = fields["type"].as_str().unwrap_or_default().to_owned();
        if ["text", "thinking"].contains(&kind.as_str())
            && let Some(last) = out.last_mut()
            && last["type"] == kind.as_str()
        {
            let joined = format!(
                "{}{}",
                last["text"].as_str().unwrap(),
                event["text"].as_str().unwrap()
            );
            last["text"] = json!(joined);
            continue;
        }
        out.push(event);
    }
    out
}

#[test]
fn protocols_yield_equal_events_and_requests() {
    let (reference_events, reference_requests, _) = run_conversation(Api::Anthropic);
    assert_eq!(reference_requests.len(), 12);
    let reference_events = normalize_events(&reference_events);
    for api in [Api::OpenaiChat, Api::OpenaiResponses, Api::Gemini] {
        let (events, requests, _) = run_conversation(api);
        for (one, other) in reference_events.iter().zip(&normalize_events(&events)) {
            assert_eq!(one, other, "{api}");
        }
        assert_eq!(
            reference_events.len(),
            normalize_events(&events).len(),
            "{api}"
        );
        assert_eq!(reference_requests.len(), requests.len(), "{api}");
        for (number, (one, other)) in reference_requests.iter().zip(&requests).enumerate() {
            if let Some(difference) = one.difference(other) {
                panic!(
                    "request {}: anthropic and {api} differ: {difference}",
                    number + 1
                );
            }
        }
    }
}

#[test]
fn export_holds_every_message_and_result() {
    for api in Api::ALL {
        let (_, _, export) = run_conversation(api);
        let messages = export["messages"].as_array().unwrap();
        let roles: Vec<_> = messages
            .iter()
            .map(|message| message["role"].as_str().unwrap())
            .collect();
        assert_eq!(
            roles.iter().filter(|role| **role == "assistant").count(),
            12,
            "{api}"
        );
        assert_eq!(
            roles.iter().filter(|role| **role == "tool").count(),
            16,
            "{api}: one result a call"
        );
        let calls = messages
            .iter()
            .flat_map(|message| message["content"].as_array().into_iter().flatten());
        let calls: Vec<_> = calls.filter(|part| part["type"] == "tool_call").collect();
        assert_eq!(calls[4]["arguments"], json!({"path": "dot.png"}), "{api}");
        let usage = &messages.last().unwrap();
        assert_eq!(
            usage["role"], "tool",
            "{api}: the completion's result is the last message"
        );
        let made = &messages
            .iter()
            .rev()
            .find(|message| message["role"] == "assistant")
            .unwrap()["llm_metadata"];
        assert_eq!(
            (&made["input_tokens"], &made["cached_input_tokens"]),
            (&json!(60), &json!(1870)),
            "{api}"
        );
    }
}
