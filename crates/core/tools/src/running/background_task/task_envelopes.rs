//! Builds the results of the actions on background tasks.

use std::fmt::Write as _;
use std::sync::Arc;

use haft_sandbox::FinishedCommand;
use haft_types::Envelope;
use serde_json::{Value, json};

use crate::running::phrases::{
    add_exit, add_section, add_stdout, hidden_path_hint, last_lines, phase_name, to_millis,
    undone_entries_hint,
};
use crate::running::{Task, TaskReport};

pub(super) fn build_started_envelope(task: &Task) -> Envelope {
    let mut text = format!(
        "Task {} was started. You will be told when it has ended.",
        task.id
    );
    let mut data = json!({ "action": "start", "task_id": task.id, "command": task.line.text, "cwd": task.cwd });
    if let Some(file) = task.output_file() {
        let _ = write!(text, " Its output goes to `{}`.", file.display());
        data["output"] = file.display().to_string().into();
    }
    Envelope::success(text).with_data(data)
}

pub(super) fn build_list_envelope(tasks: &[Arc<Task>]) -> Envelope {
    let mut text = if tasks.is_empty() {
        "There are no tasks.".to_owned()
    } else {
        String::new()
    };
    let mut rows = Vec::new();
    for task in tasks {
        let report = task.report();
        let _ = writeln!(text, "{}", report.to_sentence());
        rows.push(
            json!({ "task_id": task.id, "command": task.line.text, "state": phase_name(report.phase) }),
        );
    }
    Envelope::success(text.trim_end()).with_data(json!({ "action": "list", "tasks": rows }))
}

pub(super) fn build_monitor_envelope(task: &Task, lines: usize, bytes: usize) -> Envelope {
    let report = task.report();
    let output = task.output();
    let mut text = format!("Task {}", report.to_sentence());
    let (shown, before) = last_lines(&output, lines, bytes);
    match (output.bytes, before) {
        (0, _) => text.push_str(" No output."),
        (_, 0) => add_section(&mut text, "output", &shown),
        (_, before) => add_section(
            &mut text,
            &format!("output, after {before} earlier lines"),
            &shown,
        ),
    }
    if let (true, Some(file)) = (before > 0, &report.output) {
        let _ = write!(
            text,
            "\n[All {} lines are in `{}`: read it by range.]",
            output.lines,
            file.display()
        );
    }
    if let Some(Ok(FinishedCommand {
        hidden: Some(hidden),
        ..
    })) = task.ending().as_deref()
    {
        let _ = write!(text, "\n[{}]", hidden_path_hint(hidden));
    }
    if let Some(Ok(finished)) = task.ending().as_deref()
        && let Some(hint) = undone_entries_hint(finished)
    {
        let _ = write!(text, "\n[{hint}]");
    }
    if let Some(problem) = task.file_problem() {
        let _ = write!(text, "\n[{problem}.]");
    }
    let mut data = build_task_data(task, "monitor", &report);
    add_stdout(&mut data, &output);
    Envelope::success(text).with_data(data)
}

pub(super) fn build_killed_envelope(task: &Task) -> Envelope {
    let report = task.report();
    Envelope::success(format!("Task {}", report.to_sentence()))
        .with_data(build_task_data(task, "kill", &report))
}

pub(super) fn build_cleanup_envelope(removed: &[TaskReport]) -> Envelope {
    let ids: Vec<_> = removed.iter().map(|report| report.id.as_str()).collect();
    let text = if ids.is_empty() {
        "No task has ended; nothing was removed.".to_owned()
    } else {
        let rows: Vec<_> = removed.iter().map(TaskReport::to_sentence).collect();
        format!("Removed with their output:\n{}", rows.join("\n"))
    };
    Envelope::success(text).with_data(json!({ "action": "cleanup", "removed": ids }))
}

fn build_task_data(task: &Task, action: &str, report: &TaskReport) -> Value {
    let mut data = json!({
        "action": action, "task_id": task.id, "command": task.line.text, "state": phase_name(report.phase),
        "duration_ms": to_millis(task.duration()),
    });
    if let Some(Ok(finished)) = task.ending().as_deref() {
        add_exit(&mut data, finished.exit);
    }
    if let Some(file) = &report.output {
        data["output"] = file.display().to_string().into();
    }
    data
}
