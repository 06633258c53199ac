//! `haft queue`: adds, shows and cancels tasks for workers.

mod add;
mod manage;
pub(crate) mod show;

use clap::{Args, Subcommand};
use haft_postgres::{TASK_STATUSES, TaskQueue};

use self::add::AddTaskArgs;
use super::worker::connect_queue;
use crate::cli::options::{Common, JsonArgs};
use crate::exit::ProcessExit;
use crate::haft::Haft;

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
    Cancel(SelectTasksArgs),
    /// Queue tasks that have ended again: in a new conversation, with their limits anew.
    Retry(SelectTasksArgs),
    /// Show how many tasks there are in each state, what they cost by label, and the workers.
    Stats(JsonArgs),
    /// Keep workers from taking tasks, or those with a label; tasks that run go on.
    Pause(PauseArgs),
    /// End a pause.
    Resume(PauseArgs),
    /// Remove old tasks that have ended, with their logs and patches. Conversations stay.
    Prune(PruneArgs),
    /// Create or upgrade the tables, as a role that may do that; workers then need no such right.
    Migrate(MigrateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListTasksArgs {
    /// Only tasks in this state: queued, running, completed, failed, exhausted, waiting, aborted,
    /// cancelled, `ended` for every run that ended by itself, or `ready` for the tasks that a worker
    /// would take if it started now.
    #[arg(long, value_name = "STATE", value_parser = parse_status)]
    pub(crate) state: Option<String>,
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
pub(crate) struct SelectTasksArgs {
    /// The tasks' numbers.
    #[arg(value_name = "TASK", required_unless_present_any = ["state", "label"], conflicts_with_all = ["state", "label"])]
    pub(crate) ids: Vec<i64>,
    /// All tasks in this state, as `haft queue list --state` names it.
    #[arg(long, value_name = "STATE", value_parser = parse_status)]
    pub(crate) state: Option<String>,
    /// All tasks with this label.
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Option<String>,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// Only tasks with this label; all tasks when absent.
    #[arg(
        long,
        value_name = "LABEL",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) label: String,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove tasks that ended more than this many days ago.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32))]
    pub(crate) days: u32,
    #[command(flatten)]
    pub(crate) output: JsonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// Also let this role read and change the rows of the tables; may be repeated.
    #[arg(long = "grant", value_name = "ROLE")]
    pub(crate) grants: Vec<String>,
    /// Only print the SQL statements that create the tables.
    #[arg(long, conflicts_with = "grants")]
    pub(crate) sql: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

fn parse_status(name: &str) -> Result<String, String> {
    if TASK_STATUSES.contains(&name) {
        Ok(name.to_owned())
    } else {
        Err(text!("queue-unknown-state").into())
    }
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
        QueueCommand::Cancel(args) => manage::cancel_tasks(haft, &args)?,
        QueueCommand::Retry(args) => manage::retry_tasks(haft, &args)?,
        QueueCommand::Stats(args) => show::show_stats(haft, &args)?,
        QueueCommand::Pause(args) => manage::pause_tasks(haft, &args)?,
        QueueCommand::Resume(args) => manage::resume_tasks(haft, &args)?,
        QueueCommand::Prune(args) => manage::prune_tasks(haft, &args)?,
        QueueCommand::Migrate(args) => manage::migrate_tables(haft, &args)?,
    }
    Ok(ProcessExit::Completed)
}
