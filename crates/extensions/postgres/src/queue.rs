//! The queue of tasks for workers, in the database of the conversations: which worker has which
//! task, for how long, and with what result.
//!
//! Invariants: a task has one worker at a time, and each claim to a task has an epoch. Every write
//! by a worker names its epoch and is rejected once there is a later one. A worker loses its tasks
//! if it sends no heartbeat for the length of its lease.
//!
//! All methods block and must not be called within an async runtime. The statements name the types
//! of all parameters and constants, for the reason given in `locks.rs`.

mod admin;
mod fence;
mod files;
pub(crate) mod format;
mod lease_writes;
mod listener;
mod spending_limits;
mod tasks;
mod worker;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use haft_store::StoreError;
use haft_store::backend::encode_json;
use serde::de::DeserializeOwned;
use sqlx::PgConnection;

use crate::connect::PostgresServer;
use crate::failure::{PostgresFailure, decode_json};
use crate::session::{self, PostgresSession};

pub use self::admin::{PruneReport, TaskFilter};
pub use self::fence::{TaskLease, TaskTakenOver};
pub(crate) use self::fence::{check_lease as check_fence, count_attempt};
pub use self::files::{KeptFile, KeptKind, TASK_RECORD_PATH};
pub use self::lease_writes::ReleaseReason;
pub use self::listener::{QueueListener, QueueSignal};
pub use self::spending_limits::SpendingLimit;
pub use self::tasks::{
    AddedTask, LabelCost, NewTask, QueueStatistics, QueuedTask, TASK_STATUSES, TaskEnd,
    TaskRequest, TaskState, WorkerRow, format_utc, has_address_password, hide_address_password,
};
pub(crate) use self::worker::set_connection_name;
pub use self::worker::{Heartbeat, LeaseMismatch, TaskSpending, WorkerProfile, WorkerStatus};

/// The latest allowed value of a task's earliest start: the year 3000, in milliseconds since 1970.
/// The server's timestamps cannot represent arbitrarily late times.
const MAX_NOT_BEFORE_MS: i64 = 32_503_680_000_000;

/// The SQL expression that wakes the workers that wait for a task.
macro_rules! notify_workers {
    ($payload:literal) => {
        concat!(
            "pg_notify('haft_queue_'::text || to_hex(hashtextextended(current_schema()::text, 0::bigint)), '",
            $payload,
            "'::text)"
        )
    };
}
use notify_workers;

/// Builds a query that returns each task as one row of JSON.
macro_rules! task_rows {
    ($rest:literal) => {
        concat!(include_str!("statements/queue_task.sql"), $rest, ") v")
    };
}

/// The task queue of a team, in tables on a PostgreSQL server.
pub struct TaskQueue {
    session: Mutex<Option<PostgresSession>>,
    server: Arc<PostgresServer>,
}

impl Drop for TaskQueue {
    fn drop(&mut self) {
        // A runtime can't be dropped within another runtime.
        let session = self
            .session
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        drop(std::thread::spawn(move || drop(session)));
    }
}

impl TaskQueue {
    /// Connects to the server of the team store. Creates the queue's tables if they are missing
    /// and the role may do that.
    pub fn connect(url: &str, lock_timeout: Duration) -> Result<Self, StoreError> {
        Self::connect_to(PostgresServer::new(url, lock_timeout)?)
    }

    /// Like [`Self::connect`], but every operation fails after `timeout`. A server that vanished
    /// without closing its connections never answers.
    pub fn connect_with_timeout(
        url: &str,
        lock_timeout: Duration,
        timeout: Duration,
    ) -> Result<Self, StoreError> {
        Self::connect_to(PostgresServer::new(url, lock_timeout)?.with_timeout(timeout))
    }

    fn connect_to(server: PostgresServer) -> Result<Self, StoreError> {
        let server = Arc::new(server);
        let queue = Self {
            session: Mutex::new(Some(PostgresSession::new(&server)?)),
            server,
        };
        if !queue.run_statement(async |connection| format::is_current(connection).await)? {
            queue.run_transaction(async |connection| {
                let migrated = format::migrate_tables(connection).await;
                migrated.map_err(PostgresFailure::explain_migration)
            })?;
        }
        Ok(queue)
    }

    /// Runs `job`, whose statements are transactions of their own.
    fn run_statement<T>(
        &self,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, StoreError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session.as_mut().ok_or(StoreError::Closed)?;
        session
            .run_with_timeout(Duration::ZERO, job)
            .map_err(|failure| self.server.to_store_error(failure))
    }

    fn run_transaction<T>(
        &self,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, StoreError> {
        self.run_statement(async |connection| {
            session::run_transaction(connection, session::BEGIN_WRITE, job).await
        })
    }

    /// Adds a task to the queue, unless the queue already contains a task with its unique key.
    pub fn add_task(&self, new: &NewTask) -> Result<AddedTask, StoreError> {
        let request = encode_json("a task", &new.request)?;
        self.run_statement(async |connection| {
            let sql = concat!(
                "WITH added AS (INSERT INTO queue_tasks
                     (priority, not_before, due, unique_key, labels, request, bundle, conversation, usd_limit, token_limit, max_attempts,
                      repository, retries, retry_seconds)
                 VALUES ($1, greatest(now(), to_timestamp($2::double precision / 1000::double precision)),
                         to_timestamp($2::double precision / 1000::double precision) <= now(), $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
                 ON CONFLICT (unique_key) DO NOTHING RETURNING id)
                 SELECT id, (SELECT count(", notify_workers!("task"), ")) FROM added"
            );
            let query = sqlx::query_as(sql)
                .bind(new.priority)
                .bind(new.not_before.unwrap_or(0).clamp(0, MAX_NOT_BEFORE_MS) as f64)
                .bind(&new.unique_key)
                .bind(&new.labels)
                .bind(&request)
                .bind(&new.bundle)
                .bind(&new.conversation)
                .bind(new.usd_limit)
                .bind(new.token_limit)
                .bind(new.max_attempts)
                .bind(&new.request.repository)
                .bind(new.retries)
                .bind(new.retry_after.as_secs_f64());
            let added: Option<(i64, i64)> = query.fetch_optional(&mut *connection).await?;
            if let Some((id, _)) = added {
                return Ok(AddedTask { id, is_new: true });
            }
            let sql = "SELECT id FROM queue_tasks WHERE unique_key = $1";
            let id = sqlx::query_scalar(sql).bind(&new.unique_key).fetch_one(connection).await?;
            Ok(AddedTask { id, is_new: false })
        })
    }

    /// Returns the tasks that `filter` selects, newest first, or those that a new worker would take,
    /// in the order in which it takes them.
    pub fn list_tasks(
        &self,
        filter: &TaskFilter,
        limit: i64,
    ) -> Result<Vec<QueuedTask>, StoreError> {
        let sql = if filter.is_ready() {
            task_rows!(
                "WHERE $1::text IS NOT NULL AND t.id IN (SELECT r.id FROM queue_ready r) AND ($2::text IS NULL OR $2::text = ANY (t.labels))
                 ORDER BY t.priority DESC, t.id LIMIT $3::bigint"
            )
        } else {
            task_rows!(
                "WHERE ($1::text IS NULL OR t.status = $1::text OR t.state = $1::text) AND ($2::text IS NULL OR $2::text = ANY (t.labels))
                 ORDER BY t.id DESC LIMIT $3::bigint"
            )
        };
        self.run_statement(async |connection| {
            let query = sqlx::query_scalar(sql)
                .bind(&filter.status)
                .bind(&filter.label)
                .bind(limit);
            decode_rows(&query.fetch_all(connection).await?)
        })
    }

    /// Returns the task with this id, or `None` if it does not exist.
    pub fn get_task(&self, id: i64) -> Result<Option<QueuedTask>, StoreError> {
        self.run_statement(async |connection| find_task(connection, id).await)
    }

    /// Returns the patch with the changes that a task made, or `None` if there is none.
    pub fn read_patch(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_bytes("SELECT patch FROM queue_tasks WHERE id = $1", id)
    }

    /// Returns the git bundle that was added with a task.
    pub fn read_bundle(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.read_bytes("SELECT bundle FROM queue_tasks WHERE id = $1", id)
    }

    fn read_bytes(&self, sql: &'static str, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        self.run_statement(async |connection| {
            Ok(sqlx::query_scalar(sql)
                .bind(id)
                .fetch_optional(connection)
                .await?
                .flatten())
        })
    }

    /// Cancels a task: a waiting task is removed from the queue, and the worker of a running task
    /// is asked to end it. Returns false if the task has already ended.
    pub fn cancel(&self, id: i64) -> Result<bool, StoreError> {
        let sql = concat!(
            "WITH changed AS (UPDATE queue_tasks SET cancel_asked = true, state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE state END,
                 ended_at = CASE WHEN state = 'queued' THEN now() END
             WHERE id = $1 AND state IN ('queued', 'running') RETURNING id)
             SELECT count(", notify_workers!("cancel"), ") FROM changed"
        );
        self.run_statement(async |connection| {
            let changed: i64 = sqlx::query_scalar(sql)
                .bind(id)
                .fetch_one(connection)
                .await?;
            Ok(changed == 1)
        })
    }

    /// Puts an ended task back into the queue, to continue in `conversation`, with a fresh clone
    /// and its limits anew. Its spending so far still counts for the limits of the day. Returns
    /// false if the task has not ended.
    pub fn retry(&self, id: i64, conversation: &str) -> Result<bool, StoreError> {
        self.run_transaction(async |connection| {
            let query = sqlx::query(include_str!("statements/queue_retry.sql"))
                .bind(id)
                .bind(conversation)
                .bind(0.0)
                .bind(false);
            let changed = query.execute(&mut *connection).await?.rows_affected() == 1;
            if changed {
                sqlx::query("DELETE FROM queue_files WHERE task = $1")
                    .bind(id)
                    .execute(&mut *connection)
                    .await?;
                let notify = concat!("SELECT ", notify_workers!("task"));
                sqlx::query(notify).execute(connection).await?;
            }
            Ok(changed)
        })
    }

    /// Returns the number of tasks per status and of those that a new worker would take, the costs
    /// per label, the age of the oldest waiting task, and the paused labels.
    pub fn statistics(&self) -> Result<QueueStatistics, StoreError> {
        self.run_statement(async |connection| {
            let states: Vec<(String, i64)> =
                sqlx::query_as("SELECT status, count(*) FROM queue_tasks GROUP BY status ORDER BY status")
                    .fetch_all(&mut *connection)
                    .await?;
            let sql = "SELECT row_to_json(v)::text FROM (SELECT label, count(*) AS tasks,
                           sum(spent_usd + earlier_usd) AS usd, sum(spent_tokens + earlier_tokens)::bigint AS tokens,
                           sum(CASE WHEN day = (now() AT TIME ZONE 'UTC')::date THEN spent_usd ELSE 0::double precision END
                               + CASE WHEN earlier_day = (now() AT TIME ZONE 'UTC')::date THEN earlier_day_usd ELSE 0::double precision END) AS usd_today
                       FROM queue_tasks, unnest(CASE WHEN labels = '{}'::text[] THEN '{\"\"}'::text[] ELSE labels END) AS label
                       GROUP BY label ORDER BY label) v";
            let labels = decode_rows(&sqlx::query_scalar(sql).fetch_all(&mut *connection).await?)?;
            let oldest = "SELECT coalesce((extract(epoch FROM max(now() - greatest(created_at, not_before))) * 1000::numeric)::bigint, 0::bigint)
                          FROM queue_tasks WHERE state = 'queued' AND not_before <= now()";
            let oldest_ms = sqlx::query_scalar(oldest).fetch_one(&mut *connection).await?;
            let ready = sqlx::query_scalar("SELECT count(*) FROM queue_ready")
                .fetch_one(&mut *connection)
                .await?;
            let paused = sqlx::query_scalar("SELECT label FROM queue_pauses ORDER BY label")
                .fetch_all(connection)
                .await?;
            Ok(QueueStatistics { states: states.into_iter().collect(), ready, labels, oldest_ms, paused })
        })
    }

    /// Returns the workers whose last heartbeat was within the last hour.
    pub fn workers(&self) -> Result<Vec<WorkerRow>, StoreError> {
        let sql = "SELECT row_to_json(v)::text FROM (SELECT w.id, w.name, w.slots, w.labels, w.draining, w.problem,
                       (extract(epoch FROM now() - w.seen) * 1000::numeric)::bigint AS silent_ms,
                       (SELECT count(*) FROM queue_tasks t WHERE t.worker = w.id AND t.state = 'running') AS tasks
                   FROM queue_workers w WHERE w.seen > now() - interval '1 hour' ORDER BY w.id) v";
        self.run_statement(async |connection| {
            decode_rows(&sqlx::query_scalar(sql).fetch_all(connection).await?)
        })
    }

    /// Returns the lines of a task's log that follow the line number `after`, each with its number.
    pub fn read_log(&self, task: i64, after: i64) -> Result<Vec<(i64, String)>, StoreError> {
        let sql =
            "SELECT number, line FROM queue_log WHERE task = $1 AND number > $2 ORDER BY number";
        self.run_statement(async |connection| {
            Ok(sqlx::query_as(sql)
                .bind(task)
                .bind(after)
                .fetch_all(connection)
                .await?)
        })
    }
}

async fn find_task(
    connection: &mut PgConnection,
    id: i64,
) -> Result<Option<QueuedTask>, PostgresFailure> {
    let row = sqlx::query_scalar(task_rows!("WHERE t.id = $1::bigint"))
        .bind(id)
        .fetch_all(connection)
        .await?;
    Ok(decode_rows(&row)?.pop())
}

fn decode_rows<T: DeserializeOwned>(rows: &[String]) -> Result<Vec<T>, PostgresFailure> {
    rows.iter()
        .map(|row| decode_json(|| "a row of the queue".to_owned(), row))
        .collect()
}
