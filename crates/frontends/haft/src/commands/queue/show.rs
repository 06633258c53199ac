//! `haft queue list`, `show`, `watch` and `stats`: print tasks and the state of the queue.

use std::io::Write as _;
use std::time::Duration;

use haft_postgres::{
    LabelCost, QueueStatistics, QueuedTask, TaskFilter, TaskState, WorkerRow, format_utc,
};
use haft_types::{Event, Outcome};
use serde_json::{Value, json};

use super::{ListTasksArgs, ShowTaskArgs, WatchArgs, open_queue};
use crate::cli::options::{JsonArgs, OutputFormat};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output::{self, Printer, TextTable};

/// The interval between polls of a watched queue.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

pub(super) fn list_tasks(haft: &Haft, args: &ListTasksArgs) -> anyhow::Result<()> {
    let filter = TaskFilter {
        status: args.state.clone(),
        label: args.label.clone(),
    };
    let queue = open_queue(haft, &args.output.common)?;
    let tasks = queue.list_tasks(&filter, args.limit.into())?;
    if args.output.json {
        let shown: Vec<_> = tasks.into_iter().map(hide_passwords).collect();
        return output::print_json(&json!(shown));
    }
    if tasks.is_empty() {
        return output::print_text_line(text!("queue-empty"));
    }
    let headings = [
        text!("table-task"),
        text!("table-state"),
        text!("table-made"),
        text!("table-cost"),
        text!("table-source"),
        text!("table-what"),
    ];
    let mut table = TextTable::new(&headings);
    for task in &tasks {
        table.add_row(vec![
            task.id.to_string(),
            output::localize_text(task.state_name()),
            format_utc(task.created_at),
            format!("${:.4}", task.spent_usd + task.earlier_usd),
            task.request.shown_repository().unwrap_or_default(),
            task.request
                .prompt
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        ]);
    }
    output::print_text(&table.to_string())
}

pub(super) fn show_task(haft: &Haft, args: &ShowTaskArgs) -> anyhow::Result<()> {
    let queue = open_queue(haft, &args.output.common)?;
    let task = queue
        .get_task(args.id)?
        .ok_or_else(|| unknown_task_error(args.id))?;
    if args.patch {
        let patch = queue.read_patch(args.id)?.unwrap_or_default();
        return Ok(std::io::stdout().write_all(&patch)?);
    }
    if args.log {
        let lines: Vec<_> = queue
            .read_log(args.id, 0)?
            .into_iter()
            .map(|(_, line)| line + "\n")
            .collect();
        return output::print_text(&lines.concat());
    }
    if args.output.json {
        return output::print_json(&json!(hide_passwords(task)));
    }
    output::print_text(&format!(
        "{}\n",
        haft_text::sanitize(&describe_task(&task).join("\n"))
    ))
}

/// Hides a password in the address of the repository, which an older haft accepted.
fn hide_passwords(mut task: QueuedTask) -> QueuedTask {
    task.request.repository = task.request.shown_repository();
    task
}

fn unknown_task_error(id: i64) -> anyhow::Error {
    usage_error(text!("queue-unknown", id))
}

fn describe_task(task: &QueuedTask) -> Vec<String> {
    let mut lines = vec![
        text!(
            "queue-show-task",
            id = task.id,
            state = output::localize_text(task.state_name())
        ),
        text!("queue-show-prompt", prompt = task.request.prompt.as_str()),
        text!("queue-show-conversation", id = task.conversation.as_str()),
        text!(
            "queue-show-cost",
            usd = format_args!("{:.4}", task.spent_usd),
            tokens = task.spent_tokens
        ),
        text!(
            "queue-show-attempts",
            attempts = task.attempts,
            most = task.max_attempts
        ),
    ];
    if task.earlier_tokens > 0 {
        lines.push(text!(
            "queue-show-earlier",
            usd = format_args!("{:.4}", task.earlier_usd),
            tokens = task.earlier_tokens
        ));
    }
    if let Some(repository) = task.request.shown_repository() {
        let commit = task
            .base
            .as_deref()
            .or(task.request.commit.as_deref())
            .unwrap_or("HEAD");
        lines.push(text!("queue-show-repository", repository, commit));
    }
    if !task.labels.is_empty() {
        lines.push(text!("queue-show-labels", labels = task.labels.join(", ")));
    }
    if let Some(worker) = &task.worker {
        lines.push(text!("queue-show-worker", worker = worker.as_str()));
    }
    if task.state == TaskState::Queued {
        lines.push(text!(
            "queue-show-not-before",
            at = format_utc(task.not_before)
        ));
    }
    if let Some(branch) = &task.branch {
        lines.push(text!("queue-show-branch", branch = branch.as_str()));
    }
    if task.patch_bytes > 0 {
        let size = output::format_bytes(task.patch_bytes.unsigned_abs());
        lines.push(text!("queue-show-patch", size, id = task.id));
    }
    if let Some(result) = &task.result {
        let mut shown = Vec::new();
        for key in ["message", "patch_error", "push_error", "text"] {
            if shown.contains(&&result[key]) {
                continue;
            }
            shown.push(&result[key]);
            lines.extend(
                result[key]
                    .as_str()
                    .filter(|text| !text.is_empty())
                    .map(|text| format!("\n{}", output::localize_text(text))),
            );
        }
    }
    lines
}

pub(super) fn show_stats(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let queue = open_queue(haft, &args.common)?;
    let stand = queue.statistics()?;
    let workers = queue.workers()?;
    if args.json {
        return output::print_json(&stats_to_json(&stand, &workers));
    }
    output::print_text(&stats_to_text(&stand, &workers))
}

fn stats_to_json(stand: &QueueStatistics, workers: &[WorkerRow]) -> Value {
    json!({
        "states": stand.states,
        "ready": stand.ready,
        "labels": stand.labels,
        "oldest_ms": stand.oldest_ms,
        "paused": stand.paused,
        "workers": workers,
    })
}

fn stats_to_text(stand: &QueueStatistics, workers: &[WorkerRow]) -> String {
    let mut states = TextTable::new(&[text!("table-state"), text!("table-count")]);
    for (state, count) in &stand.states {
        states.add_row(vec![output::localize_text(state), count.to_string()]);
    }
    let headings = [
        text!("table-label"),
        text!("table-count"),
        text!("table-tokens"),
        text!("table-cost"),
        text!("table-today"),
    ];
    let mut labels = TextTable::new(&headings);
    stand
        .labels
        .iter()
        .map(LabelCost::table_cells)
        .for_each(|row| labels.add_row(row));
    let headings = [
        text!("table-worker"),
        text!("table-slots"),
        text!("table-count"),
        text!("table-silent"),
        text!("table-problem"),
    ];
    let mut all = TextTable::new(&headings);
    workers
        .iter()
        .map(WorkerRow::table_cells)
        .for_each(|row| all.add_row(row));
    let paused: Vec<_> = stand
        .paused
        .iter()
        .map(|label| describe_pause(label))
        .collect();
    let ready = text!("queue-ready", count = stand.ready);
    format!("{states}{ready}\n{}\n{labels}\n{all}", paused.concat())
}

fn describe_pause(label: &str) -> String {
    if label.is_empty() {
        format!("{}\n", text!("queue-all-paused"))
    } else {
        format!("{}\n", text!("queue-label-paused", label))
    }
}

/// Follows one task to its end, or shows the queue until it is interrupted.
pub(super) fn watch_queue(haft: &Haft, args: &WatchArgs) -> anyhow::Result<ProcessExit> {
    let queue = open_queue(haft, &args.common)?;
    let Some(id) = args.id else {
        loop {
            let stand = queue.statistics()?;
            let workers = queue.workers()?;
            if args.json {
                output::print_json_line(&stats_to_json(&stand, &workers));
            } else {
                output::print_text(&format!("{}\n", stats_to_text(&stand, &workers)))?;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    };
    let mut printer = Printer::new(OutputFormat::Text, false).with_progress_on_stdout();
    let mut seen = 0;
    loop {
        // The task is read before its log, so that everything logged before the task's end is
        // shown.
        let task = queue.get_task(id)?.ok_or_else(|| unknown_task_error(id))?;
        for (number, line) in queue.read_log(id, seen)? {
            seen = number;
            if args.json {
                output::print_text(&format!("{line}\n"))?;
            } else if let Ok(event) = serde_json::from_str::<Event>(&line) {
                haft_engine::EventSink::event(&mut printer, &event);
            }
        }
        if task.state.is_over() {
            if !args.json {
                output::print_text(&format!(
                    "{}\n",
                    haft_text::sanitize(&describe_task(&task).join("\n"))
                ))?;
            }
            return Ok(exit_for_task(&task));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

pub(crate) fn exit_for_task(task: &QueuedTask) -> ProcessExit {
    let outcome = task
        .result
        .as_ref()
        .and_then(|result| serde_json::from_value::<Outcome>(result["outcome"].clone()).ok());
    match task.state {
        TaskState::Cancelled => ProcessExit::Aborted,
        _ => outcome.map_or(ProcessExit::Failed, ProcessExit::from),
    }
}
