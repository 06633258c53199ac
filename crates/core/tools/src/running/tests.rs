use super::*;
use crate::testing::{Bench, running};
use haft_sandbox::TerminalSize;
use haft_types::TaskPhase;
use serde_json::json;

const ON: fn() -> LimitsConfig = LimitsConfig::default;

fn checked_line(bench: &Bench, text: &str) -> shell::CommandLine {
    shell::CommandLine::from_arguments(&bench.context, &running(ON()), text.to_owned(), None, None)
        .unwrap()
}

fn start_task(running: &Running, bench: &Bench, text: &str) -> Arc<Task> {
    let Running {
        supervisor,
        limits,
        tasks,
        ..
    } = running;
    tasks
        .start_task(
            supervisor,
            limits,
            &bench.context,
            checked_line(bench, text),
            std::time::Duration::MAX,
        )
        .unwrap()
}

fn report_ids(reports: &[TaskReport]) -> Vec<&str> {
    reports.iter().map(|report| report.id.as_str()).collect()
}

#[tokio::test]
async fn take_ended_announces_each_end_once_in_order_up_to_the_limit() {
    let bench = Bench::new();
    let running = running(ON());
    let tasks: Vec<_> = ["true", "exit 3", "true"]
        .map(|command| start_task(&running, &bench, command))
        .into();
    for task in &tasks {
        task.wait_for_end().await.unwrap();
    }
    let still = start_task(&running, &bench, "sleep 1000");
    assert_eq!(report_ids(&running.take_ended(2)), ["t1", "t2"]);
    assert_eq!(report_ids(&running.take_ended(2)), ["t3"]);
    assert_eq!(running.take_ended(2), []);
    running.tasks.kill(&still).await;
    assert_eq!(running.take_ended(2), [], "the model killed it and knows");
}

#[tokio::test]
async fn changes_report_each_start_and_end_once() {
    let bench = Bench::new();
    let running = running(ON());
    let quick = start_task(&running, &bench, "exit 3");
    let slow = start_task(&running, &bench, "sleep 1000");
    quick.wait_for_end().await.unwrap();
    let phases = |running: &Running| -> Vec<_> {
        running
            .take_changes()
            .into_iter()
            .map(|report| (report.id, report.phase, report.exit_code))
            .collect()
    };
    let phase = |id: &str, phase, code| (id.to_owned(), phase, code);
    assert_eq!(
        phases(&running),
        [
            phase("t1", TaskPhase::Started, None),
            phase("t1", TaskPhase::Failed, Some(3)),
            phase("t2", TaskPhase::Started, None)
        ]
    );
    assert_eq!(phases(&running), []);
    running.end_all().await;
    assert_eq!(phases(&running), [phase("t2", TaskPhase::Killed, None)]);
    assert!(
        slow.report()
            .words
            .contains("still ran when the run was over"),
        "{:?}",
        slow.report()
    );
}

#[tokio::test]
async fn end_all_ends_and_reports_everything_at_the_end_of_a_run() {
    let bench = Bench::new();
    let running = running(ON());
    start_task(&running, &bench, "true")
        .wait_for_end()
        .await
        .unwrap();
    let slow = start_task(&running, &bench, "echo begun; sleep 1000");
    let Running {
        supervisor,
        limits,
        sessions,
        ..
    } = running.as_ref();
    let session = sessions
        .open_session(
            supervisor,
            limits,
            &bench.context,
            checked_line(&bench, "cat"),
            TerminalSize::default(),
        )
        .unwrap();
    let reports = running.end_all().await;
    assert_eq!(report_ids(&reports), ["t1", "t2"]);
    assert!(slow.ending().is_some() && session.terminal.ending().is_some());
    assert_eq!(reports[1].phase, TaskPhase::Killed);

    // A later process learns of the reported ends.
    let later = crate::testing::running(ON());
    let started = |id: &str| {
        Envelope::success("").with_data(
            json!({"action": "start", "task_id": id, "command": "c", "output": "/nowhere"}),
        )
    };
    for id in ["t1", "t2", "t3"] {
        later.restore_result("background_task", &started(id));
    }
    later.restore_ended(reports.clone());
    let told = later.take_ended(64);
    assert_eq!(told[..2], reports);
    assert_eq!(
        (told[2].id.as_str(), told[2].phase, &told[2].output),
        ("t3", TaskPhase::Lost, &None)
    );
    assert_eq!(
        start_task(&later, &bench, "true").id,
        "t4",
        "no id is used twice"
    );
}

#[test]
fn remember_restores_the_tasks_the_model_knows() {
    let running = running(ON());
    let data = |data| Envelope::success("").with_data(data);
    for id in 1..=5 {
        let started = json!({"action": "start", "task_id": format!("t{id}"), "command": "c"});
        running.restore_result("background_task", &data(started));
    }
    running.restore_result(
        "background_task",
        &data(json!({"action": "monitor", "task_id": "t1"})),
    );
    running.restore_result(
        "background_task",
        &data(json!({"action": "kill", "task_id": "t2"})),
    );
    running.restore_result(
        "background_task",
        &data(json!({"action": "cleanup", "removed": ["t3"]})),
    );
    running.restore_announced("t4");
    running.restore_result("background_task", &Envelope::failure("too_many", "no"));
    running.restore_result(
        "execute_command",
        &data(json!({"action": "start", "task_id": "t9"})),
    );
    assert_eq!(report_ids(&running.take_ended(64)), ["t1", "t5"]);
}

#[test]
fn announcement_is_one_message() {
    let report = |id: &str, phase, words: &str, last_lines: &str| TaskReport {
        id: id.into(),
        command: "make\nmake test".into(),
        phase,
        exit_code: None,
        output: (id == "t1").then(|| "/spill/output.log".into()),
        words: words.into(),
        last_lines: last_lines.into(),
    };
    let reports = [
        report(
            "t1",
            TaskPhase::Finished,
            "finished: exit code 0 after 3 s",
            "",
        ),
        report(
            "t2",
            TaskPhase::Failed,
            "failed: exit code 2 after 1 min 4 s",
            "error: no rule\nstop",
        ),
    ];
    insta::assert_snapshot!("announcement", format_announcement(&reports));
}
