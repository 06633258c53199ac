//! Kills haft in every state of a turn, in a tool and in a compaction: the conversation resumes,
//! and nothing with effects happens twice.
//!
//! A state is recognized by its own system calls: strace kills haft at the first, the last and some
//! of the calls in between that a rehearsal made. To add a state, list in `kill_places` where it
//! can be interrupted.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use haft_engine::turn::TurnState;
use haft_testkit::{Reply, Script, When};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

use crate::jobs::{has_process_in, wait_until};
use crate::rig::{Rig, has_strace};

/// System calls that a state makes.
struct Place {
    /// The name of the call.
    call: &'static str,
    /// The file that the calls are about; `None` selects all calls.
    file: Option<PathBuf>,
    /// The positions at which haft is killed, as fractions of all calls.
    at: &'static [f64],
}

/// Returns the system calls at which a state can be interrupted.
fn kill_places(state: TurnState, rig: &Rig) -> Vec<Place> {
    let log = rig.home().join("data/conversations.db-wal");
    match state {
        // The user's prompt is stored.
        TurnState::New => vec![Place {
            call: "pwrite64",
            file: Some(log),
            at: &[0.0, 0.02],
        }],
        // The project's documents are checked.
        TurnState::Building => {
            vec![Place {
                call: "statx",
                file: Some(rig.project().join("AGENTS.md")),
                at: &[0.0, 0.3, 0.6, 1.0],
            }]
        }
        TurnState::Requesting => vec![
            Place {
                call: "sendto",
                file: None,
                at: &[0.0, 1.0],
            },
            Place {
                call: "recvfrom",
                file: None,
                at: &[0.0, 0.15, 0.3],
            },
        ],
        // The project is scanned before and after a command; the start and the result of the
        // command are stored.
        TurnState::Running => vec![
            Place {
                call: "statx",
                file: Some(rig.project().join("tracked.txt")),
                at: &[0.0, 0.5, 1.0],
            },
            Place {
                call: "pwrite64",
                file: Some(log),
                at: &[0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8],
            },
        ],
        // The reply is stored, but not yet that it ended the turn.
        TurnState::Concluding => vec![Place {
            call: "pwrite64",
            file: Some(log),
            at: &[0.9, 0.95],
        }],
        // The result is printed.
        TurnState::Ended => vec![Place {
            call: "write",
            file: Some(event_log_path(rig)),
            at: &[1.0],
        }],
    }
}

fn event_log_path(rig: &Rig) -> PathBuf {
    rig.home().join("events.jsonl")
}

/// A task with a read, a command and a written file, in a project with documents.
fn prepare_task() -> Rig {
    let command = json!({"command": "echo ran >> effects.txt", "requires_approval": false});
    let replies = [
        // Replies are selected by the number of assistant messages before; the acknowledged
        // document counts as one.
        Reply::text("never given"),
        Reply::call("list_files", json!({"path": "."})),
        Reply::call("execute_command", command),
        Reply::call(
            "write_to_file",
            json!({"path": "new.txt", "content": "whole\n"}),
        ),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::turns(replies).unwrap());
    rig.write("AGENTS.md", "Be brief.\n");
    rig.write("tracked.txt", "tracked\n");
    assert_eq!(rig.run(&["trust"]).code(), 0);
    // The database exists: everything written from here on belongs to the conversation.
    assert_eq!(rig.run(&["conversations", "list"]).code(), 0);
    rig
}

const TASK: [&str; 6] = [
    "run",
    "--output-format",
    "stream-json",
    "--permission-mode",
    "yolo",
    "do it",
];

/// Runs the task under strace and returns its exit status.
fn run_under_strace(rig: &Rig, place: &Place, options: &[&str]) -> std::process::ExitStatus {
    let trace = format!("trace={}", place.call);
    let mut all = vec!["-e", &trace];
    if let Some(file) = &place.file {
        // Matches both the path and files that are already open.
        all.extend(["-P", file.to_str().unwrap()]);
    }
    all.extend(options);
    let mut command = rig.command_under_strace(&all, &TASK);
    command
        .stdout(File::create(event_log_path(rig)).unwrap())
        .status()
        .unwrap()
}

/// Returns how often the busiest thread makes these calls; strace counts each thread separately.
fn count_calls_in_rehearsal(place: &Place, rig: &Rig) -> usize {
    let log = rig.home().join("strace.log");
    assert!(run_under_strace(rig, place, &["-o", log.to_str().unwrap()]).success());
    let text = std::fs::read_to_string(log).unwrap();
    let mut threads: BTreeMap<&str, usize> = BTreeMap::new();
    for line in text
        .lines()
        .filter(|line| !line.contains("resumed>") && !line.contains("+++") && !line.contains("---"))
    {
        *threads.entry(line.split(' ').next().unwrap()).or_default() += 1;
    }
    threads.into_values().max().unwrap_or(0)
}

#[derive(Debug, Default)]
struct Tally {
    killed: usize,
    came_to_its_end: usize,
    nothing_stored: usize,
    uncertain: usize,
}

#[test]
fn kill_in_any_state_loses_and_repeats_nothing() {
    if !has_strace() {
        eprintln!("skipped: strace cannot be used here, so nobody can kill at the right moment");
        return;
    }
    let mut tally = Tally::default();
    for state in TurnState::all() {
        let count = kill_places(state, &prepare_task()).len();
        for index in 0..count {
            let rehearsal = prepare_task();
            let place = &kill_places(state, &rehearsal)[index];
            let most = count_calls_in_rehearsal(place, &rehearsal);
            assert!(
                most > 0,
                "{state:?} makes no `{}` on {:?}",
                place.call,
                place.file
            );
            for part in place.at {
                let nth = 1 + ((most - 1) as f64 * part) as usize;
                let rig = prepare_task();
                let what = format!("{state:?}, `{}` {nth} of {most}", place.call);
                kill_at(
                    &rig,
                    &kill_places(state, &rig)[index],
                    nth,
                    &what,
                    &mut tally,
                );
            }
        }
    }
    eprintln!("{tally:?}");
    assert!(tally.killed >= 15 && tally.uncertain > 0, "{tally:?}");
}

fn kill_at(rig: &Rig, place: &Place, nth: usize, what: &str, tally: &mut Tally) {
    let inject = format!("inject={}:signal=SIGKILL:when={nth}", place.call);
    let ended = run_under_strace(rig, place, &["-o", "/dev/null", "-e", &inject]);
    // A run may make one call less in that thread than the rehearsal.
    if ended.success() {
        tally.came_to_its_end += 1;
    } else {
        assert_eq!(ended.signal(), Some(9), "{what}: {ended:?}");
        tally.killed += 1;
    }
    let shown = shown_results(rig);
    assert_resumes(rig, what, tally);
    let exported = rig.export()["messages"].to_string();
    for words in shown {
        assert!(
            exported.contains(&words),
            "{what}: `{words}` was shown and is not stored"
        );
    }
}

/// Returns the ids of results that were shown before the kill: they must be stored.
fn shown_results(rig: &Rig) -> Vec<String> {
    let text = std::fs::read_to_string(event_log_path(rig)).unwrap_or_default();
    let events = text
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let results = events.filter(|event| event["type"] == "tool_result");
    results
        .map(|event| event["id"].as_str().unwrap().to_owned())
        .collect()
}

/// Resumes the run to its end, and asserts that everything happened at most once and that uncertain
/// calls were reported.
fn assert_resumes(rig: &Rig, what: &str, tally: &mut Tally) {
    let mut ran = rig.task(&["-c"]);
    if ran.code() == 2 {
        // Killed before anything was stored: there is nothing to resume, and nothing was promised.
        tally.nothing_stored += 1;
        assert!(!rig.project().join("effects.txt").exists(), "{what}");
        ran = rig.task(&["do it"]);
    }
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("Done.")),
        "{what}: {}",
        ran.stderr()
    );
    assert!(
        rig.server.refusals().is_empty(),
        "{what}: {:?}",
        rig.server.refusals()
    );

    let messages = rig.export()["messages"].clone();
    let results = |tool: &str| -> Vec<Value> {
        let parts = messages
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|message| message["content"].as_array().into_iter().flatten());
        parts
            .filter(|part| part["type"] == "tool_result" && part["name"] == tool)
            .cloned()
            .collect()
    };
    let effects = std::fs::read_to_string(rig.project().join("effects.txt")).unwrap_or_default();
    for tool in ["list_files", "execute_command", "write_to_file"] {
        let results = results(tool);
        assert_eq!(results.len(), 1, "{what}: {tool} has one result");
        let done = results[0]["status"] == "success";
        if !done {
            assert_ne!(tool, "list_files", "{what}: what only reads is done again");
            assert!(
                results[0]["text"].as_str().unwrap().contains("uncertain"),
                "{what}: {}",
                results[0]
            );
            tally.uncertain += 1;
        }
        match tool {
            "execute_command" => {
                assert!(
                    effects == "ran\n" || (!done && effects.is_empty()),
                    "{what}: {effects:?}, done: {done}"
                );
            }
            "write_to_file" => {
                let new = std::fs::read_to_string(rig.project().join("new.txt")).ok();
                assert!(
                    new.as_deref() == Some("whole\n") || (!done && new.is_none()),
                    "{what}: {new:?}"
                );
            }
            _ => {}
        }
    }
}

/// Starts a run, waits for `sign`, and kills the run.
fn kill_when(rig: &Rig, arguments: &[&str], sign: impl Fn() -> bool) {
    let mut run = rig.command(arguments);
    let mut child = run
        .stdout(File::create(event_log_path(rig)).unwrap())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while !sign() {
        assert!(
            begun.elapsed() < Duration::from_mins(1),
            "the sign never came"
        );
        assert!(
            child.try_wait().unwrap().is_none(),
            "the run ended before the sign came"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn kill_in_a_tool_is_reported_and_the_tool_not_rerun() {
    let command = "echo ran >> effects.txt; touch begun; sleep 600";
    let replies = [
        Reply::call(
            "execute_command",
            json!({"command": command, "requires_approval": false}),
        ),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::turns(replies).unwrap());
    kill_when(&rig, &TASK, || rig.project().join("begun").exists());
    assert_eq!(rig.task(&["-c"]).result()["text"], "Done.");
    assert_eq!(
        std::fs::read_to_string(rig.project().join("effects.txt")).unwrap(),
        "ran\n"
    );
    let told = rig.server.generation_requests()[1].decode().unwrap();
    assert!(told.last_message_contains("uncertain whether it took effect"));
    wait_until("nothing of it is left", || !has_process_in(&rig.project()));
}

#[test]
fn kill_in_a_compaction_leaves_the_conversation_unchanged() {
    let summary = |text: &str| {
        let when = When {
            last_contains: Some("The session to be archived".into()),
            ..When::default()
        };
        Reply::summary(text).when(when)
    };
    let slow = Reply {
        delay_ms: 600_000,
        times: Some(1),
        ..summary("Never seen.")
    };
    let full = Usage {
        input: 170_000,
        output: 10,
        ..Usage::default()
    };
    let replies = [
        slow,
        summary("Two rounds of counting."),
        Reply::text("One."),
        Reply::text("Two."),
        Reply::text("Three.").with_usage(full),
        Reply::text("Done."),
    ];
    let rig = Rig::new(Api::Anthropic, Script::replies(replies).unwrap());
    let run = [
        "run",
        "--output-format",
        "stream-json",
        "--set",
        "context.keep_rounds=1",
        "--set",
        "context.compact_frees=0.000001",
    ];
    for more in [&["one"][..], &["-c", "two"], &["-c", "three"]] {
        let ran = rig.run(&[&run, more].concat());
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
    }
    let before = rig.export()["messages"].as_array().unwrap().clone();
    let last = [&run[..], &["-c", "four"]].concat();
    kill_when(&rig, &last, || rig.server.generation_requests().len() == 4);
    let after = rig.export()["messages"].as_array().unwrap().clone();
    assert_eq!(after[..before.len()], before[..], "nothing is lost");

    // The prompt was not stored yet, so it is sent again.
    let ran = rig.run(&last);
    assert_eq!(
        (ran.code(), ran.result()["text"].clone()),
        (0, json!("Done.")),
        "{}",
        ran.stderr()
    );
    let messages = rig.export()["messages"].as_array().unwrap().clone();
    assert_eq!(
        messages
            .iter()
            .filter(|message| message["content"] == "four")
            .count(),
        1
    );
    assert_eq!(
        messages
            .iter()
            .filter(|message| message["role"] == "summary")
            .count(),
        1
    );
}
