//! Background tasks and sessions: announced once, shown while they run, and killed when haft ends.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use haft_testkit::{Reply, Script, ScriptCall, Seen, SeenRole};
use haft_types::Api;
use rustix::process::{Pid, Signal, getuid, kill_process};
use serde_json::{Value, json};

use crate::rig::{Ran, Rig};
use crate::sandbox::has_namespaces;

const NOTICE: &str = "Background tasks have ended";

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::OpenaiChat, Script::turns(replies).unwrap())
}

fn background_call(arguments: Value) -> Reply {
    Reply::call("background_task", arguments)
}

fn start_task_call(command: &str) -> Reply {
    background_call(json!({"action": "start", "command": command}))
}

fn wait_for_task_call(id: &str) -> Reply {
    background_call(json!({"action": "monitor", "task_id": id, "timeout": 600}))
}

/// Returns the requests as the model understood them.
fn seen_requests(rig: &Rig) -> Vec<Seen> {
    rig.server
        .generation_requests()
        .iter()
        .map(|request| request.decode().unwrap())
        .collect()
}

/// Returns the notices in a request.
fn notices(request: &Seen) -> Vec<String> {
    let texts = request.texts(SeenRole::User);
    texts
        .into_iter()
        .filter(|text| text.contains(NOTICE))
        .map(str::to_owned)
        .collect()
}

/// Returns the id and phase of each background task event.
fn task_phases(ran: &Ran) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let events = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "background_task");
    events
        .map(|event| (text(&event["id"]), text(&event["phase"])))
        .collect()
}

#[test]
fn task_end_is_announced_once_after_the_newest_block() {
    let rig = rig([
        Reply::calls([
            ScriptCall::new(
                "background_task",
                json!({"action": "start", "command": "echo one"}),
            ),
            ScriptCall::new(
                "background_task",
                json!({"action": "start", "command": "echo two >&2; exit 4"}),
            ),
        ]),
        wait_for_task_call("t1"),
        wait_for_task_call("t2"),
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Done."),
        Reply::text("Again."),
    ]);
    let ran = rig.task(&["run two things"]);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    rig.task(&["-c", "and now?"]);
    let requests = seen_requests(&rig);
    // The notice is sent once, and keeps its position from then on.
    let told: Vec<_> = requests
        .iter()
        .map(|request| notices(request).concat())
        .collect();
    let last = told.last().unwrap();
    assert!(told[0].is_empty());
    assert_eq!(
        last.matches("- t1 (`echo one`) finished: exit code 0")
            .count(),
        1,
        "{last}"
    );
    assert_eq!(
        last.matches("- t2 (`echo two >&2; exit 4`) failed: exit code 4")
            .count(),
        1,
        "{last}"
    );
    assert!(
        last.contains("\n    two\n"),
        "the end of its output: {last}"
    );
    // The second round compresses the results of the first.
    for (before, after) in requests.iter().zip(&requests[1..5]) {
        assert_eq!(
            after.messages[..before.messages.len()],
            before.messages,
            "only appended"
        );
    }
    let first = requests
        .iter()
        .find(|request| !notices(request).is_empty())
        .unwrap();
    let [.., block, notice] = &first.messages[..] else {
        panic!("{first:?}")
    };
    assert_eq!((block.role, notice.role), (SeenRole::Tool, SeenRole::User));
    let mut phases = task_phases(&ran);
    phases.sort();
    let phase = |id: &str, phase: &str| (id.to_owned(), phase.to_owned());
    assert_eq!(
        phases,
        [
            phase("t1", "finished"),
            phase("t1", "started"),
            phase("t2", "failed"),
            phase("t2", "started")
        ]
    );
    assert_eq!(rig.server.refusals(), [], "every request is well formed");
    let rounds: Vec<_> = ran
        .events()
        .iter()
        .filter_map(|event| event["round"].as_u64())
        .collect();
    assert!(
        rounds.iter().all(|round| *round == 1),
        "a notice opens no round"
    );
}

#[test]
fn task_ends_are_announced_in_messages_of_at_most_64() {
    let started = |_| {
        ScriptCall::new(
            "background_task",
            json!({"action": "start", "command": "true"}),
        )
    };
    // Sixteen tasks can run at once, so each batch waits for the one before.
    let mut replies = Vec::new();
    for batch in 0..5 {
        replies.push(Reply::calls((0..14).map(started)));
        let waits = (1..=14).map(|number| {
            let id = format!("t{}", batch * 14 + number);
            ScriptCall::new(
                "background_task",
                json!({"action": "monitor", "task_id": id, "timeout": 600}),
            )
        });
        replies.push(Reply::calls(waits));
    }
    replies.push(Reply::text("Done."));
    let rig = rig(replies);
    assert_eq!(rig.task(&["go"]).code(), 0);
    let last = seen_requests(&rig).pop().unwrap();
    let mut announced = Vec::new();
    for notice in notices(&last) {
        let lines: Vec<_> = notice
            .lines()
            .filter(|line| line.starts_with("- t"))
            .collect();
        assert!(lines.len() <= 64);
        announced.extend(
            lines
                .iter()
                .map(|line| line[3..].split(' ').next().unwrap().parse::<u32>().unwrap()),
        );
    }
    announced.sort_unstable();
    assert_eq!(announced, (1..=70).collect::<Vec<_>>(), "each once");
}

#[test]
fn running_task_is_killed_at_the_end_and_announced_later() {
    let rig = rig([
        start_task_call("echo up; sleep 1000"),
        Reply::text("It runs."),
        Reply::text("It does not."),
    ]);
    let ran = rig.run(&["run", "--permission-mode", "yolo", "start it"]);
    assert_eq!((ran.code(), ran.stdout().as_str()), (0, "It runs.\n"));
    assert!(
        ran.stderr()
            .contains("haft: background task t1 (`echo up; sleep 1000`) was stopped after"),
        "{}",
        ran.stderr()
    );
    assert_eq!(processes_in(&rig.project()), [0; 0]);
    rig.task(&["-c", "is it up?"]);
    let last = seen_requests(&rig).pop().unwrap();
    let told = notices(&last);
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("t1") && told[0].contains("still ran when the run was over"),
        "{told:?}"
    );
}

#[test]
fn session_lives_across_calls_and_ends_with_the_run() {
    let say = |input: &str| {
        Reply::call(
            "session_interactive",
            json!({"session_id": "s1", "input": input, "timeout": 120}),
        )
    };
    let rig = rig([
        Reply::call(
            "session_start",
            json!({"command": "bash --norc", "timeout": 120}),
        ),
        say("x=41"),
        say("echo $((x + 1))"),
        Reply::text("42."),
        say("echo still there?"),
        Reply::text("No."),
    ]);
    let ran = rig.task(&["count"]);
    let results: Vec<_> = ran
        .events()
        .into_iter()
        .filter(|event| event["type"] == "tool_result")
        .collect();
    assert!(
        results[2]["text"].as_str().unwrap().contains("\n42\n"),
        "{}",
        results[2]
    );
    assert_eq!(processes_in(&rig.project()), [0; 0]);
    let again = rig.task(&["-c", "go on"]).events();
    let result = again
        .iter()
        .find(|event| event["type"] == "tool_result")
        .unwrap();
    assert_eq!(result["error"]["code"], "not_found", "{result}");
}

/// Runs a task whose command waits for the file `go`, and makes the file once output of the command
/// was shown.
fn events_of_shown_command(rig: &Rig, prompt: &str) -> Vec<Value> {
    let arguments = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        "yolo",
        prompt,
    ];
    let mut child = rig
        .command(&arguments)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut events: Vec<Value> = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        events.push(serde_json::from_str(&line.unwrap()).unwrap());
        if events.last().unwrap()["type"] == "tool_progress" {
            rig.write("go", "");
        }
    }
    assert!(child.wait().unwrap().success(), "{events:?}");
    events
}

#[test]
fn tool_progress_is_an_event_outside_the_conversation() {
    let line = "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over";
    let rig = rig([
        Reply::call(
            "execute_command",
            json!({"command": line, "requires_approval": false, "timeout": 3600}),
        ),
        Reply::text("Done."),
    ]);
    let events = events_of_shown_command(&rig, "wait");
    let at = |kind: &str| events.iter().position(|event| event["type"] == kind);
    let progress = at("tool_progress").unwrap();
    assert!(progress < at("tool_result").unwrap());
    assert_eq!(
        (&events[progress]["name"], &events[progress]["text"]),
        (&json!("execute_command"), &json!("begun\n"))
    );
    let seen = seen_requests(&rig).pop().unwrap();
    assert_eq!(seen.messages.len(), 5, "no part of the conversation");
}

/// Starts an orphaned process in its own session that ignores polite signals, and one that keeps
/// starting others. Both run once the file `ready` exists.
const DAEMONS: &str = r#"trap "" TERM HUP INT
(setsid sh -c 'trap "" TERM HUP INT; touch daemon; while :; do sleep 1; done' &)
(setsid sh -c 'trap "" TERM; touch forker; while :; do sleep 0.02; (setsid sleep 1000 &); done' &)
while [ ! -e daemon ] || [ ! -e forker ]; do sleep 0.01; done
touch ready
"#;

/// The three tools that run a command, each with its daemons in its own folder; the last command
/// never ends.
fn calls_with_daemons() -> [Reply; 4] {
    [
        background_call(
            json!({"action": "start", "cwd": "task", "command": format!("{DAEMONS}sleep 1000")}),
        ),
        Reply::call(
            "session_start",
            json!({"cwd": "session", "command": format!("{DAEMONS}read never"), "timeout": 120}),
        ),
        Reply::call(
            "execute_command",
            json!({"cwd": "plain", "command": format!("{DAEMONS}sleep 1000"), "requires_approval": false}),
        ),
        Reply::text("Nothing of it is left."),
    ]
}

/// Returns the processes whose working folder is `folder` or below it.
fn processes_in(folder: &Path) -> Vec<i32> {
    let entries = fs::read_dir("/proc").unwrap();
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let runs_there = |pid: &i32| {
        let alive = fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
            stat.rsplit_once(')')
                .is_some_and(|(_, rest)| !rest.starts_with(" Z"))
        });
        alive && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(folder))
    };
    pids.filter(runs_there).collect()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(
            started.elapsed() < Duration::from_mins(2),
            "waited in vain: {what}"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn kill_or_interrupt_ends_all_processes_of_haft() {
    for signal in [Signal::KILL, Signal::INT] {
        for mode in ["yolo", "auto"] {
            assert_processes_end(signal, mode, false);
            if getuid().is_root() {
                assert_processes_end(signal, mode, true);
            }
        }
    }
}

fn assert_processes_end(signal: Signal, mode: &str, nobody: bool) {
    let rig = rig(calls_with_daemons());
    // In a sandbox this mode asks nothing; without one each command would need approval.
    if mode == "auto" && !has_namespaces(&rig) {
        return;
    }
    for folder in ["task", "session", "plain"] {
        fs::create_dir(rig.project().join(folder)).unwrap();
    }
    let arguments = [
        "run",
        "--output-format",
        "stream-json",
        "--permission-mode",
        mode,
        "run them",
    ];
    let (_copy, mut command) = if nobody {
        let (copy, command) = rig.command_as_nobody(&arguments);
        (Some(copy), command)
    } else {
        (None, rig.command(&arguments))
    };
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ready = |folder: &str| rig.project().join(folder).join("ready").exists();
    wait_until("daemons", || {
        assert_eq!(child.try_wait().unwrap(), None, "haft ended too early");
        ["task", "session", "plain"]
            .iter()
            .all(|folder| ready(folder))
    });
    for folder in ["task", "session", "plain"] {
        assert!(
            processes_in(&rig.project().join(folder)).len() > 2,
            "{folder}"
        );
    }
    kill_process(Pid::from_child(&child), signal).unwrap();
    let status = child.wait().unwrap();
    if signal == Signal::INT {
        assert_eq!(status.code(), Some(130));
        assert_eq!(processes_in(&rig.project()), [0; 0], "gone before haft is");
    }
    wait_until("nobody", || processes_in(&rig.project()).is_empty());

    if signal == Signal::KILL && !nobody {
        let ran = rig.task(&["-c"]);
        assert_eq!(ran.code(), 0, "{}", ran.stderr());
        assert_eq!(task_phases(&ran), [("t1".to_owned(), "lost".to_owned())]);
        let last = seen_requests(&rig).pop().unwrap();
        let told = notices(&last);
        assert_eq!(told.len(), 1);
        assert!(
            told[0].contains("- t1 (") && told[0].contains("was lost"),
            "{told:?}"
        );
        assert_eq!(
            last.messages.last().unwrap().role,
            SeenRole::User,
            "after the block"
        );
        rig.task(&["-c", "and now?"]);
        assert_eq!(
            notices(&seen_requests(&rig).pop().unwrap()).len(),
            1,
            "announced once"
        );
    }
}

#[test]
fn secrets_are_masked_in_progress_and_announcements() {
    let key = "ghp_a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2a1B2";
    let line = format!("echo {key}; exit 1");
    let slow = format!("echo {key}; while [ ! -e go ]; do sleep 0.05; done");
    let rig = rig([
        start_task_call(&line),
        wait_for_task_call("t1"),
        Reply::call(
            "execute_command",
            json!({"command": slow, "requires_approval": false, "timeout": 3600}),
        ),
        Reply::text("Done."),
    ]);
    let shown = events_of_shown_command(&rig, "go");
    let shown: Vec<_> = shown
        .iter()
        .filter(|event| event["type"] == "background_task" || event["type"] == "tool_progress")
        .map(Value::to_string)
        .collect();
    assert!(shown.len() >= 3, "{shown:?}");
    assert!(!shown.concat().contains(key), "{shown:?}");
    let told = notices(&seen_requests(&rig).pop().unwrap()).concat();
    assert!(told.contains("t1") && !told.contains(key), "{told}");
}
