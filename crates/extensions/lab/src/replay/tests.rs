use haft_context::{Placement, Policy, SafeZone};
use haft_types::{CacheKind, CacheRule, Envelope, Message, Price, Role};

use std::ops::ControlFlow;

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

fn priced_model() -> ModelSpec {
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

fn replay_reads(files: &[&str], policy: &Policy, seconds: u64) -> (Replay, Vec<Request>) {
    run_model(files, policy, seconds, &priced_model())
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
    let replay = replay_recording(&recording, &variant, model, &Quarter, |_, request| {
        seen.push(request.clone());
        ControlFlow::Continue(())
    });
    (replay, seen)
}

#[test]
fn replay_is_deterministic() {
    let files = ["a", "b", "c", "d", "e"];
    let policy = Policy {
        reminders: Placement::CacheAware,
        ..Policy::default()
    };
    let first = replay_reads(&files, &policy, 1);
    let second = replay_reads(&files, &policy, 1);
    assert_eq!(first, second);
    assert_eq!(
        (
            first.0.requests.len(),
            first.0.count_breaks(),
            first.0.too_large
        ),
        (6, 0, 0)
    );
    // Each request reads from the cache what the previous one wrote; all input is read or written.
    for pair in first.0.requests.windows(2) {
        assert_eq!(pair[1].usage.cached_input, pair[0].usage.all_input());
        assert_eq!(pair[1].usage.input, 0);
    }
    let usage = first.0.total_usage();
    let cost = (usage.cached_input as f64 * 0.1 + usage.cache_write as f64 * 1.25) / 1e6;
    assert!((first.0.total_cost().unwrap() - cost).abs() < 1e-12);
}

#[test]
fn replay_costs_more_with_moving_reminders_or_a_cold_cache() {
    let files = ["a", "b", "c", "d", "e", "f"];
    let aware = Policy {
        reminders: Placement::CacheAware,
        ..Policy::default()
    };
    let warm = replay_reads(&files, &aware, 1).0;
    let cold = replay_reads(&files, &aware, 301).0;
    let moving = Policy {
        reminders: Placement::AfterToolResult(3),
        ..Policy::default()
    };
    let moving = replay_reads(&files, &moving, 1).0;
    assert!(moving.count_breaks() > 0 && moving.total_cost() > warm.total_cost());
    assert_eq!(cold.total_usage().cached_input, 0);
    assert!(cold.total_cost() > moving.total_cost());
}

#[test]
fn replay_counts_a_reread_of_cleared_results_as_regret() {
    let policy = |safe_zone| Policy {
        safe_zone: Some(safe_zone),
        prune_keep: Some(1),
        ..Policy::default()
    };
    let files = ["a", "b", "c", "d", "a", "e"];
    let roomy = replay_reads(&files, &policy(SafeZone::default()), 1).0;
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
    let tight = replay_reads(&files, &policy(SafeZone::Tokens(used)), 1).0;
    assert_eq!(tight.regret, 1, "`a` had been cleared");
    assert!(tight.peak_tokens() < roomy.peak_tokens());
}

#[test]
fn coverage_searches_the_last_request_for_required_text() {
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
        measure_coverage(&history, &request(&history)),
        Coverage { kept: 1, all: 1 }
    );
    assert_eq!(
        measure_coverage(&history, &request(&history[1..])),
        Coverage { kept: 0, all: 1 }
    );
    assert_eq!(
        measure_coverage(&[], &request(&history)),
        Coverage::default()
    );
}

#[test]
fn cache_aware_reminders_keep_the_maximum_distance() {
    let files: Vec<String> = (0..40).map(|number| format!("file{number}")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let policy = Policy {
        reminders: Placement::CacheAware,
        max_distance: 10,
        ..Policy::default()
    };
    let (aware, _) = replay_reads(&files, &policy, 1);
    let farthest = aware
        .requests
        .iter()
        .filter_map(|one| one.reminder_distance)
        .max();
    assert_eq!((farthest, aware.requests.len()), (Some(10), 41));
}

#[test]
fn coverage_ignores_messages_after_the_last_request() {
    let (replay, _) = replay_reads(&["a", "b"], &Policy::default(), 1);
    let mut history = reads(&["a", "b"]);
    assert_eq!(replay.last_messages, history.len());
    let before = replay.final_coverage(&history);
    history.push(text(9, Role::Assistant, "Done."));
    history.push(text(10, Role::User, "You must never do that again."));
    assert_eq!(replay.final_coverage(&history), before);
}

#[test]
fn replay_archives_a_full_window_and_pays_for_the_summary() {
    let files: Vec<String> = (0..60).map(|number| format!("file{number}")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let model = ModelSpec {
        context_window: 14_000,
        max_output_tokens: Some(1_000),
        ..priced_model()
    };
    // No result is cleared, so that only an archive frees space.
    let policy = Policy {
        prune_keep: Some(u32::MAX),
        keep_blocks: 5,
        ..Policy::default()
    };
    let (replay, requests) = run_model(&files, &policy, 1, &model);
    assert!(replay.archives > 0, "{:?}", replay.peak_tokens());
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
fn coverage_finds_a_failed_command_despite_json_escapes() {
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
    assert_eq!(
        measure_coverage(&history, &request),
        Coverage { kept: 1, all: 1 }
    );
}

#[test]
fn rereads_are_priced_by_the_size_of_each_request() {
    let mut model = priced_model();
    let price = Price {
        input: 1.0,
        cached_input: Some(0.1),
        cache_write: None,
        output: 0.0,
        long: Some(haft_types::LongPrice {
            above: 100_000,
            input: 5.0,
            cached_input: Some(0.5),
            cache_write: None,
            output: 0.0,
        }),
    };
    model.price = Some(price);
    let usage = |cached_input, input| Usage {
        cached_input,
        input,
        ..Usage::default()
    };
    let mut rereads = Rereads::new(&model);
    rereads.record_usage(usage(60_000, 0));
    rereads.pay(2, 20_000);
    let once = price.request_cost(usage(60_000, 10_000)).total;
    let twice = price.request_cost(usage(70_000, 10_000)).total;
    let close = |cost: f64| (rereads.cost.unwrap() - cost).abs() < 1e-9;
    assert!(close(once + twice), "neither is long: {:?}", rereads.cost);
    // The text that was sent again makes the next request a long one.
    let next = usage(90_000, 0);
    let more = price.request_cost(usage(110_000, 0)).total - price.request_cost(next).total;
    rereads.record_usage(next);
    let close = |cost: f64| (rereads.cost.unwrap() - cost).abs() < 1e-9;
    assert!(close(once + twice + more), "{:?}", rereads.cost);
}
