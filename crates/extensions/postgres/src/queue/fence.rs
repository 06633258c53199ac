//! Rejects writes of a worker that lost its task: only the newest lease of a task may write.

use haft_store::StoreError;
use sqlx::PgConnection;

use crate::failure::PostgresFailure;

/// One worker's claim to one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLease {
    /// The id of the task.
    pub task: i64,
    /// The number of the claim. Later claims to the task have higher numbers.
    pub epoch: i64,
}

/// The error that a task has ended or belongs to another worker now.
#[derive(Debug, thiserror::Error)]
#[error("task {} is no longer this worker's: another one has taken it, or it has ended", .0.task)]
pub struct TaskTakenOver(pub TaskLease);

impl TaskTakenOver {
    /// True if `error` was caused by a lost lease.
    pub fn is_cause_of(error: &StoreError) -> bool {
        matches!(error, StoreError::Database { source, .. } if source.is::<Self>())
    }
}

/// Fails unless `lease` is the newest of its task, and keeps it the newest until the transaction
/// ends.
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
        return Ok(());
    }
    let source = Box::new(TaskTakenOver(lease));
    Err(PostgresFailure::Store(StoreError::Database {
        path: "the queue".into(),
        source,
    }))
}
