//! The writes of a worker for a task that it holds. Each is one statement, whose condition contains
//! the lease.

use haft_store::StoreError;
use haft_store::backend::encode_json;
use haft_types::Outcome;
use sqlx::PgConnection;

use super::TaskQueue;
use super::fence::{TaskLease, require_change};
use super::tasks::TaskEnd;
use super::worker::{MAX_FAILURES, TaskSpending, cancelled_result, given_up_result};
use crate::failure::PostgresFailure;

/// Builds a statement that begins with the common table expression `held`, which has a row only if
/// the lease in the parameters 1 and 2 is the newest of its task.
macro_rules! with_held {
    ($rest:expr) => {
        concat!(include_str!("../statements/queue_held.sql"), $rest)
    };
}
pub(super) use with_held;

/// The reason why a worker returns a task to the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseReason {
    /// The worker is shutting down. The claim does not count, and the task can be taken at once.
    HandedOver,
    /// The worker's host cannot run any task. The claim does not count, and the task can be taken
    /// after a second.
    SickHost,
    /// The run failed because of something outside the task, such as a server. The task can be
    /// taken after a pause that grows with the number of attempts.
    ExternalFailure,
}

impl TaskQueue {
    /// Records the commit that the task's workspace was created from. If another worker takes over
    /// the task, it starts from this commit.
    pub fn set_base_commit(&self, lease: TaskLease, base: &str) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET base = coalesce(base, $3) WHERE id = $1 AND epoch = $2 AND state = 'running'";
        self.run_with_lease(lease, async |connection| {
            let query = sqlx::query(sql).bind(lease.task).bind(lease.epoch);
            Ok(query.bind(base).execute(connection).await?.rows_affected())
        })
    }

    /// Records the spending of a task and the maximum cost of its current request.
    pub fn record_spending(&self, lease: TaskLease, spent: TaskSpending) -> Result<(), StoreError> {
        let sql = "UPDATE queue_tasks SET spent_usd = $3, spent_tokens = $4, flying_usd = $5, flying_tokens = $6
                   WHERE id = $1 AND epoch = $2 AND state = 'running'";
        self.run_with_lease(lease, async |connection| {
            let query = sqlx::query(sql)
                .bind(lease.task)
                .bind(lease.epoch)
                .bind(spent.usd)
                .bind(spent.tokens)
                .bind(spent.flying_usd)
                .bind(spent.flying_tokens);
            Ok(query.execute(connection).await?.rows_affected())
        })
    }

    /// Appends lines to the log of a task. Fails if the lease was lost.
    pub fn append_log(&self, lease: TaskLease, lines: &[String]) -> Result<(), StoreError> {
        if lines.is_empty() {
            return Ok(());
        }
        let sql = with_held!(
            "INSERT INTO queue_log (task, line) SELECT held.id, line FROM held, unnest($3::text[]) AS line"
        );
        self.run_with_lease(lease, async |connection| {
            let query = sqlx::query(sql).bind(lease.task).bind(lease.epoch);
            Ok(query.bind(lines).execute(connection).await?.rows_affected())
        })
    }

    /// Ends a task and deletes its saved files, unless they are all that is left of its changes.
    /// Returns true if the task was queued again, because its run failed and it is to be retried.
    pub fn finish_task(
        &self,
        lease: TaskLease,
        end: &TaskEnd,
        retry_as: Option<&str>,
    ) -> Result<bool, StoreError> {
        let result = encode_json("the result of a task", &end.result)?;
        let outcome = end.result["outcome"].as_str();
        let sql = include_str!("../statements/queue_finish.sql");
        let finish = async |connection: &mut PgConnection| {
            let query = sqlx::query_as(sql)
                .bind(lease.task)
                .bind(lease.epoch)
                .bind(end.state.name())
                .bind(outcome)
                .bind(&result)
                .bind(&end.patch)
                .bind(&end.branch)
                .bind(end.keeps_files);
            let (ended, _): (i64, i64) = query.fetch_one(connection).await?;
            require_change(lease, ended.unsigned_abs())
        };
        let failed = outcome == Some(Outcome::Failed.name());
        let Some(conversation) = retry_as.filter(|_| failed) else {
            return self.run_statement(finish).map(|()| false);
        };
        self.run_transaction(async |connection| {
            finish(&mut *connection).await?;
            let sql = "SELECT retry_seconds * power(2::double precision, retried::double precision) FROM queue_tasks
                       WHERE id = $1 AND retried < retries AND NOT cancel_asked";
            let pause: Option<f64> = sqlx::query_scalar(sql)
                .bind(lease.task)
                .fetch_optional(&mut *connection)
                .await?;
            let Some(pause) = pause else {
                return Ok(false);
            };
            let retry = sqlx::query(include_str!("../statements/queue_retry.sql"))
                .bind(lease.task)
                .bind(conversation)
                .bind(pause)
                .bind(true);
            retry.execute(&mut *connection).await?;
            Ok(true)
        })
    }

    /// Returns a task to the queue, so that another worker can take it. A task that was to be
    /// canceled is canceled, and one that failed too often is given up.
    pub fn release_task(&self, lease: TaskLease, why: ReleaseReason) -> Result<(), StoreError> {
        let (uncounted, pause) = match why {
            ReleaseReason::HandedOver => (true, 0.0),
            ReleaseReason::SickHost => (true, 1.0),
            ReleaseReason::ExternalFailure => (false, 1.0),
        };
        let sql = include_str!("../statements/queue_release.sql");
        self.run_with_lease(lease, async |connection| {
            let query = sqlx::query_as(sql)
                .bind(lease.task)
                .bind(lease.epoch)
                .bind(uncounted)
                .bind(pause)
                .bind(MAX_FAILURES)
                .bind(cancelled_result())
                .bind(given_up_result());
            let (released, _): (i64, i64) = query.fetch_one(connection).await?;
            Ok(released.unsigned_abs())
        })
    }

    /// Runs `job`, which returns the number of rows that it changed under `lease`. Fails if there
    /// are none, because the lease is no longer the newest lease of its task.
    pub(super) fn run_with_lease(
        &self,
        lease: TaskLease,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<u64, PostgresFailure>,
    ) -> Result<(), StoreError> {
        self.run_statement(async |connection| {
            let changed = job(connection).await?;
            require_change(lease, changed)
        })
    }
}
