use super::*;
use crate::testing::{Bench, running};
use haft_sandbox::TerminalSize;
use haft_types::TaskPhase;
use serde_json::json;

const ON: fn() -> LimitsConfig = LimitsConfig::default;

fn line(bench: &Bench, text: &str) -> shell::CommandLine {
    shell::CommandLine::check(&bench.context, &running(ON()), text.to_owned(), None, None).unwrap()
}

fn start(running: &Running, bench: &Bench, text: &str) -> Arc<Task> {
    let Running {
        supervisor,
        limits,
        tasks,
        ..
    } = running;
    tasks
        .start(
            supervisor,
            limits,
            &bench.context,
            line(bench, text),
            std::time::Duration::MAX,
        )
        .unwrap()
}

fn ids(reports: &[TaskReport]) -> Vec<&str> {
    reports.iter().map(|report| report.id.as_str()).collect()
}

#[tokio::test]
async fn an_end_is_announced_once_in_order_and_at_most_so_many_at_a_time() {
    let bench = Bench::new();
    let running = running(ON());
    let tasks: Vec<_> = ["true", "exit 3", "true"]
        .map(|command| start(&running, &bench, command))
        .into();
    for task in &tasks {
        task.ended().await.unwrap();
    }
    let still = start(&running, &bench, "sleep 1000");
    assert_eq!(ids(&running.take_ended(2)), ["t1", "t2"]);
    assert_eq!(ids(&running.take_ended(2)), ["t3"]);
    assert_eq!(running.take_ended(2), []);
    running.tasks.kill(&still).await;
    assert_eq!(running.take_ended(2), [], "the model killed it and knows");
}

#[tokio::test]
async fn watchers_hear_of_each_start_and_end_once() {
    let bench = Bench::new();
    let running = running(ON());
    let quick = start(&running, &bench, "exit 3");
    let slow = start(&running, &bench, "sleep 1000");
    quick.ended().await.unwrap();
    let phases = |running: &Running| -> Vec<_> {
        running
            .changes()
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
async fn at_the_end_of_a_run_everything_is_ended_and_written_down() {
    let bench = Bench::new();
    let running = running(ON());
    start(&running, &bench, "true").ended().await.unwrap();
    let slow = start(&running, &bench, "echo begun; sleep 1000");
    let Running {
        supervisor,
        limits,
        sessions,
        ..
    } = running.as_ref();
    let session = sessions
        .open(
            supervisor,
            limits,
            &bench.context,
            line(&bench, "cat"),
            TerminalSize::default(),
        )
        .unwrap();
    let reports = running.end_all().await;
    assert_eq!(ids(&reports), ["t1", "t2"]);
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
        later.remember("background_task", &started(id));
    }
    later.remember_ended(reports.clone());
    let told = later.take_ended(64);
    assert_eq!(told[..2], reports);
    assert_eq!(
        (told[2].id.as_str(), told[2].phase, &told[2].output),
        ("t3", TaskPhase::Lost, &None)
    );
    assert_eq!(
        start(&later, &bench, "true").id,
        "t4",
        "no id is used twice"
    );
}

#[test]
fn what_the_model_knows_of_is_not_lost() {
    let running = running(ON());
    let data = |data| Envelope::success("").with_data(data);
    for id in 1..=5 {
        let started = json!({"action": "start", "task_id": format!("t{id}"), "command": "c"});
        running.remember("background_task", &data(started));
    }
    running.remember(
        "background_task",
        &data(json!({"action": "monitor", "task_id": "t1"})),
    );
    running.remember(
        "background_task",
        &data(json!({"action": "kill", "task_id": "t2"})),
    );
    running.remember(
        "background_task",
        &data(json!({"action": "cleanup", "removed": ["t3"]})),
    );
    running.remember_announced("t4");
    running.remember("background_task", &Envelope::failure("too_many", "no"));
    running.remember(
        "execute_command",
        &data(json!({"action": "start", "task_id": "t9"})),
    );
    assert_eq!(ids(&running.take_ended(64)), ["t1", "t5"]);
}

#[test]
fn an_announcement_is_one_message() {
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
    insta::assert_snapshot!("announcement", announcement(&reports));
}
