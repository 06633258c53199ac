//! What a task is, how it stands, and what came of it.

use std::collections::BTreeMap;

use haft_types::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a worker is asked to do. Secrets are none of it: those are the worker's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRequest {
    /// The task for the model.
    pub prompt: String,
    /// The workflow that is run instead: one of the worker's own, or of a repository it trusts.
    pub workflow: Option<String>,
    /// The inputs of the workflow.
    pub inputs: BTreeMap<String, String>,
    /// A URL, a path every worker reaches, or the name of the bundle that comes with the task.
    pub repository: Option<String>,
    /// What of it is checked out; its `HEAD` when absent.
    pub commit: Option<String>,
    /// The agent whose role, tools and model are used.
    pub agent: Option<String>,
    /// As `provider/model`; the worker's when absent.
    pub model: Option<String>,
    /// The permission mode; the worker's when absent.
    pub mode: Option<String>,
    /// Rules of what is allowed, beside the worker's.
    pub allow: Vec<String>,
    /// Rules of what is denied.
    pub deny: Vec<String>,
    /// Replies of the model in each run.
    pub max_turns: Option<u32>,
    /// Seconds of each run.
    pub max_seconds: Option<f64>,
    /// The branch the change is pushed to.
    pub push: Option<String>,
}

/// A task to be added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewTask {
    /// What to do.
    pub request: TaskRequest,
    /// The repository as a bundle of git, where it comes with the task.
    pub bundle: Option<Vec<u8>>,
    /// The id of its conversation, which must be new.
    pub conversation: String,
    /// Higher ones are taken first.
    pub priority: i64,
    /// Milliseconds since 1970 before which it is not taken.
    pub not_before: Option<i64>,
    /// A text no other task has.
    pub unique_key: Option<String>,
    /// By which workers choose, costs are summed and limits hold.
    pub labels: Vec<String>,
    /// Money of all its runs together.
    pub usd_limit: Option<f64>,
    /// Tokens of all its runs together.
    pub token_limit: Option<i64>,
    /// How many workers may lose it before it has failed.
    pub max_attempts: i64,
}

/// What came of adding a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedTask {
    /// Its number, or that of the task with the same key.
    pub id: i64,
    /// Whether it was added.
    pub is_new: bool,
}

/// How a task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// It waits for a worker.
    Queued,
    /// A worker has it.
    Running,
    /// It ran to an outcome.
    Ended,
    /// It could not be run, or lost too many workers.
    Failed,
    /// Somebody took it out.
    Cancelled,
}

impl TaskState {
    /// Its name, as it is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state of that name.
    pub fn of(name: &str) -> Option<Self> {
        [
            Self::Queued,
            Self::Running,
            Self::Ended,
            Self::Failed,
            Self::Cancelled,
        ]
        .into_iter()
        .find(|one| one.name() == name)
    }

    /// Whether nothing more will come of it.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed | Self::Cancelled)
    }
}

/// A task as it is listed. Times are milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedTask {
    /// Its number.
    pub id: i64,
    /// How it stands.
    pub state: TaskState,
    /// Higher ones are taken first.
    pub priority: i64,
    /// Its labels.
    pub labels: Vec<String>,
    /// What to do.
    pub request: TaskRequest,
    /// Its conversation in the team store.
    pub conversation: String,
    /// The key that makes it unique.
    pub unique_key: Option<String>,
    /// Money of all its runs together.
    pub usd_limit: Option<f64>,
    /// Tokens of all its runs together.
    pub token_limit: Option<i64>,
    /// How often it was taken.
    pub attempts: i64,
    /// How often it may be.
    pub max_attempts: i64,
    /// Which taking is the newest.
    pub epoch: i64,
    /// Who has or had it.
    pub worker: Option<String>,
    /// Whether its worker was asked to end it.
    pub cancel_asked: bool,
    /// The commit its workspace began with.
    pub base: Option<String>,
    /// What it has cost, as far as prices are known.
    pub spent_usd: f64,
    /// Tokens it has used.
    pub spent_tokens: i64,
    /// The branch its change was pushed to.
    pub branch: Option<String>,
    /// The result of its run, or why it has none.
    pub result: Option<Value>,
    /// Whether its repository came with it.
    pub has_bundle: bool,
    /// The size of its patch.
    pub patch_bytes: i64,
    /// The number of the newest line of its log.
    pub last_logged: i64,
    /// When it may be taken.
    pub not_before: i64,
    /// When it was added.
    pub created_at: i64,
    /// When it was first taken.
    pub started_at: Option<i64>,
    /// When it ended.
    pub ended_at: Option<i64>,
}

impl QueuedTask {
    /// Returns the name of the state or, if the task ended with an outcome, of the outcome.
    pub fn state_name(&self) -> &str {
        let outcome = self
            .result
            .as_ref()
            .and_then(|result| result["outcome"].as_str());
        match (self.state, outcome) {
            (TaskState::Ended, Some(outcome)) => outcome,
            (state, _) => state.name(),
        }
    }
}

/// Returns a time in milliseconds since 1970 as text, in UTC.
pub fn utc_text(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds).map_or_else(
        |_| milliseconds.to_string(),
        |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// What a worker says of a task it is done with.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEnd {
    /// Ended, failed or cancelled.
    pub state: TaskState,
    /// The result of its run, or why it has none.
    pub result: Value,
    /// The change as a patch.
    pub patch: Option<Vec<u8>>,
    /// The branch it was pushed to.
    pub branch: Option<String>,
}

/// What tasks with one label have cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelCost {
    /// The label; empty for tasks that have none.
    pub label: String,
    /// How many there are.
    pub tasks: i64,
    /// Money, as far as prices are known.
    pub usd: f64,
    /// Tokens.
    pub tokens: i64,
    /// Money of those taken today, in UTC.
    pub usd_today: f64,
}

impl LabelCost {
    /// Returns the cells of a table: label, tasks, tokens, cost, cost of today.
    pub fn cells(&self) -> Vec<String> {
        let label = if self.label.is_empty() {
            "-"
        } else {
            &self.label
        };
        vec![
            label.to_owned(),
            self.tasks.to_string(),
            self.tokens.to_string(),
            format!("${:.4}", self.usd),
            format!("${:.4}", self.usd_today),
        ]
    }
}

/// How the queue stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueStatistics {
    /// How many tasks are in each state.
    pub states: BTreeMap<String, i64>,
    /// What they cost, by label.
    pub labels: Vec<LabelCost>,
    /// How long the oldest task that could be taken has waited.
    pub oldest_ms: i64,
}

/// A worker as others see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// Its number: another one for each start.
    pub id: i64,
    /// Its host and process.
    pub name: String,
    /// How many tasks it runs at once.
    pub slots: i64,
    /// The labels it takes; all of them when empty.
    pub labels: Vec<String>,
    /// Whether it takes no more tasks.
    pub draining: bool,
    /// How long nothing was heard of it.
    pub silent_ms: i64,
    /// How many tasks it has.
    pub tasks: i64,
}

impl WorkerRow {
    /// Returns the cells of a table: name, slots, tasks, time since the last heartbeat.
    pub fn cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.slots.to_string(),
            self.tasks.to_string(),
            format!("{} s", self.silent_ms / 1_000),
        ]
    }
}
