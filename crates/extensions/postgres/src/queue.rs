//! The queue of tasks for workers, in the database of the conversations: which worker has which
//! task, for how long, and with what result.
//!
//! Invariants: a task has one worker at a time, and each claim to a task has an epoch. Every write
//! by a worker names its epoch and is rejected once there is a later one. A worker loses its tasks
//! if it sends no heartbeat for the length of a lease.
//!
//! All methods block and must not be called within an async runtime. The statements name the types
//! of all parameters and constants, for the reason given in `locks.rs`.

mod fence;
mod files;
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

pub(crate) use self::fence::check_lease as check_fence;
pub use self::fence::{TaskLease, TaskTakenOver};
pub use self::files::{KeptFile, KeptKind, TASK_RECORD_PATH};
pub use self::spending_limits::SpendingLimit;
pub use self::tasks::{
    AddedTask, LabelCost, NewTask, QueueStatistics, QueuedTask, TaskEnd, TaskRequest, TaskState,
    WorkerRow, format_utc,
};
pub(crate) use self::worker::set_connection_name;
pub use self::worker::{ReleaseReason, TaskSpending, WorkerProfile};

const TABLES: &str = include_str!("migrations/queue_0001.sql");
/// The format of the queue's tables. It is separate from that of the conversations, because a team
/// without workers has no queue tables.
const FORMAT_VERSION: i32 = 1;

/// The latest allowed value of a task's earliest start: the year 3000, in milliseconds since 1970.
/// The server's timestamps cannot represent arbitrarily late times.
const MAX_NOT_BEFORE_MS: i64 = 32_503_680_000_000;

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
    /// Connects to the server of the team store, and creates the queue's tables if they are
    /// missing.
    pub fn connect(url: &str, lock_timeout: Duration) -> Result<Self, StoreError> {
        let server = Arc::new(PostgresServer::new(url, lock_timeout)?);
        let queue = Self {
            session: Mutex::new(Some(PostgresSession::new(&server)?)),
            server,
        };
        queue.run_transaction(migrate_tables)?;
        Ok(queue)
    }

    fn run_transaction<T>(
        &self,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, StoreError> {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        let session = session.as_mut().ok_or(StoreError::Closed)?;
        let done = session.run_with_timeout(Duration::ZERO, async |connection| {
            session::run_transaction(connection, session::BEGIN_WRITE, job).await
        });
        done.map_err(|failure| self.server.to_store_error(failure))
    }

    /// Adds a task to the queue, unless the queue already contains a task with its unique key.
    pub fn add_task(&self, new: &NewTask) -> Result<AddedTask, StoreError> {
        let request = encode_json("a task", &new.request)?;
        self.run_transaction(async |connection| {
            let sql = "INSERT INTO queue_tasks
                           (priority, not_before, unique_key, labels, request, bundle, conversation, usd_limit, token_limit, max_attempts)
                       VALUES ($1, greatest(now(), to_timestamp($2::double precision / 1000::double precision)), $3, $4, $5, $6, $7, $8, $9, $10)
                       ON CONFLICT (unique_key) DO NOTHING RETURNING id";
            let query = sqlx::query_scalar(sql)
                .bind(new.priority)
                .bind(new.not_before.unwrap_or(0).clamp(0, MAX_NOT_BEFORE_MS) as f64)
                .bind(&new.unique_key)
                .bind(&new.labels)
                .bind(&request)
                .bind(&new.bundle)
                .bind(&new.conversation)
                .bind(new.usd_limit)
                .bind(new.token_limit)
                .bind(new.max_attempts);
            if let Some(id) = query.fetch_optional(&mut *connection).await? {
                return Ok(AddedTask { id, is_new: true });
            }
            let sql = "SELECT id FROM queue_tasks WHERE unique_key = $1";
            let id = sqlx::query_scalar(sql).bind(&new.unique_key).fetch_one(connection).await?;
            Ok(AddedTask { id, is_new: false })
        })
    }

    /// Returns the tasks in the queue, newest first. `state` and `label`, if set, select only the
    /// tasks in this state or with this label.
    pub fn list_tasks(
        &self,
        state: Option<TaskState>,
        label: Option<&str>,
        limit: i64,
    ) -> Result<Vec<QueuedTask>, StoreError> {
        self.run_transaction(async |connection| {
            let sql = task_rows!(
                "WHERE ($1::text IS NULL OR t.state = $1::text) AND ($2::text IS NULL OR $2::text = ANY (t.labels)) ORDER BY t.id DESC LIMIT $3::bigint"
            );
            let query = sqlx::query_scalar(sql).bind(state.map(TaskState::name)).bind(label).bind(limit);
            decode_rows(&query.fetch_all(connection).await?)
        })
    }

    /// Returns the task with this id, or `None` if it does not exist.
    pub fn get_task(&self, id: i64) -> Result<Option<QueuedTask>, StoreError> {
        self.run_transaction(async |connection| find_task(connection, id).await)
    }

    /// Returns the patch with the changes that a task made, or `None` if there is none.
    pub fn read_patch(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT patch FROM queue_tasks WHERE id = $1";
        self.run_transaction(async |connection| {
            Ok(sqlx::query_scalar(sql)
                .bind(id)
                .fetch_optional(connection)
                .await?
                .flatten())
        })
    }

    /// Returns the git bundle that was added with a task.
    pub fn read_bundle(&self, id: i64) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT bundle FROM queue_tasks WHERE id = $1";
        self.run_transaction(async |connection| {
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
        let sql = "UPDATE queue_tasks SET cancel_asked = true, state = CASE WHEN state = 'queued' THEN 'cancelled' ELSE state END,
                       ended_at = CASE WHEN state = 'queued' THEN now() END
                   WHERE id = $1 AND state IN ('queued', 'running')";
        self.run_transaction(async |connection| {
            Ok(sqlx::query(sql)
                .bind(id)
                .execute(connection)
                .await?
                .rows_affected()
                == 1)
        })
    }

    /// Puts an ended task back into the queue, to continue in `conversation`, with a fresh clone
    /// and its spending reset. Returns false if the task has not ended.
    pub fn retry(&self, id: i64, conversation: &str) -> Result<bool, StoreError> {
        let sql = "UPDATE queue_tasks SET state = 'queued', not_before = now(), cancel_asked = false, attempts = 0, epoch = epoch + 1,
                       conversation = $2, spent_usd = 0, spent_tokens = 0, flying_usd = 0, flying_tokens = 0, ended_at = NULL, result = NULL, patch = NULL,
                       base = NULL
                   WHERE id = $1 AND state NOT IN ('queued', 'running')";
        self.run_transaction(async |connection| {
            let query = sqlx::query(sql).bind(id).bind(conversation);
            let changed = query.execute(&mut *connection).await?.rows_affected() == 1;
            if changed {
                sqlx::query("DELETE FROM queue_files WHERE task = $1")
                    .bind(id)
                    .execute(connection)
                    .await?;
            }
            Ok(changed)
        })
    }

    /// Returns the number of tasks per state, the costs per label, and the age of the oldest
    /// waiting task.
    pub fn statistics(&self) -> Result<QueueStatistics, StoreError> {
        self.run_transaction(async |connection| {
            let states: Vec<(String, i64)> =
                sqlx::query_as("SELECT state, count(*) FROM queue_tasks GROUP BY state ORDER BY state")
                    .fetch_all(&mut *connection)
                    .await?;
            let sql = "SELECT row_to_json(v)::text FROM (SELECT label, count(*) AS tasks, sum(spent_usd) AS usd, sum(spent_tokens)::bigint AS tokens,
                           coalesce(sum(spent_usd) FILTER (WHERE day = (now() AT TIME ZONE 'UTC')::date), 0::double precision) AS usd_today
                       FROM queue_tasks, unnest(CASE WHEN labels = '{}'::text[] THEN '{\"\"}'::text[] ELSE labels END) AS label
                       GROUP BY label ORDER BY label) v";
            let labels = decode_rows(&sqlx::query_scalar(sql).fetch_all(&mut *connection).await?)?;
            let oldest = "SELECT coalesce((extract(epoch FROM max(now() - greatest(created_at, not_before))) * 1000::numeric)::bigint, 0::bigint)
                          FROM queue_tasks WHERE state = 'queued' AND not_before <= now()";
            let oldest_ms = sqlx::query_scalar(oldest).fetch_one(connection).await?;
            Ok(QueueStatistics { states: states.into_iter().collect(), labels, oldest_ms })
        })
    }

    /// Returns the workers whose last heartbeat was within the last hour.
    pub fn workers(&self) -> Result<Vec<WorkerRow>, StoreError> {
        let sql = "SELECT row_to_json(v)::text FROM (SELECT w.id, w.name, w.slots, w.labels, w.draining,
                       (extract(epoch FROM now() - w.seen) * 1000::numeric)::bigint AS silent_ms,
                       (SELECT count(*) FROM queue_tasks t WHERE t.worker = w.id AND t.state = 'running') AS tasks
                   FROM queue_workers w WHERE w.seen > now() - interval '1 hour' ORDER BY w.id) v";
        self.run_transaction(async |connection| {
            decode_rows(&sqlx::query_scalar(sql).fetch_all(connection).await?)
        })
    }

    /// Returns the lines of a task's log that follow the line number `after`, each with its number.
    pub fn read_log(&self, task: i64, after: i64) -> Result<Vec<(i64, String)>, StoreError> {
        let sql =
            "SELECT number, line FROM queue_log WHERE task = $1 AND number > $2 ORDER BY number";
        self.run_transaction(async |connection| {
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

async fn migrate_tables(connection: &mut PgConnection) -> Result<(), PostgresFailure> {
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || ' queue format'::text, 0::bigint))";
    sqlx::query(lock).execute(&mut *connection).await?;
    let create = "CREATE TABLE IF NOT EXISTS queue_format (format INTEGER NOT NULL)";
    sqlx::raw_sql(create).execute(&mut *connection).await?;
    let found: Option<i32> = sqlx::query_scalar("SELECT format FROM queue_format")
        .fetch_optional(&mut *connection)
        .await?;
    match found {
        Some(format) if format > FORMAT_VERSION => {
            Err(PostgresFailure::NewerFormat(format.unsigned_abs()))
        }
        Some(_) => Ok(()),
        None => {
            sqlx::raw_sql(TABLES).execute(&mut *connection).await?;
            sqlx::query("INSERT INTO queue_format VALUES ($1)")
                .bind(FORMAT_VERSION)
                .execute(connection)
                .await?;
            Ok(())
        }
    }
}
