//! The keys of `[limits]` and `[context]` that bound repetitions, calls and archives: a changed
//! value takes effect, and one out of range is refused.

use haft_testkit::{Reply, Script, ScriptCall, Stop, When};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};

/// Runs the task `go` with these replies and `--set` arguments. Returns the run and the number of
/// requests.
fn run_with(replies: impl IntoIterator<Item = Reply>, set: &[&str]) -> (Ran, usize) {
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let ran = run_task(&rig, set, &["go"]);
    (ran, rig.server.generation_requests().len())
}

/// Runs a task with these `--set` arguments and further arguments.
fn run_task(rig: &Rig, set: &[&str], more: &[&str]) -> Ran {
    let mut arguments: Vec<_> = set.iter().flat_map(|one| ["--set", one]).collect();
    arguments.extend(more);
    rig.task(&arguments)
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

/// Returns the number of warnings about repeated calls.
fn count_warnings(ran: &Ran) -> usize {
    let events = ran.events();
    let is_warning = |event: &&Value| event["type"] == "notice" && event["code"] == "nudge";
    events.iter().filter(is_warning).count()
}

#[test]
fn turn_ends_after_as_many_corrections_as_the_limit_allows() {
    for (set, requests) in [
        (&["limits.equal_results=2", "limits.corrections=0"][..], 2),
        (&["limits.equal_results=2", "limits.corrections=1"], 3),
        (&["limits.equal_results=2"], 5),
        (&["limits.equal_results=2", "limits.corrections=5"], 7),
    ] {
        let read = Reply::call("read_file", json!({"path": "absent.txt"})).times(9);
        let (ran, sent) = run_with([read], set);
        assert_eq!(ran.result()["code"], "loop", "{set:?}");
        assert_eq!(
            (sent, count_warnings(&ran)),
            (requests, requests - 2),
            "{set:?}"
        );
    }
}

#[test]
fn answers_are_objected_to_as_often_as_the_limit_of_corrections_allows() {
    for (set, requests) in [
        (&["limits.corrections=0"][..], 1),
        (&["limits.corrections=2"], 3),
        (&[], 4),
    ] {
        let rig = Rig::new(
            Api::OpenaiChat,
            Script::replies([Reply::text("It is blue.").times(9)]).unwrap(),
        );
        let schema = ["--json-schema", r#"{"type": "object"}"#, "go"];
        let ran = run_task(&rig, set, &schema);
        assert_eq!(
            ran.result()["outcome"],
            "failed",
            "{set:?}: {}",
            ran.stdout()
        );
        assert_eq!(rig.server.generation_requests().len(), requests, "{set:?}");
    }
}

#[test]
fn cycles_of_calls_are_noted_up_to_the_length_of_the_limit() {
    for (set, length, warnings) in [
        (
            &["limits.equal_results=2", "limits.cycle_calls=1"][..],
            2,
            0,
        ),
        (&["limits.equal_results=2", "limits.cycle_calls=2"], 2, 1),
        (&["limits.equal_results=2", "limits.cycle_calls=2"], 3, 0),
        (&["limits.equal_results=2"], 4, 1),
        (&["limits.equal_results=2"], 5, 0),
        (&["limits.equal_results=2", "limits.cycle_calls=5"], 5, 1),
    ] {
        let read = |number: usize| {
            Reply::call(
                "read_file",
                json!({"path": format!("absent-{}.txt", number % length)}),
            )
        };
        let replies = (0..2 * length).map(read).chain([Reply::text("Done.")]);
        let (ran, _) = run_with(replies, set);
        assert_eq!(count_warnings(&ran), warnings, "{set:?}, cycle of {length}");
    }
}

/// Returns which of these texts the last request contains.
fn texts_in_last_request(rig: &Rig, texts: [&str; 3]) -> [bool; 3] {
    let requests = rig.server.generation_requests();
    let last = requests.last().unwrap().decode().unwrap().to_string();
    texts.map(|text| last.contains(text))
}

#[test]
fn useful_ranges_are_kept_up_to_the_limit() {
    for (set, dropped) in [
        (&["limits.useful_ranges=1"][..], 2),
        (&["limits.useful_ranges=2"], 1),
        (&[], 0),
    ] {
        let add = |name: &str| {
            let range = json!({"path": name, "start_line": 1, "end_line": 1, "description": name});
            Reply::call("useful_info_add", range)
        };
        let replies = ["a.txt", "b.txt", "c.txt"].map(add);
        let replies = replies.into_iter().chain([Reply::text("Done.")]);
        let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
        for name in ["a", "b", "c"] {
            rig.write(&format!("{name}.txt"), format!("the line of {name}\n"));
        }
        let ran = run_task(&rig, set, &["go"]);
        assert_eq!(error_codes(&ran), vec![Value::Null; 3], "{set:?}");
        let requests = rig.server.generation_requests();
        let last = requests.last().unwrap().decode().unwrap().to_string();
        let notice = "Too many ranges: the oldest is no longer kept";
        assert_eq!(last.matches(notice).count(), dropped, "{set:?}: {last}");
    }
}

#[test]
fn folder_notes_are_sent_up_to_the_limit() {
    for (set, sent) in [
        (&["limits.shown_notes=0"][..], [false, false, false]),
        (&["limits.shown_notes=1"], [false, false, true]),
        (&["limits.shown_notes=2"], [false, true, true]),
        (&[], [true, true, true]),
    ] {
        let read = Reply::call("read_file", json!({"path": "src/a.rs"}));
        let rig = Rig::new(
            Api::OpenaiChat,
            Script::replies([read, Reply::text("Done.")]).unwrap(),
        );
        rig.write("src/a.rs", "fn a() {}\n");
        let notes = ["amounts in cents", "no panics", "tests are slow"];
        for note in notes {
            assert_eq!(rig.run(&["notes", "add", "src", note]).code(), 0);
        }
        assert_eq!(run_task(&rig, set, &["go"]).code(), 0);
        assert_eq!(texts_in_last_request(&rig, notes), sent, "{set:?}");
    }
}

/// A rig that archives as early as the other limits allow, and accepts every archive.
fn rig_with_early_archives(replies: impl IntoIterator<Item = Reply>) -> Rig {
    let summary = Reply::summary("- all is well").times(99).when(When {
        last_contains: Some("The session to be archived".into()),
        ..When::default()
    });
    let replies = std::iter::once(summary).chain(replies);
    let rig = Rig::new(Api::OpenaiChat, Script::replies(replies).unwrap());
    let config = std::fs::read_to_string(rig.home().join("config.toml")).unwrap();
    rig.configure(&format!(
        "{config}[context]\ncompact_at = 0.0001\ncompact_frees = 0.000001\n\
         compact_min_messages = 1\nkeep_rounds = 1\nkeep_blocks = 2\n"
    ));
    rig
}

/// Returns the numbers of other requests between the requests for summaries.
fn distances_of_archives(rig: &Rig) -> Vec<usize> {
    let requests = rig.server.generation_requests();
    let is_summary = |index: &usize| requests[*index].decode().unwrap().tools.is_empty();
    let archives: Vec<_> = (0..requests.len()).filter(is_summary).collect();
    let pairs = archives.windows(2);
    pairs.map(|pair| pair[1] - pair[0] - 1).collect()
}

#[test]
fn archives_are_as_many_inputs_apart_as_the_limit_demands() {
    for (set, inputs) in [
        (&["context.compact_min_inputs=3"][..], 3),
        (&["context.compact_min_inputs=4"], 4),
        (&[], 5),
    ] {
        let answer = Reply::text("Answered, and at some length. ".repeat(40)).times(99);
        let rig = rig_with_early_archives([answer]);
        for number in 0..20 {
            let words = format!("question {number}");
            let prompt = if number == 0 {
                vec![words.as_str()]
            } else {
                vec!["-c", &words]
            };
            assert_eq!(run_task(&rig, set, &prompt).code(), 0);
        }
        let found = distances_of_archives(&rig);
        // The first input is not followed by an archive.
        assert!(
            found.len() > 2 && found[1..].iter().all(|one| *one == inputs),
            "{set:?}: {found:?}"
        );
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
