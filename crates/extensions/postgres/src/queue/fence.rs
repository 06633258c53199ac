//! Rejects writes of a worker that lost its task: only the newest lease of a task may write.

use haft_store::StoreError;
use sqlx::PgConnection;

use crate::failure::PostgresFailure;

/// The claim of one worker to one task, which ends when another worker takes the task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLease {
    /// The id of the task.
    pub task: i64,
    /// The number of the claim. Later claims to the task have higher numbers.
    pub epoch: i64,
}

/// The error for a write to a task that has ended or now belongs to another worker.
#[derive(Debug, thiserror::Error)]
#[error("task {} is no longer this worker's: another one has taken it, or it has ended", .0.task)]
pub struct TaskTakenOver(pub TaskLease);

impl TaskTakenOver {
    /// True if `error` was caused by a lost lease.
    pub fn is_cause_of(error: &StoreError) -> bool {
        matches!(error, StoreError::Database { source, .. } if source.is::<Self>())
    }
}

/// Returns the error for a write under a lease that is not the newest one of its task.
pub(super) fn taken_over(lease: TaskLease) -> PostgresFailure {
    PostgresFailure::Store(StoreError::Database {
        path: "the queue".into(),
        source: Box::new(TaskTakenOver(lease)),
    })
}

/// Fails if a statement that names `lease` in its condition has changed nothing.
pub(super) fn require_change(lease: TaskLease, changed: u64) -> Result<(), PostgresFailure> {
    if changed == 0 {
        Err(taken_over(lease))
    } else {
        Ok(())
    }
}

/// Fails unless `lease` is the newest lease of its task. Until the transaction ends, no other
/// worker can take the task.
pub(crate) async fn check_lease(
    connection: &mut PgConnection,
    lease: TaskLease,
) -> Result<(), PostgresFailure> {
    let sql = "SELECT epoch FROM queue_tasks WHERE id = $1 AND state = 'running' FOR SHARE";
    let newest: Option<i64> = sqlx::query_scalar(sql)
        .bind(lease.task)
        .fetch_optional(connection)
        .await?;
    if newest == Some(lease.epoch) {
        Ok(())
    } else {
        Err(taken_over(lease))
    }
}

/// Like [`check_lease`], for a transaction that stores a message: the first one counts as an
/// attempt. A claim that ends before its first message, for example because the server is
/// unreachable, is not an attempt.
pub(crate) async fn count_attempt(
    connection: &mut PgConnection,
    lease: TaskLease,
) -> Result<(), PostgresFailure> {
    // The row is locked by the update at once: taking a shared lock first could deadlock with
    // another write of this run.
    let sql = "UPDATE queue_tasks SET attempts = attempts + 1, failures = 0, counted = epoch
               WHERE id = $1 AND epoch = $2 AND state = 'running' AND counted < epoch";
    let counted = sqlx::query(sql)
        .bind(lease.task)
        .bind(lease.epoch)
        .execute(&mut *connection)
        .await?;
    if counted.rows_affected() == 1 {
        return Ok(());
    }
    check_lease(connection, lease).await
}
