//! The keys of `[limits]` and `[context]` that bound repetitions, calls and archives: a changed
//! value takes effect, and one out of range is refused.

use haft_testkit::{Reply, Script, ScriptCall, Stop};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

/// Runs the task `go` with these replies and `--set` arguments. Returns the run and the number of
/// requests.
fn run_with(replies: impl IntoIterator<Item = Reply>, set: &[&str]) -> (Ran, usize) {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let mut arguments = Vec::new();
    for one in set {
        arguments.push("--set");
        arguments.push(one);
    }
    arguments.push("go");
    let ran = rig.task(&arguments);
    (ran, rig.server.generation_requests().len())
}

/// Returns the codes of the errors of all tool results; null for a result without an error.
fn error_codes(ran: &Ran) -> Vec<Value> {
    let events = ran.events();
    let results = events.iter().filter(|event| event["type"] == "tool_result");
    results
        .map(|event| event["error"]["code"].clone())
        .collect()
}

#[test]
fn nudges_are_as_many_as_the_limit_allows() {
    for (set, requests) in [
        (&["limits.nudges=0"][..], 2),
        (&["limits.nudges=1"], 3),
        (&[], 5),
        (&["limits.nudges=5"], 7),
    ] {
        let todo = Reply::call(
            "todo_write",
            json!({"todos": [{"content": "a", "status": "pending"}]}),
        );
        let answers = std::iter::repeat_n(Reply::text("Half done."), 8);
        let (ran, sent) = run_with(std::iter::once(todo).chain(answers), set);
        assert_eq!(ran.result()["code"], "answered", "{set:?}");
        assert_eq!(sent, requests, "{set:?}");
    }
}

#[test]
fn repeated_calls_are_noted_after_as_many_results_as_the_limit_allows() {
    for (set, notes) in [(&["limits.equal_results=2"][..], 1), (&[], 0)] {
        let read = Reply::call("read_file", json!({"path": "absent.txt"}));
        let (ran, _) = run_with([read.clone(), read, Reply::text("Done.")], set);
        let found = ran
            .events()
            .iter()
            .filter(|event| event["type"] == "notice" && event["code"] == "nudge")
            .count();
        assert_eq!(found, notes, "{set:?}: {}", ran.stdout());
    }
}

#[test]
fn continuations_are_as_many_as_the_limit_allows() {
    for (set, requests) in [("limits.continuations=0", 1), ("limits.continuations=2", 3)] {
        let cut = Reply {
            stop: Some(Stop::Length),
            times: Some(20),
            ..Reply::text("and on ")
        };
        let (ran, sent) = run_with([cut], &[set]);
        assert_eq!(ran.result()["code"], "output_limit", "{set}");
        assert_eq!(sent, requests, "{set}");
    }
}

fn three_reads() -> [Reply; 2] {
    let calls = ["a", "b", "c"].map(|path| ScriptCall::new("list_files", json!({"path": path})));
    [Reply::calls(calls), Reply::text("Done.")]
}

#[test]
fn calls_beyond_the_limit_are_left_out() {
    let (ran, _) = run_with(three_reads(), &["limits.calls_per_reply=2"]);
    assert_eq!(error_codes(&ran).len(), 2);
    let is_reported = |event: &Value| event["code"] == "too_many_calls";
    assert!(ran.events().iter().any(is_reported), "{}", ran.stdout());
}

#[test]
fn calls_run_at_once_up_to_the_limit() {
    for (set, expected) in [
        (
            &["limits.parallel_calls=1"][..],
            "running result running result running result",
        ),
        (
            &["limits.parallel_calls=2"],
            "running running result result running result",
        ),
        (&[], "running running running result result result"),
    ] {
        let (ran, _) = run_with(three_reads(), set);
        let events = ran.events();
        let steps = events.iter().filter_map(|event| {
            let is_result = event["type"] == "tool_result";
            let is_running = event["type"] == "tool_call" && event["phase"] == "running";
            match (is_result, is_running) {
                (true, _) => Some("result"),
                (_, true) => Some("running"),
                (false, false) => None,
            }
        });
        let steps: Vec<_> = steps.collect();
        assert_eq!(steps.join(" "), expected, "{set:?}");
    }
}

#[cfg(feature = "web")]
#[test]
fn failing_tool_is_paused_after_as_many_failures_as_the_limit_allows() {
    // The site finds nothing for these words, and answers with an error.
    let url = format!("web.search_url={}", crate::web::start_site());
    for (set, second) in [
        (&["limits.tool_failures=1"][..], "circuit_open"),
        (
            &["limits.tool_failures=1", "limits.tool_pause_seconds=0"],
            "search_failed",
        ),
        (&["limits.tool_failures=2"], "search_failed"),
        (&[], "search_failed"),
    ] {
        let search = |words: &str| Reply::call("web_search", json!({"query": words}));
        let replies = [search("one"), search("two"), Reply::text("Done.")];
        let mut all = vec!["web.search=searxng", url.as_str()];
        all.extend(set);
        let (ran, _) = run_with(replies, &all);
        assert_eq!(error_codes(&ran), ["search_failed", second], "{set:?}");
    }
}

#[test]
fn limits_out_of_range_are_refused() {
    let from_one = "invalid value: integer `0`, expected a number from 1";
    let negative = "invalid value: integer `-1`, expected u32";
    for (set, problem) in [
        ("limits.continuations=-1", negative),
        ("limits.nudges=-1", negative),
        ("limits.corrections=-1", negative),
        (
            "limits.equal_results=1",
            "invalid value: integer `1`, expected a number from 2 to 100",
        ),
        (
            "limits.cycle_calls=33",
            "invalid value: integer `33`, expected a number from 1 to 32",
        ),
        ("limits.calls_per_reply=0", from_one),
        ("limits.parallel_calls=0", from_one),
        ("limits.tool_failures=0", from_one),
        ("limits.tool_pause_seconds=-1", negative),
        ("limits.useful_ranges=0", from_one),
        ("limits.shown_notes=-1", negative),
        ("context.compact_min_inputs=-1", negative),
        ("context.compact_min_blocks=-1", negative),
    ] {
        let rig = Rig::new(Api::OpenaiChat, Script::replies([]).unwrap());
        let ran = rig.run(&["run", "--set", set, "go"]);
        assert_eq!(ran.code(), 2, "{set}");
        assert_eq!(ran.stderr(), format!("haft: `--set {set}`: {problem}\n"));
    }
}
