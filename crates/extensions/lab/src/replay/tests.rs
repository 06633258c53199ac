use haft_context::{Placement, Policy, SafeZone};
use haft_types::{CacheKind, CacheRule, Envelope, Message, Price, Role};

use super::*;
use crate::testing::{Quarter, at, call, entry, id, model, named_result, system, text, tool_set};

/// Returns a history that reads `files`, each with a result of about 250 tokens.
fn reads(files: &[&str]) -> Vec<Arc<Entry>> {
    let mut history = vec![text(0, Role::User, "read them")];
    for file in files {
        let number = history.len();
        let call_id = format!("call-{number}");
        let arguments = format!(r#"{{"path":"{file}"}}"#);
        let parts = vec![call(&call_id, "read_file", &arguments)];
        history.push(entry(Message::new(
            id(number),
            Role::Assistant,
            parts,
            at(number),
        )));
        history.push(named_result(
            number + 1,
            &call_id,
            "read_file",
            Envelope::success("word ".repeat(200)),
        ));
    }
    history
}

fn priced() -> ModelSpec {
    let price = Price {
        input: 1.0,
        cached_input: Some(0.1),
        cache_write: Some(1.25),
        output: 0.0,
        long: None,
    };
    ModelSpec {
        price: Some(price),
        cache: CacheRule {
            rule: CacheKind::Anthropic,
            min: 1,
            ..CacheRule::default()
        },
        ..model()
    }
}

fn run(files: &[&str], policy: &Policy, seconds: u64) -> (Replay, Vec<Request>) {
    run_model(files, policy, seconds, &priced())
}

fn run_model(
    files: &[&str],
    policy: &Policy,
    seconds: u64,
    model: &ModelSpec,
) -> (Replay, Vec<Request>) {
    let system = system();
    let tools = tool_set(&["read_file"]);
    let history = reads(files);
    let step = |number: usize| RecordedStep {
        messages: 1 + 2 * number,
        at: Duration::from_secs(number as u64 * seconds),
    };
    let steps: Vec<_> = (0..=files.len()).map(step).collect();
    let reminders = Reminders {
        todo: Some("- [ ] read".into()),
        ..Reminders::default()
    };
    let beside = |_| RequestSurroundings {
        system: &system,
        system_input: None,
        tools: &tools,
        documents: None,
        reminders: Some(reminders.clone()),
        cache_key: None,
    };
    let recording = Recording {
        history: &history,
        steps: &steps,
        beside: &beside,
    };
    let mut seen = Vec::new();
    let variant = Variant {
        name: "test".into(),
        policy: policy.clone(),
        reminders: true,
        archives: true,
    };
    let replay = replay(&recording, &variant, model, &Quarter, |_, request| {
        seen.push(request.clone());
    });
    (replay, seen)
}

#[test]
fn the_same_recording_gives_the_same_figures_and_requests() {
    let files = ["a", "b", "c", "d", "e"];
    let policy = Policy {
        reminders: Placement::CacheAware,
        ..Policy::default()
    };
    let first = run(&files, &policy, 1);
    let second = run(&files, &policy, 1);
    assert_eq!(first, second);
    assert_eq!(
        (first.0.requests.len(), first.0.breaks(), first.0.too_large),
        (6, 0, 0)
    );
    // Each request reads from the cache what the previous one wrote; all input is read or written.
    for pair in first.0.requests.windows(2) {
        assert_eq!(pair[1].usage.cached_input, pair[0].usage.all_input());
        assert_eq!(pair[1].usage.input, 0);
    }
    let usage = first.0.usage();
    let cost = (usage.cached_input as f64 * 0.1 + usage.cache_write as f64 * 1.25) / 1e6;
    assert!((first.0.cost().unwrap() - cost).abs() < 1e-12);
}

#[test]
fn a_moving_run_and_a_cold_cache_cost_more() {
    let files = ["a", "b", "c", "d", "e", "f"];
    let aware = Policy {
        reminders: Placement::CacheAware,
        ..Policy::default()
    };
    let warm = run(&files, &aware, 1).0;
    let cold = run(&files, &aware, 301).0;
    let moving = Policy {
        reminders: Placement::AfterToolResult(3),
        ..Policy::default()
    };
    let moving = run(&files, &moving, 1).0;
    assert!(moving.breaks() > 0 && moving.cost() > warm.cost());
    assert_eq!(cold.usage().cached_input, 0);
    assert!(cold.cost() > moving.cost());
}

#[test]
fn what_was_cleared_and_is_read_again_is_regretted() {
    let policy = |safe_zone| Policy {
        safe_zone: Some(safe_zone),
        prune_keep: Some(1),
        ..Policy::default()
    };
    let files = ["a", "b", "c", "d", "a", "e"];
    let roomy = run(&files, &policy(SafeZone::default()), 1).0;
    assert_eq!(
        (
            roomy.regret,
            roomy
                .requests
                .iter()
                .map(|one| one.pruned_tokens)
                .sum::<u64>()
        ),
        (0, 0)
    );
    let used = roomy.requests[2].usage.all_input();
    let tight = run(&files, &policy(SafeZone::Tokens(used)), 1).0;
    assert_eq!(tight.regret, 1, "`a` had been cleared");
    assert!(tight.peak() < roomy.peak());
}

#[test]
fn what_must_be_kept_is_looked_for_in_the_last_request() {
    let mut history = reads(&["a", "b", "c", "d"]);
    history[0] = text(
        0,
        Role::User,
        "Read them. You must never touch the lock file.",
    );
    let segment = |entry: &Arc<Entry>| haft_types::Segment {
        layer: Layer::History,
        owner: "history",
        entry: Arc::clone(entry),
        boundary: false,
    };
    let request = |kept: &[Arc<Entry>]| Request {
        segments: kept.iter().map(segment).collect(),
        tools: tool_set(&[]),
        max_output_tokens: None,
        cache_key: None,
    };
    assert_eq!(
        coverage(&history, &request(&history)),
        Coverage { kept: 1, all: 1 }
    );
    assert_eq!(
        coverage(&history, &request(&history[1..])),
        Coverage { kept: 0, all: 1 }
    );
    assert_eq!(coverage(&[], &request(&history)), Coverage::default());
}

#[test]
fn reminders_are_never_further_than_allowed() {
    let files: Vec<String> = (0..40).map(|number| format!("file{number}")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let policy = Policy {
        reminders: Placement::CacheAware,
        max_distance: 10,
        ..Policy::default()
    };
    let (aware, _) = run(&files, &policy, 1);
    let farthest = aware
        .requests
        .iter()
        .filter_map(|one| one.reminder_distance)
        .max();
    assert_eq!((farthest, aware.requests.len()), (Some(10), 41));
}

#[test]
fn what_is_said_after_the_last_request_is_not_asked_of_it() {
    let (replay, _) = run(&["a", "b"], &Policy::default(), 1);
    let mut history = reads(&["a", "b"]);
    assert_eq!(replay.last_messages, history.len());
    let before = replay.coverage(&history);
    history.push(text(9, Role::Assistant, "Done."));
    history.push(text(10, Role::User, "You must never do that again."));
    assert_eq!(replay.coverage(&history), before);
}

#[test]
fn a_window_that_fills_is_archived_and_the_summary_is_paid_for() {
    let files: Vec<String> = (0..60).map(|number| format!("file{number}")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let model = ModelSpec {
        context_window: 14_000,
        max_output_tokens: Some(1_000),
        ..priced()
    };
    // No result is cleared, so that only an archive frees space.
    let policy = Policy {
        prune_keep: Some(u32::MAX),
        keep_blocks: 5,
        ..Policy::default()
    };
    let (replay, requests) = run_model(&files, &policy, 1, &model);
    assert!(replay.archives > 0, "{:?}", replay.peak());
    assert_eq!(
        replay.requests.len(),
        files.len() + 1 - replay.too_large + replay.archives
    );
    let summaries = |request: &Request| {
        request
            .segments
            .iter()
            .filter(|segment| segment.entry.message.role == Role::Summary)
            .count()
    };
    assert_eq!(requests.first().map(summaries), Some(0));
    assert!(
        requests.last().is_some_and(|last| summaries(last) > 0),
        "{:?}",
        requests.last()
    );
    assert_eq!(
        run_model(&files, &policy, 1, &model),
        (replay, requests),
        "the same again"
    );
}

#[test]
fn a_failing_command_is_found_in_its_call_whatever_json_makes_of_it() {
    let arguments = r#"{"command":"echo \"a\" &&\n false"}"#;
    let call = Message::new(
        id(1),
        Role::Assistant,
        vec![call("c", "execute_command", arguments)],
        at(1),
    );
    let failed = Envelope::failure("exit_status", "exit status 1");
    let history = [
        text(0, Role::User, "go"),
        entry(call),
        named_result(2, "c", "execute_command", failed),
    ];
    let segment = |entry: &Arc<Entry>| haft_types::Segment {
        layer: Layer::History,
        owner: "history",
        entry: Arc::clone(entry),
        boundary: false,
    };
    let segments = history.iter().map(segment).collect();
    let request = Request {
        segments,
        tools: tool_set(&[]),
        max_output_tokens: None,
        cache_key: None,
    };
    assert_eq!(coverage(&history, &request), Coverage { kept: 1, all: 1 });
}
