//! Content left out if a window is small, and how often: each time costs the cached prefix.

use haft_testkit::{Reply, Script, When};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::{MODEL, Ran, Rig};

fn events_of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["type"] == kind)
        .collect()
}

/// Answers every request for a summary.
fn summary_reply() -> Reply {
    let when = When {
        last_contains: Some("The session to be archived".into()),
        ..When::default()
    };
    Reply {
        times: Some(99),
        ..Reply::summary("The notes are being read.")
    }
    .when(when)
}

/// A rig with 200 files of this many lines.
fn rig(api: Api, replies: impl IntoIterator<Item = Reply>, lines: usize) -> Rig {
    let rig = Rig::new(
        api,
        Script::replies([summary_reply()].into_iter().chain(replies)).unwrap(),
    );
    for number in 0..200 {
        let content: String = (0..lines)
            .map(|line| format!("note {number}.{line} is worth keeping\n"))
            .collect();
        rig.write(&format!("{number}.txt"), content);
    }
    rig
}

/// An answer that is given repeatedly, because an open TODO list makes haft ask again.
fn repeated_done_reply() -> Reply {
    Reply {
        times: Some(9),
        ..Reply::text("Done.")
    }
}

fn read_call(number: usize) -> Reply {
    Reply::call("read_file", json!({"path": format!("{number}.txt")}))
}

/// Runs a task with a model of this window, of which 4,000 tokens are reserved for the reply.
fn run_with_window(rig: &Rig, window: u32, more: &[&str]) -> Ran {
    let window = format!("models.\"mock/{MODEL}\".context_window={window}");
    let output = format!("models.\"mock/{MODEL}\".max_output_tokens=4000");
    let ran = rig.task(&[&["--set", &window, "--set", &output], more].concat());
    assert_eq!(ran.code(), 0, "{} {}", ran.result(), ran.stderr());
    ran
}

/// One round of 190 requests in a window that holds a small part of them: with small results, with
/// larger ones that must be cleared, and with text that cannot be cleared.
#[test]
fn prefix_breaks_fewer_than_12_times_in_190_requests() {
    for (lines, words) in [(8, 0), (30, 0), (1, 40)] {
        let read = |number| Reply {
            text: Some("I go on with the next one. ".repeat(words)),
            ..read_call(number)
        };
        let rig = rig(
            Api::Anthropic,
            (0..189).map(read).chain([Reply::text("Done.")]),
            lines,
        );
        let ran = run_with_window(
            &rig,
            24_000,
            &["read all of them; you must never write to any"],
        );
        let events = ran.events();
        let causes: Vec<_> = events_of_type(&events, "prefix_break")
            .iter()
            .map(|one| one["cause"].clone())
            .collect();
        assert!(
            causes.len() < 12,
            "{lines} lines: {} breaks: {causes:?}",
            causes.len()
        );
        let last = rig
            .server
            .generation_requests()
            .last()
            .unwrap()
            .decode()
            .unwrap()
            .to_string();
        assert!(
            last.contains("you must never write to any"),
            "{lines} lines: what the user said stays"
        );
    }
}

/// One long round of 400 messages with small results: the context does not shrink abruptly.
#[test]
fn compaction_of_a_long_round_keeps_summary_and_todo_list() {
    let todo = Reply::call(
        "todo_write",
        json!({"todos": [{"content": "read the notes", "status": "in_progress"}]}),
    );
    let reads = (0..199).map(read_call);
    let rig = rig(
        Api::OpenaiChat,
        [todo]
            .into_iter()
            .chain(reads)
            .chain([repeated_done_reply()]),
        3,
    );
    let ran = run_with_window(&rig, 28_000, &["read all of them"]);
    let events = ran.events();
    let shortened = events_of_type(&events, "compaction")
        .iter()
        .any(|one| one["phase"] == "finished");
    assert!(shortened, "{:?}", events_of_type(&events, "compaction"));
    let last = rig
        .server
        .generation_requests()
        .last()
        .unwrap()
        .decode()
        .unwrap()
        .to_string();
    for kept in [
        "The notes are being read.",
        "read the notes",
        "read all of them",
    ] {
        assert!(last.contains(kept), "`{kept}` is not in {last}");
    }
    // After the first archive every request fills at least half of the usable window.
    let first = events
        .iter()
        .position(|event| event["type"] == "compaction")
        .unwrap();
    let filled: Vec<_> = events_of_type(&events[first..], "window")
        .iter()
        .map(|one| one["tokens"].as_u64().unwrap())
        .collect();
    let least = *filled.iter().min().unwrap();
    assert!(least * 2 > 24_000, "{least} of 24,000: {filled:?}");
}

/// Ten rounds fill the window: it is archived now and then, not with every prompt.
#[test]
fn compaction_runs_at_most_once_in_five_prompts() {
    let answer = |number: usize| {
        Reply::text(format!(
            "Answer {number}. {}",
            "And so on, at some length. ".repeat(190)
        ))
    };
    let rig = rig(Api::OpenaiChat, (0..20).map(answer), 1);
    let mut archives = Vec::new();
    for number in 0..20 {
        let input = format!("question {number}");
        let more = if number == 0 {
            vec![input.as_str()]
        } else {
            vec!["-c", input.as_str()]
        };
        let ran = run_with_window(&rig, 28_000, &more);
        let started = events_of_type(&ran.events(), "compaction")
            .iter()
            .filter(|one| one["phase"] == "started")
            .count();
        archives.push(started);
    }
    for five in archives.windows(5) {
        assert!(five.iter().sum::<usize>() <= 1, "{archives:?}");
    }
}
