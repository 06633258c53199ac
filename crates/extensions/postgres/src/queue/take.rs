//! A worker's side of the queue: it is seen, takes tasks, says what they spend, and ends them.

use std::time::Duration;

use haft_store::StoreError;
use haft_store::backend::encode;
use sqlx::PgConnection;

use super::fence::{self, TaskLease};
use super::limits::{SpendingLimit, columns};
use super::model::{QueuedTask, TaskEnd};
use super::{TaskQueue, one};
use crate::failure::PostgresFailure;

/// Who takes tasks, and which.
#[derive(Clone, Debug, PartialEq)]
pub struct Taker {
    /// The worker's number.
    pub worker: i64,
    /// After this long without a sign a worker has lost its tasks.
    pub lease: Duration,
    /// Only tasks with one of these labels; any when empty.
    pub labels: Vec<String>,
    /// No task with one of these labels.
    pub except: Vec<String>,
    /// What a task may spend that names no limit of its own.
    pub usd_limit: Option<f64>,
    /// The same in tokens.
    pub token_limit: Option<i64>,
    /// What all workers together may spend in a day.
    pub limits: Vec<SpendingLimit>,
}

/// Why a task is given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenBack {
    /// The worker ends. The taking does not count.
    HandedOver,
    /// Something outside the task failed, such as the server; it is tried again after this time.
    Trouble(Duration),
}

/// What a task has spent in all its runs, and what the request under way may cost at most.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskSpending {
    /// Money, as far as prices are known.
    pub usd: f64,
    /// Tokens.
    pub tokens: i64,
    /// Money of the request that is about to be sent.
    pub flying_usd: f64,
    /// Its tokens.
    pub flying_tokens: i64,
}

/// The next task: those that lost their worker first, then by priority and age. One that could
/// spend more than what is left of the day waits. What a lost run had under way counts as spent.
const NEXT: &str = include_str!("../statements/queue_next.sql");

/// The row is locked by now, and looked at again: what was seen of it and of its worker may be
/// older than the lock.
const TAKE: &str = include_str!("../statements/queue_take.sql");

/// A worker that hangs keeps its connections, and with them the right to write to conversations:
/// the server ends them. Another schema of the database may have a queue of its own.
const END_EARLIER: &str = include_str!("../statements/queue_end_earlier.sql");

/// Gives a connection the name of its run.
pub(crate) async fn name_connection(
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
    /// Notes a worker, and gives its number.
    pub fn enter(&self, name: &str, slots: i64, labels: &[String]) -> Result<i64, StoreError> {
        let sql =
            "INSERT INTO queue_workers (name, slots, labels) VALUES ($1, $2, $3) RETURNING id";
        self.write(async |connection| {
            Ok(sqlx::query_scalar(sql)
                .bind(name)
                .bind(slots)
                .bind(labels)
                .fetch_one(connection)
                .await?)
        })
    }

    /// A sign of life. Gives what the worker has: the leases, and whether somebody asks it to end
    /// the task.
    pub fn beat(&self, worker: i64, draining: bool) -> Result<Vec<(TaskLease, bool)>, StoreError> {
        self.write(async |connection| {
            let seen = "UPDATE queue_workers SET seen = now(), draining = $2 WHERE id = $1";
            sqlx::query(seen).bind(worker).bind(draining).execute(&mut *connection).await?;
            let sql = "SELECT id, epoch, cancel_asked FROM queue_tasks WHERE worker = $1 AND state = 'running'";
            let held: Vec<(i64, i64, bool)> = sqlx::query_as(sql).bind(worker).fetch_all(connection).await?;
            Ok(held.into_iter().map(|(task, epoch, cancel)| (TaskLease { task, epoch }, cancel)).collect())
        })
    }

    /// The worker goes. What it still has is free for others at once.
    pub fn leave(&self, worker: i64) -> Result<(), StoreError> {
        let sql = "DELETE FROM queue_workers WHERE id = $1";
        self.write(async |connection| {
            Ok(sqlx::query(sql)
                .bind(worker)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// The next task for a worker, if there is one. A task that has lost too many workers has
    /// failed.
    pub fn take(&self, taker: &Taker) -> Result<Option<(TaskLease, QueuedTask)>, StoreError> {
        self.write(async |connection| {
            if !taker.limits.is_empty() {
                // What is left of a day is one sum, for all workers.
                let lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || ' queue limits'::text, 0::bigint))";
                sqlx::query(lock).execute(&mut *connection).await?;
            }
            loop {
                let Some(id) = next(connection, taker).await? else { return Ok(None) };
                let Some(task) = one(connection, id).await? else { return Ok(None) };
                if task.attempts >= task.max_attempts {
                    give_up(connection, &task).await?;
                    continue;
                }
                let take = sqlx::query(TAKE).bind(id).bind(taker.worker).bind(taker.usd_limit).bind(taker.token_limit);
                let taken = take.bind(taker.lease.as_secs_f64()).execute(&mut *connection).await?;
                if taken.rows_affected() == 0 {
                    continue;
                }
                let lease = TaskLease { task: id, epoch: task.epoch + 1 };
                let task = id.to_string();
                let epoch = lease.epoch.to_string();
                sqlx::query(END_EARLIER).bind(task).bind(epoch).execute(&mut *connection).await?;
                return Ok(one(connection, id).await?.map(|task| (lease, task)));
            }
        })
    }

    /// Does something in the name of a lease, while it is the newest.
    pub(super) fn within<T>(
        &self,
        lease: TaskLease,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, StoreError> {
        self.write(async |connection| {
            fence::check(connection, lease).await?;
            job(connection).await
        })
    }

    /// Notes the commit a workspace began with: whoever takes the task over begins with the same.
    pub fn begin(&self, lease: TaskLease, base: &str) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET base = coalesce(base, $2) WHERE id = $1";
        self.within(lease, async |connection| {
            Ok(sqlx::query(sql)
                .bind(lease.task)
                .bind(base)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// Notes what a task has spent so far, and what it is about to.
    pub fn spend(&self, lease: TaskLease, spent: TaskSpending) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET spent_usd = $2, spent_tokens = $3, flying_usd = $4, flying_tokens = $5 WHERE id = $1";
        self.within(lease, async |connection| {
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

    /// Adds to what is logged of a task.
    pub fn append_log(&self, lease: TaskLease, lines: &[String]) -> Result<(), StoreError> {
        let sql =
            "INSERT INTO queue_log (task, line) SELECT $1, line FROM unnest($2::text[]) AS line";
        self.within(lease, async |connection| {
            Ok(sqlx::query(sql)
                .bind(lease.task)
                .bind(lines)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }

    /// Ends a task. Its files are not needed any more.
    pub fn finish(&self, lease: TaskLease, end: &TaskEnd) -> Result<(), StoreError> {
        let result = encode("the result of a task", &end.result)?;
        let sql = "UPDATE queue_tasks SET state = $2, result = $3, patch = $4, branch = $5, ended_at = now(),
                       reserved_usd = 0, reserved_tokens = 0, flying_usd = 0, flying_tokens = 0 WHERE id = $1";
        self.within(lease, async |connection| {
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

    /// Gives a task back: another worker goes on with it.
    pub fn release(&self, lease: TaskLease, why: GivenBack) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET state = 'queued', worker = NULL, attempts = attempts - $3::bigint, reserved_usd = 0, reserved_tokens = 0,
                       not_before = now() + $2::double precision * interval '1 second' WHERE id = $1";
        self.within(lease, async |connection| {
            let (after, back) = match why {
                GivenBack::HandedOver => (Duration::ZERO, 1_i64),
                GivenBack::Trouble(after) => (after, 0),
            };
            let query = sqlx::query(sql)
                .bind(lease.task)
                .bind(after.as_secs_f64())
                .bind(back);
            Ok(query.execute(connection).await.map(drop)?)
        })
    }
}

async fn next(
    connection: &mut PgConnection,
    taker: &Taker,
) -> Result<Option<i64>, PostgresFailure> {
    let (labels, usd, tokens) = columns(&taker.limits);
    let query = sqlx::query_scalar(NEXT)
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

async fn give_up(connection: &mut PgConnection, task: &QueuedTask) -> Result<(), PostgresFailure> {
    let sql = "UPDATE queue_tasks SET state = 'failed', epoch = epoch + 1, ended_at = now(), reserved_usd = 0, reserved_tokens = 0,
                   spent_usd = spent_usd + flying_usd, spent_tokens = spent_tokens + flying_tokens, flying_usd = 0, flying_tokens = 0, result = $2
               WHERE id = $1";
    let message = format!(
        "given up after {} attempts; the log says what became of them",
        task.attempts
    );
    let result = encode(
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
