//! Operations on many tasks: pausing, retrying what failed, and removing what is old.

use std::time::Duration;

use haft_store::StoreError;
use sqlx::PgConnection;

use super::tasks::READY_STATUS;
use super::{TaskQueue, notify_workers};
use crate::failure::PostgresFailure;

/// A selection of tasks. An empty filter selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFilter {
    /// Only tasks with this state or this outcome.
    pub status: Option<String>,
    /// Only tasks with this label.
    pub label: Option<String>,
}

impl TaskFilter {
    /// True if the filter selects the tasks that a new worker would take.
    pub(super) fn is_ready(&self) -> bool {
        self.status.as_deref() == Some(READY_STATUS)
    }
}

/// The numbers of rows that a clean-up removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PruneReport {
    /// The tasks that were removed, with their logs and files.
    pub tasks: u64,
    /// The rows of workers that were silent for an hour.
    pub workers: u64,
}

impl TaskQueue {
    /// Returns the ids of the tasks that `filter` selects, oldest first.
    pub fn find_task_ids(&self, filter: &TaskFilter) -> Result<Vec<i64>, StoreError> {
        let sql = if filter.is_ready() {
            "SELECT id FROM queue_ready WHERE $1::text IS NOT NULL AND ($2::text IS NULL OR $2::text = ANY (labels)) ORDER BY id"
        } else {
            "SELECT id FROM queue_tasks WHERE ($1::text IS NULL OR status = $1::text OR state = $1::text)
             AND ($2::text IS NULL OR $2::text = ANY (labels)) ORDER BY id"
        };
        self.run_statement(async |connection| {
            let query = sqlx::query_scalar(sql)
                .bind(&filter.status)
                .bind(&filter.label);
            Ok(query.fetch_all(connection).await?)
        })
    }

    /// Keeps workers from taking tasks with `label`, or any task if `label` is empty. Tasks that
    /// run go on. Returns false if that was so already.
    pub fn pause(&self, label: &str) -> Result<bool, StoreError> {
        let sql = "INSERT INTO queue_pauses (label) VALUES ($1) ON CONFLICT DO NOTHING";
        self.run_statement(async |connection| {
            Ok(sqlx::query(sql)
                .bind(label)
                .execute(connection)
                .await?
                .rows_affected()
                == 1)
        })
    }

    /// Ends a pause. Returns false if there was none.
    pub fn resume(&self, label: &str) -> Result<bool, StoreError> {
        let sql = concat!(
            "WITH ended AS (DELETE FROM queue_pauses WHERE label = $1 RETURNING label) SELECT count(",
            notify_workers!("task"),
            ") FROM ended"
        );
        self.run_statement(async |connection| {
            let ended: i64 = sqlx::query_scalar(sql)
                .bind(label)
                .fetch_one(connection)
                .await?;
            Ok(ended == 1)
        })
    }

    /// Removes the tasks that ended longer than `age` ago, with their logs and files, and the rows
    /// of lost workers. Conversations stay.
    pub fn prune(&self, age: Duration) -> Result<PruneReport, StoreError> {
        let tasks = "DELETE FROM queue_tasks WHERE ended_at < now() - $1::double precision * interval '1 second'";
        self.run_statement(async |connection| {
            let removed = sqlx::query(tasks)
                .bind(age.as_secs_f64())
                .execute(&mut *connection)
                .await?;
            let workers = remove_lost_workers(connection).await?;
            Ok(PruneReport {
                tasks: removed.rows_affected(),
                workers,
            })
        })
    }

    /// Returns a task whose end is to be announced, and keeps other workers from announcing it for
    /// a minute. Only ends of the last hour are announced.
    pub fn claim_announcement(&self) -> Result<Option<i64>, StoreError> {
        let sql = "UPDATE queue_tasks SET announce_after = now() + interval '1 minute' WHERE id = (
                       SELECT id FROM queue_tasks WHERE ended_at > now() - interval '1 hour' AND NOT announced
                           AND (announce_after IS NULL OR announce_after <= now())
                       ORDER BY ended_at LIMIT 1 FOR UPDATE SKIP LOCKED)
                   RETURNING id";
        self.run_statement(async |connection| {
            Ok(sqlx::query_scalar(sql).fetch_optional(connection).await?)
        })
    }

    /// Records that the end of a task was announced, unless the task was queued again meanwhile.
    pub fn confirm_announcement(&self, task: i64, epoch: i64) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET announced = true WHERE id = $1 AND epoch = $2";
        self.run_statement(async |connection| {
            Ok(sqlx::query(sql)
                .bind(task)
                .bind(epoch)
                .execute(connection)
                .await
                .map(drop)?)
        })
    }
}

/// Removes the rows of workers that were silent for an hour, and returns their number.
pub(super) async fn remove_lost_workers(
    connection: &mut PgConnection,
) -> Result<u64, PostgresFailure> {
    let sql = "DELETE FROM queue_workers WHERE seen < now() - interval '1 hour'
               AND seen < now() - interval '1 millisecond' * lease_ms::double precision";
    Ok(sqlx::query(sql).execute(connection).await?.rows_affected())
}
