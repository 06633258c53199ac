//! The worker's side of the queue: sends heartbeats, takes tasks, records their spending, and ends
//! them.

use std::time::Duration;

use haft_store::StoreError;
use haft_store::backend::encode_json;
use sqlx::PgConnection;

use super::fence::{self, TaskLease};
use super::spending_limits::{SpendingLimit, to_limit_columns};
use super::tasks::{QueuedTask, TaskEnd};
use super::{TaskQueue, find_task};
use crate::failure::PostgresFailure;

/// The identity of a worker, the tasks that it accepts, and the limits on their spending.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerProfile {
    /// The id of the worker in the queue.
    pub worker: i64,
    /// The time without a heartbeat after which a worker loses its tasks.
    pub lease: Duration,
    /// The labels of the tasks that the worker accepts. If empty, it accepts all tasks.
    pub labels: Vec<String>,
    /// The labels of the tasks that the worker does not accept.
    pub except: Vec<String>,
    /// The spending limit in US dollars for tasks that have no limit of their own.
    pub usd_limit: Option<f64>,
    /// The token limit for tasks that have no limit of their own.
    pub token_limit: Option<i64>,
    /// The daily spending limits, which apply to all workers together.
    pub limits: Vec<SpendingLimit>,
}

/// The reason why a worker returns a task to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReason {
    /// The worker is shutting down. The attempt is not counted.
    HandedOver,
    /// The run failed because of something outside the task, such as the model's server. The task
    /// can be taken again after this time.
    ExternalFailure(Duration),
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

/// The SQL query that selects the next task. Tasks that lost their worker come first; all other
/// tasks are ordered by priority and age. A task that could exceed the rest of a daily limit is not
/// selected. For a lost run, the maximum cost of its last request counts as spent.
const NEXT_TASK_SQL: &str = include_str!("../statements/queue_next.sql");

/// The SQL statement that takes the selected task, if it is still queued or its worker is still
/// lost. The row is checked again, because it may have changed between the selection and the lock.
const TAKE_TASK_SQL: &str = include_str!("../statements/queue_take.sql");

/// The SQL statement that ends the connections of a task's earlier runs, because a worker that
/// hangs would keep its connections and, with them, its write locks. Connections are found by name.
/// The name contains the schema, because another schema of the database may have a queue of its
/// own.
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

impl TaskQueue {
    /// Registers a worker and returns its id.
    pub fn add_worker(&self, name: &str, slots: i64, labels: &[String]) -> Result<i64, StoreError> {
        let sql =
            "INSERT INTO queue_workers (name, slots, labels) VALUES ($1, $2, $3) RETURNING id";
        self.run_transaction(async |connection| {
            Ok(sqlx::query_scalar(sql)
                .bind(name)
                .bind(slots)
                .bind(labels)
                .fetch_one(connection)
                .await?)
        })
    }

    /// Records a heartbeat. Returns the leases of the worker's running tasks, each with a flag that
    /// is true if the task is to be canceled.
    pub fn record_heartbeat(
        &self,
        worker: i64,
        draining: bool,
    ) -> Result<Vec<(TaskLease, bool)>, StoreError> {
        self.run_transaction(async |connection| {
            let seen = "UPDATE queue_workers SET seen = now(), draining = $2 WHERE id = $1";
            sqlx::query(seen).bind(worker).bind(draining).execute(&mut *connection).await?;
            let sql = "SELECT id, epoch, cancel_asked FROM queue_tasks WHERE worker = $1 AND state = 'running'";
            let held: Vec<(i64, i64, bool)> = sqlx::query_as(sql).bind(worker).fetch_all(connection).await?;
            Ok(held.into_iter().map(|(task, epoch, cancel)| (TaskLease { task, epoch }, cancel)).collect())
        })
    }

    /// Removes a worker. Other workers may take its remaining tasks at once.
    pub fn remove_worker(&self, worker: i64) -> Result<(), StoreError> {
        let sql = "DELETE FROM queue_workers WHERE id = $1";
        self.run_transaction(async |connection| {
            Ok(sqlx::query(sql)
                .bind(worker)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// Takes the next task for a worker, if there is one. Tasks that lost too many workers are
    /// marked as failed.
    pub fn take_task(
        &self,
        taker: &WorkerProfile,
    ) -> Result<Option<(TaskLease, QueuedTask)>, StoreError> {
        self.run_transaction(async |connection| {
            if !taker.limits.is_empty() {
                // The limits apply to the sum over all workers, so one worker at a time may take a
                // task.
                let lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || ' queue limits'::text, 0::bigint))";
                sqlx::query(lock).execute(&mut *connection).await?;
            }
            loop {
                let Some(id) = find_next_task(connection, taker).await? else { return Ok(None) };
                let Some(task) = find_task(connection, id).await? else { return Ok(None) };
                if task.attempts >= task.max_attempts {
                    fail_task(connection, &task).await?;
                    continue;
                }
                let take = sqlx::query(TAKE_TASK_SQL).bind(id).bind(taker.worker).bind(taker.usd_limit).bind(taker.token_limit);
                let taken = take.bind(taker.lease.as_secs_f64()).execute(&mut *connection).await?;
                if taken.rows_affected() == 0 {
                    continue;
                }
                let lease = TaskLease { task: id, epoch: task.epoch + 1 };
                let task = id.to_string();
                let epoch = lease.epoch.to_string();
                sqlx::query(END_EARLIER_RUNS_SQL).bind(task).bind(epoch).execute(&mut *connection).await?;
                return Ok(find_task(connection, id).await?.map(|task| (lease, task)));
            }
        })
    }

    /// Runs `job` in a transaction. Fails if `lease` is no longer the newest lease of its task.
    pub(super) fn run_with_lease<T>(
        &self,
        lease: TaskLease,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, StoreError> {
        self.run_transaction(async |connection| {
            fence::check_lease(connection, lease).await?;
            job(connection).await
        })
    }

    /// Records the commit that the task's workspace was created from. If another worker takes over
    /// the task, it starts from this commit.
    pub fn set_base_commit(&self, lease: TaskLease, base: &str) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET base = coalesce(base, $2) WHERE id = $1";
        self.run_with_lease(lease, async |connection| {
            Ok(sqlx::query(sql)
                .bind(lease.task)
                .bind(base)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// Records the spending of a task and the maximum cost of its current request.
    pub fn record_spending(&self, lease: TaskLease, spent: TaskSpending) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET spent_usd = $2, spent_tokens = $3, flying_usd = $4, flying_tokens = $5 WHERE id = $1";
        self.run_with_lease(lease, async |connection| {
            let query = sqlx::query(sql)
                .bind(lease.task)
                .bind(spent.usd)
                .bind(spent.tokens);
            Ok(query
                .bind(spent.flying_usd)
                .bind(spent.flying_tokens)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// Appends lines to the log of a task. Fails if the lease was lost.
    pub fn append_log(&self, lease: TaskLease, lines: &[String]) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO queue_log (task, line) SELECT $1, line FROM unnest($2::text[]) AS line";
        self.run_with_lease(lease, async |connection| {
            Ok(sqlx::query(sql)
                .bind(lease.task)
                .bind(lines)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// Ends a task and deletes its saved files.
    pub fn finish_task(&self, lease: TaskLease, end: &TaskEnd) -> Result<(), StoreError> {
        let result = encode_json("the result of a task", &end.result)?;
        let sql = "UPDATE queue_tasks SET state = $2, result = $3, patch = $4, branch = $5, ended_at = now(),
                       reserved_usd = 0, reserved_tokens = 0, flying_usd = 0, flying_tokens = 0 WHERE id = $1";
        self.run_with_lease(lease, async |connection| {
            let query = sqlx::query(sql)
                .bind(lease.task)
                .bind(end.state.name())
                .bind(&result);
            query
                .bind(&end.patch)
                .bind(&end.branch)
                .execute(&mut *connection)
                .await?;
            let files = "DELETE FROM queue_files WHERE task = $1";
            Ok(sqlx::query(files)
                .bind(lease.task)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// Returns a task to the queue, so that another worker can take it.
    pub fn release_task(&self, lease: TaskLease, why: ReleaseReason) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET state = 'queued', worker = NULL, attempts = attempts - $3::bigint, reserved_usd = 0, reserved_tokens = 0,
                       not_before = now() + $2::double precision * interval '1 second' WHERE id = $1";
        self.run_with_lease(lease, async |connection| {
            let (after, back) = match why {
                ReleaseReason::HandedOver => (Duration::ZERO, 1_i64),
                ReleaseReason::ExternalFailure(after) => (after, 0),
            };
            let query = sqlx::query(sql)
                .bind(lease.task)
                .bind(after.as_secs_f64())
                .bind(back);
            Ok(query.execute(connection).await.map(drop)?)
        })
    }
}

async fn find_next_task(
    connection: &mut PgConnection,
    taker: &WorkerProfile,
) -> Result<Option<i64>, PostgresFailure> {
    let (labels, usd, tokens) = to_limit_columns(&taker.limits);
    let query = sqlx::query_scalar(NEXT_TASK_SQL)
        .bind(taker.lease.as_secs_f64())
        .bind(&taker.labels)
        .bind(&taker.except)
        .bind(labels)
        .bind(usd)
        .bind(tokens)
        .bind(taker.usd_limit)
        .bind(taker.token_limit);
    Ok(query.fetch_optional(connection).await?)
}

async fn fail_task(
    connection: &mut PgConnection,
    task: &QueuedTask,
) -> Result<(), PostgresFailure> {
    let sql = "UPDATE queue_tasks SET state = 'failed', epoch = epoch + 1, ended_at = now(), reserved_usd = 0, reserved_tokens = 0,
                   spent_usd = spent_usd + flying_usd, spent_tokens = spent_tokens + flying_tokens, flying_usd = 0, flying_tokens = 0, result = $2
               WHERE id = $1";
    let message = format!(
        "given up after {} attempts; the log says what became of them",
        task.attempts
    );
    let result = encode_json(
        "a result",
        &serde_json::json!({"outcome": "failed", "code": "given_up", "message": message}),
    )?;
    Ok(sqlx::query(sql)
        .bind(task.id)
        .bind(result)
        .execute(connection)
        .await
        .map(drop)?)
}
