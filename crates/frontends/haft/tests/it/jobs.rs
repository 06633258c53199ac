//! Background runs, as their user sees them.

use std::io::Write;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use haft_testkit::{Reply, Script};
use haft_types::Api;
use serde_json::{Value, json};

use crate::rig::Rig;
use crate::screen::without_costs;

fn rig(replies: impl IntoIterator<Item = Reply>) -> Rig {
    Rig::new(Api::Anthropic, Script::turns(replies).unwrap())
}

/// Starts a job and returns its id.
fn start_job(rig: &Rig, arguments: &[&str]) -> String {
    let mut all = vec!["run", "--bg", "--permission-mode", "yolo"];
    all.extend(arguments);
    let ran = rig.run(&all);
    assert_eq!(ran.code(), 0, "{}", ran.stderr());
    ran.stdout().trim().to_owned()
}

fn show_job(rig: &Rig, id: &str) -> Value {
    rig.run(&["jobs", "show", id, "--json"]).json()
}

/// Waits for a condition that will hold eventually, however busy the machine is.
pub(crate) fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Like [`Rig::screen`], without costs.
fn screen(rig: &Rig, arguments: &[&str]) -> String {
    without_costs(&rig.screen(arguments))
}

/// A command that creates `begun` and runs until it is killed.
fn endless_command() -> Reply {
    Reply::call(
        "execute_command",
        json!({"command": "touch begun; sleep 600", "requires_approval": false}),
    )
}

#[test]
fn jobs_attach_prints_a_job_like_a_foreground_run() {
    let rig = rig([
        Reply::call("list_files", json!({"path": "."})),
        Reply::text("Nothing here."),
    ]);
    let id = start_job(&rig, &["what is here?"]);
    insta::assert_snapshot!(screen(&rig, &["jobs", "attach", &id]), @"
    Nothing here.
    -- errors
    sandbox: commands run without a sandbox: there is none in permission mode `yolo`
    • List .
    ");

    let job = show_job(&rig, &id[..4]);
    assert_eq!(
        (&job["state"], &job["task"]),
        (&json!("completed"), &json!("what is here?"))
    );
    assert_eq!(job["result"]["text"], "Nothing here.");
    assert_eq!(job["conversation_id"], rig.export()["id"]);
    assert_eq!(job["process"], Value::Null);

    insta::assert_snapshot!(screen(&rig, &["jobs", "logs", &id]), @"
    sandbox: commands run without a sandbox: there is none in permission mode `yolo`
    • List .
    Nothing here.
    ");
    insta::assert_snapshot!(screen(&rig, &["jobs", "list"]), @"
    ID  STATE  STARTED  TIME  COST  FOLDER  TASK
    ID  completed  TIME  DURATION  $COST  TEMPORARY  what is here?
    ");
    insta::assert_snapshot!(screen(&rig, &["jobs", "show", &id]), @"
    job  ID
    state  completed
    task  what is here?
    folder  PROJECT
    started  TIME UTC
    time  DURATION
    conversation  ID
    cost  $COST
    why  The model answered.

    Nothing here.
    ");
    let events = rig.run(&["jobs", "logs", &id, "--json"]).events();
    assert_eq!(
        (&events[0]["type"], &events.last().unwrap()["type"]),
        (&json!("conversation"), &json!("result"))
    );
    let listed = rig.run(&["jobs", "list", "--json"]).json();
    assert_eq!(listed, json!([job]));
}

#[test]
fn background_run_reads_piped_input() {
    let rig = rig([Reply::text("Three.")]);
    let mut command = rig.command(&["run", "--bg", "--output-format", "json", "count the lines"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a\nb\nc\n").unwrap();
    let started: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    let id = started["id"].as_str().unwrap();
    assert_eq!(
        started["job"], started["id"],
        "the former name is kept for one release"
    );
    assert_eq!(
        rig.run(&["jobs", "list", "--json"]).json()[0]["id"],
        started["id"]
    );
    assert_eq!(rig.run(&["jobs", "attach", id]).code(), 0);
    assert_eq!(started["conversation_id"], rig.export()["id"]);
    assert!(
        rig.server.generation_requests()[0]
            .decode()
            .unwrap()
            .last_message_contains("count the lines\n\n<stdin>\na\nb\nc\n</stdin>")
    );
}

#[test]
fn job_has_its_own_process_group_and_session() {
    let rig = rig([endless_command(), Reply::text("Done.")]);
    let id = start_job(&rig, &["wait"]);
    wait_until("the command begins", || {
        rig.project().join("begun").exists()
    });
    let job = show_job(&rig, &id);
    let process = job["process"].as_i64().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<_> = stat.rsplit(") ").next().unwrap().split(' ').collect();
    assert_eq!(
        (fields[2], fields[3]),
        (&*process.to_string(), &*process.to_string()),
        "group and session are its own"
    );
    assert_eq!(fields[4], "0", "and it has no terminal");
    assert_eq!(rig.run(&["jobs", "kill", &id]).code(), 0);
}

#[test]
fn jobs_kill_leaves_no_process_and_allows_resuming() {
    let rig = rig([endless_command(), Reply::text("Done after all.")]);
    let id = start_job(&rig, &["wait"]);
    wait_until("the command begins", || {
        rig.project().join("begun").exists()
    });
    assert_eq!(show_job(&rig, &id)["state"], "running");

    insta::assert_snapshot!(screen(&rig, &["jobs", "kill", &id]), @"ID ended (aborted)");
    wait_until("the command is gone with it", || {
        !has_process_in(&rig.project())
    });
    assert_eq!(rig.run(&["jobs", "attach", &id]).code(), 130);
    insta::assert_snapshot!(screen(&rig, &["jobs", "kill", &id]), @"ID was not running (aborted)");

    assert_eq!(rig.task(&["-c"]).result()["text"], "Done after all.");
}

#[test]
fn jobs_attach_names_the_command_to_resume_a_dead_job() {
    let rig = rig([endless_command(), Reply::text("Done after all.")]);
    let id = start_job(&rig, &["wait"]);
    wait_until("the command begins", || {
        rig.project().join("begun").exists()
    });
    let process = show_job(&rig, &id)["process"].as_i64().unwrap();
    std::process::Command::new("kill")
        .args(["-9", &process.to_string()])
        .status()
        .unwrap();
    wait_until("it is seen to be dead", || {
        show_job(&rig, &id)["state"] == "died"
    });
    let attached = rig.run(&["jobs", "attach", &id]);
    assert_eq!(attached.code(), 1);
    let conversation = rig.export()["id"].as_str().unwrap().to_owned();
    assert!(
        attached
            .stderr()
            .contains(&format!("haft run -r {}", &conversation[..8])),
        "{}",
        attached.stderr()
    );
}

#[test]
fn jobs_without_any_job_say_so() {
    let rig = rig([]);
    insta::assert_snapshot!(rig.screen(&["jobs", "list"]), @r#"No runs in the background yet. Start one with `haft run --bg "…"`."#);
    insta::assert_snapshot!(rig.screen(&["jobs", "show", "abc"]), @"
    -- errors
    haft: there is no job `abc`; `haft jobs list` shows them
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["jobs", "kill", "abc"]), @"
    -- errors
    haft: there is no job `abc`; `haft jobs list` shows them
    -- exit 2
    ");
}

#[test]
fn background_run_with_invalid_arguments_creates_no_job() {
    let rig = rig([]);
    insta::assert_snapshot!(rig.screen(&["run", "--bg"]), @"
    -- errors
    haft: what should the model do? Give a prompt, or pipe one in
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["run", "--bg", "-r", "nothing", "go on"]), @"
    -- errors
    haft: there is no conversation `nothing`; `haft conversations list --all` shows them
    -- exit 2
    ");
    insta::assert_snapshot!(rig.screen(&["run", "--bg", "-m", "no/model", "x"]), @"
    -- errors
    haft: `no/model`: no provider `no` is declared; declared are: …
    -- exit 2
    ");
    assert_eq!(rig.run(&["jobs", "list", "--json"]).json(), json!([]));
}

/// True if a process works in this folder.
pub(crate) fn has_process_in(folder: &Path) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter_map(|entry| std::fs::read_link(entry.path().join("cwd")).ok())
        .any(|cwd| cwd == folder)
}
