//! `haft queue`: adds, shows and cancels tasks for workers.

mod add;
mod show;

use clap::{Args, Subcommand};
use haft_agent::RandomIds;
use haft_postgres::{TaskQueue, TaskState};
use haft_types::IdSource as _;
use serde_json::json;

use self::add::AddTaskArgs;
use super::worker::connect_queue;
use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    #[command(subcommand)]
    pub(crate) command: QueueCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Add a task, or one for each repository of a file.
    Add(Box<AddTaskArgs>),
    /// List tasks, newest first.
    List(ListTasksArgs),
    /// Show a task: its state, costs and result.
    Show(ShowTaskArgs),
    /// Show the queue and its workers until interrupted, or follow one task to its end.
    Watch(WatchArgs),
    /// Take tasks out of the queue; a worker that runs one ends it.
    Cancel(TaskIdArgs),
    /// Queue tasks that have ended again: in a new conversation, with their limits anew.
    Retry(TaskIdArgs),
    /// Show how many tasks there are in each state, what they cost by label, and the workers.
    Stats(JsonArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListTasksArgs {
    /// Only tasks in this state: queued, running, ended, failed or cancelled.
    #[arg(long, value_name = "STATE", value_parser = parse_state)]
    pub(crate) state: Option<TaskState>,
    /// Only tasks with this label.
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    /// At most this many.
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ShowTaskArgs {
    /// The task's number.
    #[arg(value_name = "TASK")]
    pub(crate) id: i64,
    /// Print only the change, as a patch that `git apply` takes.
    #[arg(long, conflicts_with = "json")]
    pub(crate) patch: bool,
    /// Print only the log: one event a line, as JSON.
    #[arg(long, conflicts_with_all = ["json", "patch"])]
    pub(crate) log: bool,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The task's number; the whole queue when absent.
    #[arg(value_name = "TASK")]
    pub(crate) id: Option<i64>,
    /// Print JSON: one object a line.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct TaskIdArgs {
    /// The tasks' numbers.
    #[arg(value_name = "TASK", required = true)]
    pub(crate) ids: Vec<i64>,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

fn parse_state(name: &str) -> Result<TaskState, String> {
    TaskState::from_name(name).ok_or_else(|| text!("queue-unknown-state").into())
}

/// Connects to the queue of the configured team store.
fn open_queue(haft: &Haft, common: &Common) -> anyhow::Result<TaskQueue> {
    connect_queue(&haft.load(common)?.config)
}

pub(crate) fn run(haft: &Haft, command: QueueCommand) -> anyhow::Result<ProcessExit> {
    match command {
        QueueCommand::Add(args) => add::add_tasks(haft, &args)?,
        QueueCommand::List(args) => show::list_tasks(haft, &args)?,
        QueueCommand::Show(args) => show::show_task(haft, &args)?,
        QueueCommand::Watch(args) => return show::watch_queue(haft, &args),
        QueueCommand::Cancel(args) => {
            change_tasks(
                haft,
                &args,
                text!("queue-cancelled"),
                text!("queue-is-over"),
                TaskQueue::cancel,
            )?;
        }
        QueueCommand::Retry(args) => {
            let retry = |queue: &TaskQueue, id| queue.retry(id, &RandomIds.new_uuid().to_string());
            change_tasks(
                haft,
                &args,
                text!("queue-retried"),
                text!("queue-is-not-over"),
                retry,
            )?;
        }
        QueueCommand::Stats(args) => show::show_stats(haft, &args)?,
    }
    Ok(ProcessExit::Completed)
}

/// Applies `job` to each task. Tasks that `job` leaves unchanged are reported as one error after
/// the others are done.
fn change_tasks(
    haft: &Haft,
    args: &TaskIdArgs,
    done: &str,
    refused: &str,
    job: impl Fn(&TaskQueue, i64) -> Result<bool, haft_store::StoreError>,
) -> anyhow::Result<()> {
    let queue = open_queue(haft, &args.output.common)?;
    let mut rows = Vec::new();
    let mut left = Vec::new();
    for id in &args.ids {
        let changed = job(&queue, *id)?;
        rows.push(json!({"id": id, "changed": changed}));
        match changed {
            true if !args.output.json => output::print_text_line(&format!("{id}: {done}"))?,
            true => {}
            false => left.push(id.to_string()),
        }
    }
    if args.output.json {
        output::print_json(&json!(rows))?;
    }
    if left.is_empty() {
        Ok(())
    } else {
        Err(usage_error(format!("{}: {refused}", left.join(", "))))
    }
}
