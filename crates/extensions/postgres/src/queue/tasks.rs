//! The types that describe a task, its state, and its result.

use std::collections::BTreeMap;
use std::time::Duration;

use haft_types::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A description of a task's work. It must not contain secrets, because these belong to the worker.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskRequest {
    /// The prompt for the model.
    pub prompt: String,
    /// The workflow to run instead of a prompt: one of the worker's own workflows, or one from a
    /// repository that the worker trusts.
    pub workflow: Option<String>,
    /// The values of the workflow's inputs, by name.
    pub inputs: BTreeMap<String, String>,
    /// The repository to clone: a URL, a path that every worker can access, or the name of the
    /// bundle added with the task.
    pub repository: Option<String>,
    /// The revision to check out. The default is the repository's `HEAD`.
    pub commit: Option<String>,
    /// The name of the agent whose role, tools, and model are used.
    pub agent: Option<String>,
    /// The model as `provider/model`. The default is the worker's model.
    pub model: Option<String>,
    /// The permission mode. The default is the worker's permission mode.
    pub mode: Option<String>,
    /// Permission rules that allow calls, in addition to the worker's own rules.
    pub allow: Vec<String>,
    /// Permission rules that deny calls, in addition to the worker's own rules.
    pub deny: Vec<String>,
    /// The maximum number of model replies per run.
    pub max_turns: Option<u32>,
    /// The maximum duration of each run, in seconds.
    pub max_seconds: Option<f64>,
    /// The branch to which the changes are pushed. If absent, nothing is pushed.
    pub push: Option<String>,
}

impl TaskRequest {
    /// Returns the repository's address for display, with a password hidden.
    pub fn shown_repository(&self) -> Option<String> {
        self.repository.as_deref().map(hide_address_password)
    }
}

/// The length from which the user of a web address is regarded as a token.
const MIN_TOKEN_BYTES: usize = 20;

/// Returns `address` with its password or token replaced. Only addresses with a scheme can contain
/// one.
pub fn hide_address_password(address: &str) -> String {
    let Some((scheme, user, rest)) = find_address_user(address) else {
        return address.to_owned();
    };
    match user.split_once(':') {
        Some((name, _)) => format!("{scheme}://{name}:***@{rest}"),
        None if is_token(user) => format!("{scheme}://***@{rest}"),
        None => address.to_owned(),
    }
}

/// True if `address` contains a password or a token.
pub fn has_address_password(address: &str) -> bool {
    find_address_user(address).is_some_and(|(_, user, _)| user.contains(':') || is_token(user))
}

fn is_token(user: &str) -> bool {
    user.len() >= MIN_TOKEN_BYTES
}

/// Splits an address into its scheme, its user and the rest. Returns `None` if there is no user.
fn find_address_user(address: &str) -> Option<(&str, &str, &str)> {
    let (scheme, rest) = address.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // A password that contains a slash ends at the last `@`. The part before the first slash then
    // looks like a host with a port that is no number.
    let odd_port = rest[..end]
        .split_once(':')
        .is_some_and(|(_, port)| !port.bytes().all(|byte| byte.is_ascii_digit()));
    let at = rest[..end]
        .rfind('@')
        .or_else(|| rest.rfind('@').filter(|_| odd_port))?;
    Some((scheme, &rest[..at], &rest[at + 1..]))
}

/// The data of a task that is to be added to the queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewTask {
    /// A description of the work that the task consists of.
    pub request: TaskRequest,
    /// A git bundle with the repository, if the repository is sent with the task.
    pub bundle: Option<Vec<u8>>,
    /// The id of the task's conversation, which must be new.
    pub conversation: String,
    /// The priority. Tasks with higher values are taken first.
    pub priority: i64,
    /// The earliest time at which the task may be taken, in milliseconds since 1970.
    pub not_before: Option<i64>,
    /// A key that prevents duplicates: a task is not added if another task in the queue has its
    /// key.
    pub unique_key: Option<String>,
    /// Labels by which workers select tasks, costs are summed, and limits apply.
    pub labels: Vec<String>,
    /// The spending limit of all runs of the task together, in US dollars.
    pub usd_limit: Option<f64>,
    /// The token limit of all runs of the task together.
    pub token_limit: Option<i64>,
    /// The maximum number of runs that stored a message. If the worker of the last one is lost, the
    /// task fails.
    pub max_attempts: i64,
    /// The number of times that the task is queued again after its run failed.
    pub retries: i64,
    /// The pause before the first such retry. It doubles with each retry.
    pub retry_after: Duration,
}

/// The result of adding a task: the id of the new task, or of a queued task with its unique key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddedTask {
    /// The id of the added task, or of the queued task that already has the unique key.
    pub id: i64,
    /// True if the task was added, false if a task with its unique key was already in the queue.
    pub is_new: bool,
}

/// The state of a task in the queue: waiting, running or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// The task waits for a worker.
    Queued,
    /// The task runs on a worker.
    Running,
    /// The task's run ended with an outcome, whether successful or not.
    Ended,
    /// The task could not be run, or was taken too often because its workers were lost.
    Failed,
    /// A user canceled the task.
    Cancelled,
}

impl TaskState {
    /// Returns the name under which the state is stored.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns the state that is stored under `name`, or `None` if there is no such state.
    pub fn from_name(name: &str) -> Option<Self> {
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

    /// True if the task is no longer waiting or running. Only a retry can change such a state.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Ended | Self::Failed | Self::Cancelled)
    }
}

/// The name that selects the tasks that a worker would take if it started now: waiting tasks whose
/// time has come, and running tasks whose worker is lost. Paused tasks are not among them.
pub(super) const READY_STATUS: &str = "ready";

/// The names under which tasks are listed and counted: states, and the outcomes of runs. `ended`
/// selects every run that ended by itself, and `ready` the tasks that a new worker would take.
pub const TASK_STATUSES: [&str; 10] = [
    READY_STATUS,
    "queued",
    "running",
    "completed",
    "failed",
    "exhausted",
    "waiting",
    "aborted",
    "cancelled",
    "ended",
];

/// The data of a task in the queue. Times are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct QueuedTask {
    pub id: i64,
    pub state: TaskState,
    /// The name under which the task is listed and counted: the outcome of a run that has ended,
    /// and the state of any other task.
    pub status: String,
    /// The priority. Tasks with higher values are taken first.
    pub priority: i64,
    pub labels: Vec<String>,
    /// A description of the work that the task consists of.
    pub request: TaskRequest,
    /// The id of the task's conversation in the team store.
    pub conversation: String,
    /// The unique key that prevents a duplicate of this task in the queue, if one was given.
    pub unique_key: Option<String>,
    /// The spending limit of all runs of the task together, in US dollars.
    pub usd_limit: Option<f64>,
    /// The token limit of all runs of the task together.
    pub token_limit: Option<i64>,
    /// The number of runs of the task that stored a message.
    pub attempts: i64,
    /// The maximum number of such runs.
    pub max_attempts: i64,
    /// The number of claims in a row that stored no message.
    pub failures: i64,
    /// The number of the newest claim to the task.
    pub epoch: i64,
    /// The name of the current or last worker.
    pub worker: Option<String>,
    /// True if the worker was asked to end the task.
    pub cancel_asked: bool,
    /// The commit that the workspace was created from.
    pub base: Option<String>,
    /// The cost of the task so far in US dollars, as far as prices are known.
    pub spent_usd: f64,
    /// The number of tokens that the task has used so far.
    pub spent_tokens: i64,
    /// The cost of the task before it was retried, in US dollars.
    pub earlier_usd: f64,
    /// The number of tokens that the task used before it was retried.
    pub earlier_tokens: i64,
    /// The number of times that the task is queued again after its run failed.
    pub retries: i64,
    /// The number of times that the task was queued again for that reason.
    pub retried: i64,
    /// The branch to which the changes were pushed.
    pub branch: Option<String>,
    /// The result of the run, or the reason why there is none.
    pub result: Option<Value>,
    /// True if a git bundle was added with the task.
    pub has_bundle: bool,
    /// The size of the patch with the task's changes, in bytes.
    pub patch_bytes: i64,
    /// The number of the newest line in the task's log.
    pub last_logged: i64,
    /// The earliest time at which the task may be taken.
    pub not_before: i64,
    pub created_at: i64,
    /// The time at which the task was first taken, or `None` if it has not been taken.
    pub started_at: Option<i64>,
    pub ended_at: Option<i64>,
}

impl QueuedTask {
    /// Returns the name under which the task is listed and counted.
    pub fn state_name(&self) -> &str {
        &self.status
    }
}

/// Formats a time in milliseconds since 1970 as text, in UTC.
pub fn format_utc(milliseconds: i64) -> String {
    Timestamp::from_millisecond(milliseconds).map_or_else(
        |_| milliseconds.to_string(),
        |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string(),
    )
}

/// The final report that a worker makes about a task.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskEnd {
    /// The final state: ended, failed, or canceled.
    pub state: TaskState,
    /// The result of the task's run, or the reason why there is none.
    pub result: Value,
    /// The changes that the task made, as a patch.
    pub patch: Option<Vec<u8>>,
    /// The branch to which the changes were pushed.
    pub branch: Option<String>,
    /// True if the saved files of the task are kept, because there is no patch with its changes.
    pub keeps_files: bool,
}

/// The number and the costs of the tasks that have one label.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LabelCost {
    /// The label, or an empty text for tasks without labels.
    pub label: String,
    /// The number of tasks with the label.
    pub tasks: i64,
    /// The costs in US dollars, as far as prices are known.
    pub usd: f64,
    pub tokens: i64,
    /// The cost of the tasks taken today in UTC, in US dollars.
    pub usd_today: f64,
}

impl LabelCost {
    /// Returns the cells of a table row: label, tasks, tokens, cost, today's cost.
    pub fn table_cells(&self) -> Vec<String> {
        let label = if self.label.is_empty() {
            "-"
        } else {
            &self.label
        };
        vec![
            label.replace(['\n', '\r', '\t'], " "),
            self.tasks.to_string(),
            self.tokens.to_string(),
            format!("${:.4}", self.usd),
            format!("${:.4}", self.usd_today),
        ]
    }
}

/// The number of tasks by state, the costs by label, and the longest waiting time in the queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct QueueStatistics {
    /// The number of tasks by the names under which they are listed.
    pub states: BTreeMap<String, i64>,
    /// The number of tasks that a worker would take if it started now, limits aside.
    pub ready: i64,
    /// The costs of the tasks, summed by label.
    pub labels: Vec<LabelCost>,
    /// The time for which the oldest task that is ready to be taken has been waiting, in
    /// milliseconds.
    pub oldest_ms: i64,
    /// The labels whose tasks are paused. An empty label stands for all tasks.
    pub paused: Vec<String>,
}

/// The state of a worker, for a list of workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WorkerRow {
    /// The id of the worker, which is new for each start.
    pub id: i64,
    /// A name for the worker that contains its host and process id.
    pub name: String,
    /// The number of tasks the worker runs at once.
    pub slots: i64,
    /// The labels of the tasks that the worker accepts. If empty, it accepts all tasks.
    pub labels: Vec<String>,
    /// True if the worker is shutting down and takes no more tasks.
    pub draining: bool,
    /// The time since the last heartbeat, in milliseconds.
    pub silent_ms: i64,
    /// The number of tasks that the worker is running.
    pub tasks: i64,
    /// The reason why the worker takes no tasks, or `None` if it is healthy.
    pub problem: Option<String>,
}

impl WorkerRow {
    /// Returns the cells of a table row: name, slots, tasks, time since the last heartbeat, problem.
    pub fn table_cells(&self) -> Vec<String> {
        vec![
            self.name.clone(),
            self.slots.to_string(),
            self.tasks.to_string(),
            format!("{} s", self.silent_ms / 1_000),
            self.problem.clone().unwrap_or_default(),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hide_address_password_hides_passwords_and_tokens() {
        for (address, shown) in [
            ("https://me:secret@host/x.git", "https://me:***@host/x.git"),
            (
                "https://me:se/cr@et@host/x.git",
                "https://me:***@host/x.git",
            ),
            ("https://x-token:@host/x", "https://x-token:***@host/x"),
            ("ssh://git:secret@host:22/x", "ssh://git:***@host:22/x"),
            (
                "https://ghp_0123456789abcdefghij@github.com/o/x",
                "https://***@github.com/o/x",
            ),
        ] {
            assert!(has_address_password(address), "{address}");
            assert_eq!(hide_address_password(address), shown);
        }
        for address in [
            "https://host/x.git",
            "https://team@dev.example.com/x",
            "https://host:8443/x@v2",
            "ssh://git@host:22/x",
            "git@host:team/x.git",
            "/srv/git/a@b:c",
            "file:///srv/x",
        ] {
            assert!(!has_address_password(address), "{address}");
            assert_eq!(hide_address_password(address), address);
        }
    }
}
