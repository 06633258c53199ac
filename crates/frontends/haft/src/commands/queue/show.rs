//! `haft queue list`, `show`, `watch` and `stats`: print tasks and the state of the queue.

use std::io::Write as _;
use std::time::Duration;

use haft_postgres::{LabelCost, QueueStatistics, QueuedTask, TaskState, WorkerRow, utc_text};
use haft_types::{Event, Outcome};
use serde_json::{Value, json};

use super::{ListTasksArgs, ShowTaskArgs, WatchArgs, queue};
use crate::cli::options::{JsonArgs, OutputFormat};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output::{self, Printer, TextTable};

/// The interval between polls of a watched queue.
const PAUSE: Duration = Duration::from_secs(1);

pub(super) fn list(haft: &Haft, args: &ListTasksArgs) -> anyhow::Result<()> {
    let tasks = queue(haft, &args.output.common)?.list(
        args.state,
        args.label.as_deref(),
        args.limit.into(),
    )?;
    if args.output.json {
        return output::print_json(&json!(tasks));
    }
    if tasks.is_empty() {
        return output::say(text!("queue-empty"));
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
        table.row(vec![
            task.id.to_string(),
            output::localised(task.state_name()),
            utc_text(task.created_at),
            format!("${:.4}", task.spent_usd),
            task.request.repository.clone().unwrap_or_default(),
            task.request
                .prompt
                .lines()
                .next()
                .unwrap_or_default()
                .to_owned(),
        ]);
    }
    output::print(&table.to_string())
}

pub(super) fn show(haft: &Haft, args: &ShowTaskArgs) -> anyhow::Result<()> {
    let queue = queue(haft, &args.output.common)?;
    let task = queue.get(args.id)?.ok_or_else(|| unknown(args.id))?;
    if args.patch {
        let patch = queue.patch(args.id)?.unwrap_or_default();
        return Ok(std::io::stdout().write_all(&patch)?);
    }
    if args.log {
        let lines: Vec<_> = queue
            .log(args.id, 0)?
            .into_iter()
            .map(|(_, line)| line + "\n")
            .collect();
        return output::print(&lines.concat());
    }
    if args.output.json {
        return output::print_json(&json!(task));
    }
    output::print(&format!(
        "{}\n",
        haft_text::sanitise(&described(&task).join("\n"))
    ))
}

fn unknown(id: i64) -> anyhow::Error {
    usage_error(text!("queue-unknown", id))
}

fn described(task: &QueuedTask) -> Vec<String> {
    let mut lines = vec![
        text!(
            "queue-show-task",
            id = task.id,
            state = output::localised(task.state_name())
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
    if let Some(repository) = &task.request.repository {
        let commit = task
            .base
            .as_deref()
            .or(task.request.commit.as_deref())
            .unwrap_or("HEAD");
        lines.push(text!(
            "queue-show-repository",
            repository = repository.as_str(),
            commit
        ));
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
            at = utc_text(task.not_before)
        ));
    }
    if let Some(branch) = &task.branch {
        lines.push(text!("queue-show-branch", branch = branch.as_str()));
    }
    if task.patch_bytes > 0 {
        let size = output::bytes(task.patch_bytes.unsigned_abs());
        lines.push(text!("queue-show-patch", size, id = task.id));
    }
    if let Some(result) = &task.result {
        for key in ["message", "patch_error", "push_error", "text"] {
            lines.extend(
                result[key]
                    .as_str()
                    .filter(|text| !text.is_empty())
                    .map(|text| format!("\n{}", output::localised(text))),
            );
        }
    }
    lines
}

pub(super) fn stats(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let queue = queue(haft, &args.common)?;
    let stand = queue.statistics()?;
    let workers = queue.workers()?;
    if args.json {
        return output::print_json(&as_json(&stand, &workers));
    }
    output::print(&tables(&stand, &workers))
}

fn as_json(stand: &QueueStatistics, workers: &[WorkerRow]) -> Value {
    json!({"states": stand.states, "labels": stand.labels, "oldest_ms": stand.oldest_ms, "workers": workers})
}

fn tables(stand: &QueueStatistics, workers: &[WorkerRow]) -> String {
    let mut states = TextTable::new(&[text!("table-state"), text!("table-count")]);
    for (state, count) in &stand.states {
        states.row(vec![output::localised(state), count.to_string()]);
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
        .map(LabelCost::cells)
        .for_each(|row| labels.row(row));
    let headings = [
        text!("table-worker"),
        text!("table-slots"),
        text!("table-count"),
        text!("table-silent"),
    ];
    let mut all = TextTable::new(&headings);
    workers
        .iter()
        .map(WorkerRow::cells)
        .for_each(|row| all.row(row));
    format!("{states}\n{labels}\n{all}")
}

/// Follows one task to its end, or shows the queue until it is interrupted.
pub(super) fn watch(haft: &Haft, args: &WatchArgs) -> anyhow::Result<ProcessExit> {
    let queue = queue(haft, &args.common)?;
    let Some(id) = args.id else {
        loop {
            let stand = queue.statistics()?;
            let workers = queue.workers()?;
            if args.json {
                output::print_line(&as_json(&stand, &workers));
            } else {
                output::print(&format!("{}\n", tables(&stand, &workers)))?;
            }
            std::thread::sleep(PAUSE);
        }
    };
    let mut printer = Printer::new(OutputFormat::Text, false).all_on_stdout();
    let mut seen = 0;
    loop {
        // Read before its log, so that everything logged before its end is shown.
        let task = queue.get(id)?.ok_or_else(|| unknown(id))?;
        for (number, line) in queue.log(id, seen)? {
            seen = number;
            if args.json {
                output::print(&format!("{line}\n"))?;
            } else if let Ok(event) = serde_json::from_str::<Event>(&line) {
                haft_engine::EventSink::event(&mut printer, &event);
            }
        }
        if task.state.is_over() {
            if !args.json {
                output::print(&format!(
                    "{}\n",
                    haft_text::sanitise(&described(&task).join("\n"))
                ))?;
            }
            return Ok(exit_of(&task));
        }
        std::thread::sleep(PAUSE);
    }
}

fn exit_of(task: &QueuedTask) -> ProcessExit {
    let outcome = task
        .result
        .as_ref()
        .and_then(|result| serde_json::from_value::<Outcome>(result["outcome"].clone()).ok());
    match task.state {
        TaskState::Cancelled => ProcessExit::Aborted,
        _ => outcome.map_or(ProcessExit::Failed, ProcessExit::from),
    }
}
