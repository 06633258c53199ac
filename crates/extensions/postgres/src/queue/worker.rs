//! The worker's side of the queue: sends heartbeats and takes tasks.

use std::time::Duration;

use haft_store::StoreError;
use serde::Deserialize;
use sqlx::PgConnection;

use super::admin::remove_lost_workers;
use super::fence::TaskLease;
use super::format::{self, FORMAT_VERSION};
use super::spending_limits::{SpendingLimit, to_limit_columns};
use super::tasks::QueuedTask;
use super::{TaskQueue, find_task};
use crate::failure::{PostgresFailure, decode_json};

/// The number of claims in a row without a stored message after which a task is given up. Claims
/// are separated by pauses that grow to five minutes, so this takes more than half an hour.
pub(super) const MAX_FAILURES: i64 = 20;

/// The identity of a worker, the tasks that it accepts, and the limits on their spending.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerProfile {
    /// The id of the worker in the queue.
    pub worker: i64,
    /// The worker's name in the queue.
    pub name: String,
    /// The maximum number of tasks that run at the same time.
    pub slots: i64,
    /// The time without a heartbeat after which the worker loses its tasks.
    pub lease: Duration,
    /// The labels of the tasks that the worker accepts. If empty, it accepts all tasks.
    pub labels: Vec<String>,
    /// The labels of the tasks that the worker does not accept.
    pub except: Vec<String>,
    /// The only task that the worker accepts, even before its time.
    pub only: Option<i64>,
    /// The tasks that the worker still runs under an earlier claim. It does not take them again.
    pub holding: Vec<i64>,
    /// The spending limit in US dollars for tasks that have no limit of their own.
    pub usd_limit: Option<f64>,
    /// The token limit for tasks that have no limit of their own.
    pub token_limit: Option<i64>,
    /// The daily spending limits, which apply to all workers together.
    pub limits: Vec<SpendingLimit>,
    /// The maximum number of tasks of one repository that run at the same time.
    pub per_repository: Option<i64>,
    /// The maximum number of tasks with a label that run at the same time.
    pub per_label: Vec<(String, i64)>,
}

/// The spending of a task over all its runs, and the maximum additional spending of its current
/// request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskSpending {
    /// The spending in US dollars, as far as prices are known.
    pub usd: f64,
    /// The number of tokens that the task has used.
    pub tokens: i64,
    /// The maximum cost of the current request, in US dollars.
    pub flying_usd: f64,
    /// The maximum number of tokens that the current request can use.
    pub flying_tokens: i64,
}

/// The state that a worker reports with its heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerStatus {
    /// True if the worker is shutting down.
    pub draining: bool,
    /// The reason why the worker takes no tasks, or `None` if it is healthy.
    pub problem: Option<String>,
}

/// The queue's answer to a heartbeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// The leases of the worker's running tasks, each with a flag that is true if the task is to be
    /// canceled.
    pub held: Vec<(TaskLease, bool)>,
    /// The time until the next scheduled task can be taken.
    pub next_due: Option<Duration>,
}

/// The error for a worker whose lease differs from that of the other workers.
#[derive(Debug, thiserror::Error)]
#[error(
    "the other workers of this queue have a lease of {} s, this one of {} s; start all with one `--lease`",
    .others.as_secs_f64(), .own.as_secs_f64()
)]
pub struct LeaseMismatch {
    others: Duration,
    own: Duration,
}

/// Builds a statement that begins with the selection of the next task. Tasks are ordered by priority and age. A task that
/// could exceed the rest of a daily limit is not selected. The selection also renews the worker's own
/// liveness: a worker that the others hold for dead takes nothing, and one whose tables have a
/// newer format neither.
macro_rules! next_task {
    ($file:literal) => {
        concat!(
            include_str!("../statements/queue_next.sql"),
            include_str!(concat!("../statements/", $file))
        )
    };
}

/// The SQL statement that ends the connections of a task's earlier runs, because a worker that
/// hangs would keep its connections and, with them, its write locks. Connections are found by name.
/// The name contains the schema, because another schema of the database may have a queue of its
/// own. Connections of another role cannot be ended; the lease of the task excludes their writes.
const END_EARLIER_RUNS_SQL: &str = include_str!("../statements/queue_end_earlier.sql");

/// Sets the name of a connection, which contains the task run that uses the connection.
pub(crate) async fn set_connection_name(
    connection: &mut PgConnection,
    lease: TaskLease,
) -> Result<(), PostgresFailure> {
    let sql = "SELECT set_config('application_name'::text,
                   'haft task '::text || to_hex(hashtextextended(current_schema()::text, 0::bigint)) || ' '::text || $1::text, false)";
    Ok(sqlx::query(sql)
        .bind(format!("{}/{}", lease.task, lease.epoch))
        .execute(connection)
        .await
        .map(drop)?)
}

#[derive(Deserialize)]
struct HeartbeatRow {
    format: i32,
    next_ms: Option<u64>,
    held: Vec<(i64, i64, bool)>,
}

/// Binds the parameters of `queue_next.sql`.
macro_rules! bind_taker {
    ($query:expr, $taker:expr) => {{
        let (labels, usd, tokens) = to_limit_columns(&$taker.limits);
        let (full, most): (Vec<_>, Vec<_>) = $taker.per_label.iter().cloned().unzip();
        $query
            .bind($taker.worker)
            .bind(FORMAT_VERSION)
            .bind(&$taker.labels)
            .bind(&$taker.except)
            .bind(labels)
            .bind(usd)
            .bind(tokens)
            .bind($taker.usd_limit)
            .bind($taker.token_limit)
            .bind(full)
            .bind(most)
            .bind($taker.per_repository)
            .bind($taker.only)
            .bind(&$taker.holding)
    }};
}

impl TaskQueue {
    /// Registers a worker and returns its id. Removes the rows of workers that were silent for an
    /// hour. Fails if the other workers have another lease.
    pub fn add_worker(&self, worker: &WorkerProfile) -> Result<i64, StoreError> {
        let lease = lease_milliseconds(worker.lease);
        self.run_transaction(async |connection| {
            let lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || ' queue workers'::text, 0::bigint))";
            sqlx::query(lock).execute(&mut *connection).await?;
            remove_lost_workers(&mut *connection).await?;
            let sql = "SELECT lease_ms FROM queue_workers WHERE lease_ms <> $1
                       AND seen >= now() - interval '1 millisecond' * lease_ms::double precision LIMIT 1";
            let other: Option<i64> = sqlx::query_scalar(sql)
                .bind(lease)
                .fetch_optional(&mut *connection)
                .await?;
            if let Some(other) = other {
                let others = Duration::from_millis(other.unsigned_abs());
                return Err(PostgresFailure::Store(StoreError::Database {
                    path: "the queue".into(),
                    source: Box::new(LeaseMismatch { others, own: worker.lease }),
                }));
            }
            let sql = "INSERT INTO queue_workers (name, slots, labels, lease_ms) VALUES ($1, $2, $3, $4) RETURNING id";
            Ok(sqlx::query_scalar(sql)
                .bind(&worker.name)
                .bind(worker.slots)
                .bind(&worker.labels)
                .bind(lease)
                .fetch_one(connection)
                .await?)
        })
    }

    /// Records a heartbeat, in one statement that also keeps the queue tidy: tasks whose time has
    /// come can be taken, and tasks whose worker is silent for longer than its lease are queued
    /// again after a pause, canceled if that was asked for, or given up after too many attempts.
    pub fn record_heartbeat(
        &self,
        worker: &WorkerProfile,
        status: &WorkerStatus,
    ) -> Result<Heartbeat, StoreError> {
        let sql = include_str!("../statements/queue_heartbeat.sql");
        let row: HeartbeatRow = self.run_statement(async |connection| {
            let query = sqlx::query_scalar(sql)
                .bind(worker.worker)
                .bind(&worker.name)
                .bind(worker.slots)
                .bind(&worker.labels)
                .bind(lease_milliseconds(worker.lease))
                .bind(status.draining)
                .bind(&status.problem)
                .bind(MAX_FAILURES)
                .bind(cancelled_result())
                .bind(given_up_result());
            let answer: String = query.fetch_one(connection).await?;
            let row: HeartbeatRow =
                decode_json(|| "the answer to a heartbeat".to_owned(), &answer)?;
            format::check_format(row.format)?;
            Ok(row)
        })?;
        let lease = |(task, epoch, cancel)| (TaskLease { task, epoch }, cancel);
        Ok(Heartbeat {
            held: row.held.into_iter().map(lease).collect(),
            next_due: row.next_ms.map(Duration::from_millis),
        })
    }

    /// Removes a worker. Other workers may take its remaining tasks at once.
    pub fn remove_worker(&self, worker: i64) -> Result<(), StoreError> {
        let sql = "DELETE FROM queue_workers WHERE id = $1";
        self.run_statement(async |connection| {
            Ok(sqlx::query(sql)
                .bind(worker)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// Takes the next task for a worker, if there is one. If there is none, this costs one
    /// statement.
    pub fn take_task(
        &self,
        taker: &WorkerProfile,
    ) -> Result<Option<(TaskLease, QueuedTask)>, StoreError> {
        let is_limited = !taker.limits.is_empty()
            || taker.per_repository.is_some()
            || !taker.per_label.is_empty();
        let taken = if is_limited {
            let has_next: bool = self.run_statement(async |connection| {
                let query = sqlx::query_scalar(next_task!("queue_free.sql"));
                Ok(bind_taker!(query, taker).fetch_one(connection).await?)
            })?;
            if !has_next {
                return Ok(None);
            }
            // The limits apply to the sum over all workers, so one worker at a time may take a task.
            self.run_transaction(async |connection| {
                let lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || ' queue limits'::text, 0::bigint))";
                sqlx::query(lock).execute(&mut *connection).await?;
                take_next_task(connection, taker).await
            })?
        } else {
            self.run_statement(async |connection| take_next_task(connection, taker).await)?
        };
        let Some(lease) = taken else {
            return Ok(None);
        };
        self.run_statement(async |connection| {
            if lease.epoch > 1 {
                let task = lease.task.to_string();
                let epoch = lease.epoch.to_string();
                sqlx::query(END_EARLIER_RUNS_SQL)
                    .bind(task)
                    .bind(epoch)
                    .execute(&mut *connection)
                    .await?;
            }
            let task = find_task(connection, lease.task).await?;
            Ok(task.map(|task| (lease, task)))
        })
    }

    /// True if there are tasks that the worker may be able to take later: tasks that other workers
    /// run, and tasks that wait for another attempt. Tasks that are scheduled, blocked by a limit or
    /// paused do not count.
    pub fn has_tasks_to_come(&self, taker: &WorkerProfile) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM queue_tasks t WHERE (t.state = 'running' OR t.state = 'queued' AND NOT t.due AND t.epoch > 0
                           AND (t.attempts > 0 OR t.failures > 0 OR t.retried > 0 OR t.not_before <= now()))
                       AND ($1::text[] = '{}'::text[] OR t.labels && $1::text[]) AND NOT t.labels && $2::text[])";
        self.run_statement(async |connection| {
            Ok(sqlx::query_scalar(sql)
                .bind(&taker.labels)
                .bind(&taker.except)
                .fetch_one(connection)
                .await?)
        })
    }
}

async fn take_next_task(
    connection: &mut PgConnection,
    taker: &WorkerProfile,
) -> Result<Option<TaskLease>, PostgresFailure> {
    let query = sqlx::query_as(next_task!("queue_take.sql"));
    let taken: Option<(i64, i64)> = bind_taker!(query, taker).fetch_optional(connection).await?;
    Ok(taken.map(|(task, epoch)| TaskLease { task, epoch }))
}

fn lease_milliseconds(lease: Duration) -> i64 {
    i64::try_from(lease.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the result of a task that was canceled while no worker ran it.
pub(super) fn cancelled_result() -> String {
    serde_json::json!({"outcome": "aborted", "code": "cancelled", "message": "canceled after its worker was lost"})
        .to_string()
}

/// Returns the result of a task that is given up. The server replaces `ATTEMPTS`.
pub(super) fn given_up_result() -> String {
    let message = "given up after ATTEMPTS attempts; the log says what became of them";
    serde_json::json!({"outcome": "failed", "code": "given_up", "message": message}).to_string()
}
