//! A worker that comes back late: nothing is written any more in the name of a taking that is not
//! the newest.

use haft_store::StoreError;
use sqlx::PgConnection;

use crate::failure::PostgresFailure;

/// One taking of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLease {
    /// The task.
    pub task: i64,
    /// Which taking of it.
    pub epoch: i64,
}

/// The task is another worker's by now, or over.
#[derive(Debug, thiserror::Error)]
#[error("task {} is no longer this worker's: another one has taken it, or it has ended", .0.task)]
pub struct TaskTakenOver(pub TaskLease);

impl TaskTakenOver {
    /// Whether that is why something could not be written.
    pub fn is(error: &StoreError) -> bool {
        matches!(error, StoreError::Database { source, .. } if source.is::<Self>())
    }
}

/// Goes on only while the lease is the newest one, and keeps it so until the end of the
/// transaction.
pub(crate) async fn check(
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
