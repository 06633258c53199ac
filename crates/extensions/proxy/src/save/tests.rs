//! Tests of rewriting: properties over conversations of all four APIs, and whole requests.

use std::path::Path;
use std::sync::Mutex;

use haft_testkit::support::FakeClock;
use proptest::prelude::*;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

/// One step of a conversation: the calls of a reply, and their results.
type Step = Vec<(&'static str, Value, String)>;

const APIS: [Api; 4] = Api::ALL;

fn step(number: usize, size: usize) -> Step {
    let command = format!("make part{}", number % 40);
    let line = format!("{command}: built in step {number}\n");
    vec![("shell", json!({"command": command}), line.repeat(size))]
}

/// Returns the body of the request after the first `count` steps.
fn build_request(api: Api, steps: &[Step], count: usize) -> String {
    let mut list = vec![user(api, "Fix the bug.")];
    if api == Api::OpenaiChat {
        list.insert(0, json!({"role": "system", "content": "You are an agent."}));
    }
    let mut number = 0;
    for step in &steps[..count] {
        let mut calls = Vec::new();
        let mut results = Vec::new();
        for (name, arguments, result) in step {
            number += 1;
            let id = format!("call-{number}");
            calls.push(call(api, &id, name, arguments));
            results.push(answer(api, &id, name, result));
        }
        match api {
            Api::OpenaiChat => {
                list.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
                list.extend(results);
            }
            Api::OpenaiResponses => {
                list.push(json!({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}));
                list.extend(calls);
                list.extend(results);
            }
            Api::Anthropic => {
                calls.insert(
                    0,
                    json!({"type": "thinking", "thinking": "hm", "signature": "sig"}),
                );
                list.push(json!({"role": "assistant", "content": calls}));
                list.push(json!({"role": "user", "content": results}));
            }
            Api::Gemini => {
                list.push(json!({"role": "model", "parts": calls}));
                list.push(json!({"role": "user", "parts": results}));
            }
        }
    }
    let tool = json!({"name": "read_file", "description": "Reads a file."});
    let body = match api {
        Api::OpenaiChat => {
            json!({"model": "m", "messages": list, "tools": [{"type": "function", "function": tool}]})
        }
        Api::OpenaiResponses => {
            json!({"model": "m", "instructions": "You are an agent.", "input": list, "tools": [tool]})
        }
        Api::Anthropic => {
            json!({"model": "m", "system": [{"type": "text", "text": "You are an agent."}], "messages": list, "tools": [tool]})
        }
        Api::Gemini => {
            json!({"systemInstruction": {"parts": [{"text": "You are an agent."}]}, "contents": list, "tools": [{"functionDeclarations": [tool]}]})
        }
    };
    body.to_string()
}

fn user(api: Api, text: &str) -> Value {
    match api {
        Api::Gemini => json!({"role": "user", "parts": [{"text": text}]}),
        Api::OpenaiChat | Api::OpenaiResponses | Api::Anthropic => {
            json!({"role": "user", "content": text})
        }
    }
}

fn call(api: Api, id: &str, name: &str, arguments: &Value) -> Value {
    match api {
        Api::OpenaiChat => {
            json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}})
        }
        Api::OpenaiResponses => {
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string()})
        }
        Api::Anthropic => json!({"type": "tool_use", "id": id, "name": name, "input": arguments}),
        Api::Gemini => {
            json!({"functionCall": {"name": name, "args": arguments}, "thoughtSignature": "sig"})
        }
    }
}

fn answer(api: Api, id: &str, name: &str, text: &str) -> Value {
    match api {
        Api::OpenaiChat => json!({"role": "tool", "tool_call_id": id, "content": text}),
        Api::OpenaiResponses => {
            json!({"type": "function_call_output", "call_id": id, "output": text})
        }
        Api::Anthropic => {
            json!({"type": "tool_result", "tool_use_id": id, "content": [{"type": "text", "text": text}]})
        }
        Api::Gemini => json!({"functionResponse": {"name": name, "response": {"output": text}}}),
    }
}

/// A policy that clears early, so that short conversations have several passes.
fn eager_policy() -> SavePolicy {
    SavePolicy {
        budget: Some(3_000),
        kept_results: 3,
        max_loss: 0.5,
        min_waste: 0.1,
        max_payback: 1_000.0,
        ..SavePolicy::default()
    }
}

struct TestSaver {
    saver: Saver,
    events: Arc<Mutex<Vec<SaveEvent>>>,
    clock: Arc<FakeClock>,
}

impl TestSaver {
    fn open(folder: &Path) -> Self {
        Self::with_policy(folder, eager_policy())
    }

    fn with_policy(folder: &Path, policy: SavePolicy) -> Self {
        Self::with_setup(folder, policy, |_| {})
    }

    fn with_setup(folder: &Path, policy: SavePolicy, change: impl FnOnce(&mut SaveSetup)) -> Self {
        let clock = Arc::new(FakeClock::starting_at(
            "2026-11-16T10:00:00Z".parse().unwrap(),
        ));
        let mut setup = SaveSetup {
            catalogue: Catalogue::with_built_in([].into(), [].into()).unwrap(),
            clock: clock.clone(),
            policy,
            agents: vec!["codex".to_owned()],
            agent: Some("codex".to_owned()),
            folder: folder.to_owned(),
            spill_folder: None,
            is_dry_run: false,
        };
        change(&mut setup);
        let events: Arc<Mutex<Vec<SaveEvent>>> = Arc::default();
        let seen = Arc::clone(&events);
        let saver = Saver::new(setup, move |event| seen.lock().unwrap().push(event));
        Self {
            saver,
            events,
            clock,
        }
    }

    /// Returns the body that is sent for a request.
    fn send(&self, api: Api, body: &str) -> String {
        let rewritten = self.saver.rewrite(ReceivedRequest {
            api,
            path: "/",
            upstream: "",
            headers: &[],
            body: body.as_bytes(),
        });
        rewritten.map_or_else(|| body.to_owned(), |one| one.body)
    }

    fn count_passes(&self) -> usize {
        let events = self.events.lock().unwrap();
        let passes = events.iter();
        passes
            .filter(|event| matches!(event, SaveEvent::Cleared { .. }))
            .count()
    }
}

/// Returns the messages of a body, without cache markers.
fn messages(api: Api, body: &str) -> Vec<Value> {
    let value: Value = serde_json::from_str(body).unwrap();
    let name = match api {
        Api::OpenaiChat | Api::Anthropic => "messages",
        Api::OpenaiResponses => "input",
        Api::Gemini => "contents",
    };
    let mut list = value[name].as_array().unwrap().clone();
    list.iter_mut().for_each(cut_marks);
    list
}

fn cut_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.remove("cache_control");
            fields.values_mut().for_each(cut_marks);
            // A text that was marked is a list with one block.
            if let Some([one]) = fields
                .get("content")
                .and_then(Value::as_array)
                .map(Vec::as_slice)
                && one["type"] == "text"
            {
                let text = one["text"].clone();
                fields.insert("content".to_owned(), text);
            }
        }
        Value::Array(list) => list.iter_mut().for_each(cut_marks),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the texts of all results of a body.
fn result_texts(api: Api, body: &str) -> Vec<String> {
    let request = ParsedRequest::parse(api, body).unwrap();
    let results = request.results.iter();
    results.map(|one| request.result_text(one)).collect()
}

fn any_steps() -> impl Strategy<Value = Vec<Step>> {
    let one = (1..80_usize, 1..4_usize);
    proptest::collection::vec(one, 5..20).prop_map(|sizes| {
        let mut number = 0;
        let mut steps = Vec::new();
        for (size, calls) in sizes {
            let mut parts = Vec::new();
            for _ in 0..calls {
                number += 1;
                parts.extend(step(number, size));
            }
            steps.push(parts);
        }
        steps
    })
}

fn any_api() -> impl Strategy<Value = Api> {
    (0..APIS.len()).prop_map(|index| APIS[index])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn rewrite_is_equal_after_a_restart(api in any_api(), steps in any_steps()) {
        let one = TempDir::new().unwrap();
        let killed = TempDir::new().unwrap();
        let saver = TestSaver::open(one.path());
        for count in 0..=steps.len() {
            let body = build_request(api, &steps, count);
            let sent = saver.send(api, &body);
            // The folder is part of the notices.
            let again = TestSaver::open(killed.path()).send(api, &body);
            let again = again.replace(killed.path().to_str().unwrap(), one.path().to_str().unwrap());
            prop_assert_eq!(&sent, &again);
            let repeated = TestSaver::open(one.path()).send(api, &body);
            prop_assert_eq!(&sent, &repeated, "a retry after a restart");
        }
    }

    #[test]
    fn later_request_has_the_same_prefix_between_passes(api in any_api(), steps in any_steps()) {
        let folder = TempDir::new().unwrap();
        let saver = TestSaver::open(folder.path());
        let mut before: Vec<Value> = Vec::new();
        for count in 0..=steps.len() {
            let passes = saver.count_passes();
            let sent = messages(api, &saver.send(api, &build_request(api, &steps, count)));
            if saver.count_passes() == passes {
                prop_assert!(sent.starts_with(&before));
            }
            before = sent;
        }
    }

    #[test]
    fn results_are_seen_before_they_are_cleared(api in any_api(), steps in any_steps()) {
        let folder = TempDir::new().unwrap();
        let saver = TestSaver::open(folder.path());
        for count in 1..=steps.len() {
            let body = build_request(api, &steps, count);
            let sent = saver.send(api, &body);
            let received = result_texts(api, &body);
            let shown = result_texts(api, &sent);
            prop_assert_eq!(received.len(), shown.len());
            // The newest step counts as one of the results that stay.
            let unseen = steps[count - 1].len();
            let kept = shown.len().saturating_sub(unseen + eager_policy().kept_results - 1);
            prop_assert_eq!(&received[kept..], &shown[kept..]);
            for (received, shown) in received.iter().zip(&shown) {
                prop_assert!(received == shown || shown.starts_with("[haft proxy left out"));
            }
        }
    }

    #[test]
    fn only_results_change(api in any_api(), steps in any_steps()) {
        let folder = TempDir::new().unwrap();
        let saver = TestSaver::open(folder.path());
        for count in 1..=steps.len() {
            let body = build_request(api, &steps, count);
            let received = messages(api, &body);
            let sent = messages(api, &saver.send(api, &body));
            prop_assert_eq!(blank_results(received), blank_results(sent));
        }
    }

    #[test]
    fn conversation_is_never_much_dearer(api in any_api(), steps in any_steps()) {
        let folder = TempDir::new().unwrap();
        let policy = SavePolicy {
            max_loss: 0.1,
            ..eager_policy()
        };
        let saver = TestSaver::with_policy(folder.path(), policy);
        for count in 0..=steps.len() {
            saver.send(api, &build_request(api, &steps, count));
            let SaveCost { received, sent } = saver.saver.totals().cost;
            // The estimate of a notice's size may differ by some tokens.
            prop_assert!(sent <= received * 1.101 + 100.0, "{sent} against {received}");
        }
    }

    #[test]
    fn any_text_is_sent(api in any_api(), body in "\\PC*") {
        let folder = TempDir::new().unwrap();
        prop_assert_eq!(TestSaver::open(folder.path()).send(api, &body), body);
    }
}

/// Replaces the contents of all results.
fn blank_results(mut list: Vec<Value>) -> Vec<Value> {
    fn blank(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                let is_result = fields.contains_key("tool_call_id")
                    || fields.contains_key("tool_use_id")
                    || fields.contains_key("response")
                    || fields.contains_key("output");
                for (name, value) in fields {
                    match name.as_str() {
                        "content" | "output" | "response" if is_result => *value = Value::Null,
                        _ => blank(value),
                    }
                }
            }
            Value::Array(list) => list.iter_mut().for_each(blank),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    list.iter_mut().for_each(blank);
    list
}

fn long_steps(count: usize) -> Vec<Step> {
    (0..count).map(|number| step(number, 40)).collect()
}

#[test]
fn rewind_shows_the_results_again() {
    let folder = TempDir::new().unwrap();
    let saver = TestSaver::open(folder.path());
    let steps = long_steps(30);
    let sent: Vec<_> = (0..=30)
        .map(|count| {
            saver.send(
                Api::Anthropic,
                &build_request(Api::Anthropic, &steps, count),
            )
        })
        .collect();
    assert!(saver.count_passes() > 0);
    let cleared = |body: &str| body.matches("left out this result").count();
    let first = sent.iter().position(|body| cleared(body) > 0).unwrap();
    let body = build_request(Api::Anthropic, &steps, first - 1);
    assert_eq!(
        cleared(&saver.send(Api::Anthropic, &body)),
        0,
        "nothing is cleared before its time"
    );
    let last = build_request(Api::Anthropic, &steps, 30);
    assert_eq!(saver.send(Api::Anthropic, &last), sent[30]);
}

#[test]
fn texts_are_private_and_written_again() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = TempDir::new().unwrap();
    let steps = long_steps(30);
    let body = build_request(Api::OpenaiChat, &steps, 30);
    let saver = TestSaver::open(folder.path());
    for count in 0..=30 {
        saver.send(
            Api::OpenaiChat,
            &build_request(Api::OpenaiChat, &steps, count),
        );
    }
    let shown = result_texts(Api::OpenaiChat, &saver.send(Api::OpenaiChat, &body));
    let notice = &shown[0];
    let file = notice
        .split(" is in ")
        .nth(1)
        .unwrap()
        .trim_end_matches(']');
    assert_eq!(std::fs::read_to_string(file).unwrap(), steps[0][0].2);
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    std::fs::remove_file(file).unwrap();
    TestSaver::open(folder.path()).send(Api::OpenaiChat, &body);
    assert_eq!(std::fs::read_to_string(file).unwrap(), steps[0][0].2);
}

#[test]
fn requests_that_cannot_be_rewritten_are_counted() {
    let folder = TempDir::new().unwrap();
    let saver = TestSaver::open(folder.path());
    let steps = long_steps(30);
    let with = |name: &str, value: Value| {
        let body = build_request(Api::OpenaiResponses, &steps, 30);
        let mut body: Value = serde_json::from_str(&body).unwrap();
        body[name] = value;
        body
    };
    let mut compacted = with("store", json!(false));
    compacted["input"][0] = json!({"type": "compaction", "encrypted_content": "x"});
    let table = [
        (
            with("previous_response_id", json!("r1")),
            UnchangedReason::StoredResponse,
        ),
        (
            with("conversation", json!({"id": "c"})),
            UnchangedReason::StoredConversation,
        ),
        (
            with("context_management", json!([{}])),
            UnchangedReason::ContextManagement,
        ),
        (compacted, UnchangedReason::Compaction),
        (json!({"input": {}}), UnchangedReason::Unreadable),
    ];
    for (body, reason) in table {
        let body = body.to_string();
        assert_eq!(saver.send(Api::OpenaiResponses, &body), body);
        assert_eq!(saver.saver.totals().unchanged[&reason], 1, "{reason:?}");
    }
    assert_eq!(saver.saver.totals().rewritten, 0);
}

#[test]
fn agent_needs_consent_and_a_folder_that_it_can_read() {
    let folder = TempDir::new().unwrap();
    let steps = long_steps(30);
    let body = build_request(Api::OpenaiChat, &steps, 30);
    let gemini = |agents: &[&str], spill: Option<&Path>| {
        let agents = agents.iter().map(|agent| (*agent).to_owned()).collect();
        let saver = TestSaver::with_setup(folder.path(), eager_policy(), |setup| {
            setup.agent = Some("gemini".to_owned());
            setup.agents = agents;
            setup.spill_folder = spill.map(Path::to_owned);
        });
        let changed = saver.send(Api::OpenaiChat, &body) != body;
        let events = saver.events.lock().unwrap().clone();
        (changed, events)
    };
    let agent = || "gemini".to_owned();
    assert_eq!(
        gemini(&["codex"], None),
        (false, vec![SaveEvent::NotAllowed { agent: agent() }])
    );
    assert_eq!(
        gemini(&["gemini"], None),
        (false, vec![SaveEvent::NoReadableFolder { agent: agent() }])
    );
    let spill = TempDir::new().unwrap();
    assert!(gemini(&["gemini"], Some(spill.path())).0);
    assert!(spill.path().read_dir().unwrap().next().is_some());
}

#[test]
fn small_budget_is_refused() {
    let folder = TempDir::new().unwrap();
    let policy = SavePolicy {
        budget: Some(500),
        ..eager_policy()
    };
    let saver = TestSaver::with_policy(folder.path(), policy);
    let steps = long_steps(30);
    let body = build_request(Api::OpenaiChat, &steps, 30);
    assert_eq!(saver.send(Api::OpenaiChat, &body), body);
    let events = saver.events.lock().unwrap().clone();
    let [
        SaveEvent::BudgetTooSmall {
            budget: 500,
            needed,
        },
    ] = events[..]
    else {
        panic!("{events:?}")
    };
    let policy = SavePolicy {
        budget: Some(needed),
        ..eager_policy()
    };
    let saver = TestSaver::with_policy(folder.path(), policy);
    assert_ne!(saver.send(Api::OpenaiChat, &body), body);
}

#[test]
fn dry_run_changes_and_stores_nothing() {
    let folder = TempDir::new().unwrap();
    let saver = TestSaver::with_setup(folder.path(), eager_policy(), |setup| {
        setup.is_dry_run = true;
    });
    let steps = long_steps(30);
    for count in 0..=30 {
        let body = build_request(Api::Gemini, &steps, count);
        assert_eq!(saver.send(Api::Gemini, &body), body);
    }
    let totals = saver.saver.totals();
    assert!(totals.rewritten > 0 && totals.cost.sent < totals.cost.received);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn cold_conversation_is_cleared_for_free() {
    let folder = TempDir::new().unwrap();
    let policy = SavePolicy {
        // Too little was read again to clear anything while the prefix is cached.
        min_waste: 100.0,
        ..eager_policy()
    };
    let saver = TestSaver::with_policy(folder.path(), policy);
    let steps = long_steps(12);
    for count in 0..=11 {
        saver.send(
            Api::OpenaiChat,
            &build_request(Api::OpenaiChat, &steps, count),
        );
    }
    assert_eq!(saver.count_passes(), 0);
    saver.clock.advance(std::time::Duration::from_hours(2));
    saver.send(Api::OpenaiChat, &build_request(Api::OpenaiChat, &steps, 12));
    assert_eq!(saver.count_passes(), 1);
}

/// Returns a request in which a message with the time stands before the newest step.
fn with_time(api: Api, steps: &[Step], count: usize) -> String {
    let mut body: Value = serde_json::from_str(&build_request(api, steps, count)).unwrap();
    let list = body["messages"].as_array_mut().unwrap();
    let at = list.len() - if count > 0 { 2 } else { 0 };
    list.insert(
        at,
        user(api, &format!("<info>It is currently 10:{count:02}</info>")),
    );
    body.to_string()
}

#[test]
fn moved_text_is_sent_last() {
    for api in [Api::OpenaiChat, Api::Anthropic] {
        let folder = TempDir::new().unwrap();
        let saver = TestSaver::open(folder.path());
        let steps: Vec<_> = (0..6).map(|number| step(number, 1)).collect();
        let mut before = Vec::new();
        for count in 0..=6 {
            let body = with_time(api, &steps, count);
            let mut sent = messages(api, &saver.send(api, &body));
            if count < 3 {
                continue;
            }
            let text = format!("<info>It is currently 10:{count:02}</info>");
            assert_eq!(sent.pop(), Some(user(api, &text)), "{api}");
            assert!(sent.starts_with(&before), "{api} {count}");
            before = sent;
        }
        let again = TestSaver::open(folder.path());
        let sent = messages(api, &again.send(api, &with_time(api, &steps, 6)));
        assert!(sent.starts_with(&before), "{api} after a restart");
    }
}

/// Returns a request with the markers that an agent sets: after the system prompt, and in the newest
/// result.
fn with_markers(steps: &[Step], count: usize, mark: &Value) -> String {
    let body = build_request(Api::Anthropic, steps, count);
    let mut body: Value = serde_json::from_str(&body).unwrap();
    body["system"][0]["cache_control"] = mark.clone();
    if count > 0 {
        let last = body["messages"].as_array_mut().unwrap().last_mut().unwrap();
        last["content"][0]["content"][0]["cache_control"] = mark.clone();
    }
    body.to_string()
}

#[test]
fn markers_surround_what_is_cleared() {
    let folder = TempDir::new().unwrap();
    let saver = TestSaver::open(folder.path());
    let steps = long_steps(30);
    let mark = json!({"type": "ephemeral", "ttl": "1h"});
    let mut sent = String::new();
    for count in 0..=30 {
        sent = saver.send(Api::Anthropic, &with_markers(&steps, count, &mark));
        assert!(sent.matches("cache_control").count() <= 4);
    }
    let body: Value = serde_json::from_str(&sent).unwrap();
    assert_eq!(body["system"][0]["cache_control"], mark);
    let places: Vec<_> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
        .filter(|(_, message)| message.to_string().contains("cache_control"))
        .map(|(index, _)| index)
        .collect();
    assert_eq!(places.len(), 3);
    assert_eq!(places[1..], [58, 60], "the ends of the last two requests");
}

#[test]
fn markers_are_added_for_an_agent_without_any() {
    let folder = TempDir::new().unwrap();
    let saver = TestSaver::open(folder.path());
    let steps: Vec<_> = (0..6).map(|number| step(number, 1)).collect();
    let marks: Vec<_> = (0..=6)
        .map(|count| {
            let body = build_request(Api::Anthropic, &steps, count);
            saver
                .send(Api::Anthropic, &body)
                .matches(r#""cache_control":{"type":"ephemeral"}"#)
                .count()
        })
        .collect();
    assert_eq!(marks, [0, 0, 0, 0, 3, 3, 3]);
}

#[test]
fn files_being_edited_stay() {
    let folder = TempDir::new().unwrap();
    let saver = TestSaver::open(folder.path());
    let mut steps = long_steps(30);
    let text = "the text of the edited file\n".repeat(20);
    steps[1] = vec![(
        "read_file",
        json!({"filePath": "/p/src/main.rs"}),
        text.clone(),
    )];
    steps[2] = vec![(
        "replace",
        json!({"file_path": "src/main.rs", "old_string": "a", "new_string": "b"}),
        "ok".to_owned(),
    )];
    let mut shown = Vec::new();
    for count in 0..=30 {
        let body = build_request(Api::Gemini, &steps, count);
        shown = result_texts(Api::Gemini, &saver.send(Api::Gemini, &body));
    }
    assert!(shown[0].starts_with("[haft proxy left out"));
    assert_eq!(shown[1], text);
}
