use serde_json::json;

use super::*;
use crate::LimitsConfig;
use crate::files::read_file;
use crate::testing::{Bench, running};

fn tool() -> impl Tool {
    define_tool(running(LimitsConfig::default()))
}

fn start_arguments(command: &str) -> Value {
    json!({"action": "start", "command": command})
}

/// Returns the arguments that wait for the end of the task.
fn wait_arguments(id: &str) -> Value {
    json!({"action": "monitor", "task_id": id, "timeout": 600})
}

#[tokio::test]
async fn background_task_runs_while_the_model_continues() {
    let bench = Bench::new();
    let tool = tool();
    let line = "echo begun; echo err >&2; while [ ! -e go ]; do sleep 0.01; done; echo over";
    let started = bench.ok(&tool, start_arguments(line)).await.envelope;
    assert!(
        started.text.starts_with("Task t1 was started."),
        "{}",
        started.text
    );
    let file = started.data["output"].as_str().unwrap().to_owned();
    loop {
        let text = bench
            .ok(&tool, json!({"action": "monitor", "task_id": "t1"}))
            .await
            .envelope
            .text;
        assert!(text.contains("has been running for"), "{text}");
        if text.ends_with("--- output ---\nbegun\nerr") {
            break;
        }
        tokio::task::yield_now().await;
    }
    bench.write("go", "");
    let ended = bench.ok(&tool, wait_arguments("t1")).await.envelope;
    assert!(
        ended.text.contains("finished: exit code 0 after"),
        "{}",
        ended.text
    );
    assert_eq!(
        (
            &ended.data["state"],
            &ended.data["exit_code"],
            &ended.data["stdout"]
        ),
        (&json!("finished"), &json!(0), &json!("begun\nerr\nover\n"))
    );
    let read = bench
        .ok(&read_file::define_tool(), json!({"path": file}))
        .await
        .envelope
        .text;
    assert!(read.contains("3\tover"), "{read}");
}

#[tokio::test]
async fn monitor_reports_a_failure_with_the_last_lines() {
    let bench = Bench::new();
    let tool = tool();
    bench.ok(&tool, start_arguments("seq 1 500; exit 3")).await;
    let ended = bench
        .ok(
            &tool,
            json!({"action": "monitor", "task_id": "t1", "timeout": 600, "lines": 2}),
        )
        .await
        .envelope;
    assert!(
        ended.text.contains("failed: exit code 3 after"),
        "{}",
        ended.text
    );
    assert!(
        ended
            .text
            .contains("--- output, after 498 earlier lines ---\n499\n500\n[All 500 lines are in `"),
        "{}",
        ended.text
    );
    assert_eq!(
        (&ended.data["state"], &ended.data["stdout_lines"]),
        (&json!("failed"), &json!(500))
    );
}

#[tokio::test]
async fn background_task_can_be_killed_listed_and_cleaned_up() {
    let bench = Bench::new();
    let tool = tool();
    assert_eq!(
        bench
            .ok(&tool, json!({"action": "list"}))
            .await
            .envelope
            .text,
        "There are no tasks."
    );
    bench.ok(&tool, start_arguments("sleep 1000")).await;
    bench.ok(&tool, start_arguments("true")).await;
    bench.ok(&tool, wait_arguments("t2")).await;
    let killed = bench
        .ok(&tool, json!({"action": "kill", "task_id": "t1"}))
        .await
        .envelope;
    assert!(
        killed.text.contains("t1 (`sleep 1000`) was killed after"),
        "{}",
        killed.text
    );
    bench.ok(&tool, start_arguments("sleep 1000")).await;
    let list = bench.ok(&tool, json!({"action": "list"})).await.envelope;
    let states: Vec<_> = list.data["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["state"].clone())
        .collect();
    assert_eq!(states, ["killed", "finished", "running"]);
    assert_eq!(list.text.lines().count(), 3);
    let cleaned = bench.ok(&tool, json!({"action": "cleanup"})).await.envelope;
    assert_eq!(cleaned.data["removed"], json!(["t1", "t2"]));
    assert_eq!(
        std::fs::read_dir(&bench.workspace().spill).unwrap().count(),
        1,
        "only what runs has a file"
    );
    assert_eq!(bench.err(&tool, wait_arguments("t1")).await.0, "not_found");
}

#[tokio::test]
async fn background_task_obeys_its_timeout() {
    let bench = Bench::new();
    let tool = tool();
    bench
        .ok(
            &tool,
            json!({"action": "start", "command": "sleep 1000", "timeout": 1}),
        )
        .await;
    let ended = bench.ok(&tool, wait_arguments("t1")).await.envelope;
    assert!(
        ended.text.contains("failed: its time was over after"),
        "{}",
        ended.text
    );
    assert_eq!(ended.data["timed_out"], true);
}

#[tokio::test]
async fn background_task_limit_counts_only_running_tasks() {
    let tool = define_tool(running(LimitsConfig {
        background_tasks: 1,
        ..LimitsConfig::default()
    }));
    let bench = Bench::new();
    bench.ok(&tool, start_arguments("true")).await;
    bench.ok(&tool, wait_arguments("t1")).await;
    bench.ok(&tool, start_arguments("sleep 1000")).await;
    let (code, message) = bench.err(&tool, start_arguments("touch made")).await;
    assert_eq!(
        (code.as_str(), message.contains("t2; wait for one to end")),
        ("too_many", true),
        "{message}"
    );
    assert!(bench.files().is_empty());
}

#[tokio::test]
async fn background_task_rejects_invalid_arguments() {
    let bench = Bench::new();
    let tool = tool();
    for wrong in [
        json!({"action": "start"}),
        json!({"action": "start", "command": ""}),
        json!({"action": "start", "command": "touch made", "timeout": 0}),
        json!({"action": "stop", "task_id": "t1"}),
        json!({"action": "kill"}),
        json!({"action": "monitor"}),
    ] {
        assert_eq!(bench.err(&tool, wrong).await.0, "invalid_arguments");
    }
    assert_eq!(
        bench
            .err(
                &tool,
                json!({"action": "start", "command": "true", "cwd": "nope"})
            )
            .await
            .0,
        "not_a_folder"
    );
    assert_eq!(
        bench
            .err(&tool, json!({"action": "kill", "task_id": "t1"}))
            .await
            .0,
        "not_found"
    );
    assert!(bench.files().is_empty());
}
