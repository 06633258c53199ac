//! A connection with its own runtime. A lost connection is replaced on next use.

use std::sync::Arc;
use std::time::Duration;

use haft_store::StoreError;
use sqlx::{Connection, PgConnection};
use tokio::runtime::{Builder, Runtime};

use crate::connect::PostgresServer;
use crate::failure::PostgresFailure;

/// The maximum duration of a write, not counting the time that it waits for locks. The limit is
/// needed because a server that vanished without closing its connections never answers.
const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

/// The SQL statement that begins a transaction for writing.
pub(crate) const BEGIN_WRITE: &str = "BEGIN";
/// The SQL statement that begins a read-only transaction whose statements all see one snapshot of
/// the database.
pub(crate) const BEGIN_READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Runs `job` in a transaction and commits it, or rolls it back on an error. A transaction that is
/// only dropped would keep its locks until the next use of the connection.
pub(crate) async fn run_transaction<T>(
    connection: &mut PgConnection,
    begin: &'static str,
    job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
) -> Result<T, PostgresFailure> {
    let mut transaction = connection.begin_with(begin).await?;
    match job(&mut transaction).await {
        Ok(done) => {
            transaction.commit().await?;
            Ok(done)
        }
        Err(failure) => {
            transaction.rollback().await?;
            Err(failure)
        }
    }
}

/// A connection to the server that one thread owns. It is opened on first use and after a failure.
pub(crate) struct PostgresSession {
    runtime: Runtime,
    server: Arc<PostgresServer>,
    connection: Option<PgConnection>,
}

impl PostgresSession {
    pub(crate) fn new(server: &Arc<PostgresServer>) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| StoreError::Thread {
            name: "haft-store".to_owned(),
            source,
        })?;
        Ok(Self {
            runtime,
            server: Arc::clone(server),
            connection: None,
        })
    }

    /// Runs `job` with the connection. If the connection breaks, the next call opens a new one; the
    /// failed job is not repeated, because it may have taken effect.
    pub(crate) fn run<T>(
        &mut self,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, PostgresFailure> {
        self.runtime.block_on(async {
            let connection = match &mut self.connection {
                Some(connection) => connection,
                none => none.insert(self.server.connect().await?),
            };
            let done = match self.server.timeout() {
                Some(limit) => run_within(limit, job(connection)).await,
                None => job(connection).await,
            };
            if done.as_ref().is_err_and(PostgresFailure::breaks_connection) {
                self.connection = None;
            }
            done
        })
    }

    /// Like [`Self::run`], but fails if the job takes longer than [`WRITE_TIMEOUT`] plus `wait`,
    /// the time for which the job may wait for locks.
    pub(crate) fn run_with_timeout<T>(
        &mut self,
        wait: Duration,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, PostgresFailure> {
        self.run(async |connection| run_within(wait + WRITE_TIMEOUT, job(connection)).await)
    }
}

/// Waits for `job` for at most `limit`. The error of a timeout closes the connection, because a
/// late reply may still arrive on it.
async fn run_within<T>(
    limit: Duration,
    job: impl Future<Output = Result<T, PostgresFailure>>,
) -> Result<T, PostgresFailure> {
    match tokio::time::timeout(limit, job).await {
        Ok(done) => done,
        Err(_) => Err(PostgresFailure::Sqlx(sqlx::Error::Io(
            std::io::ErrorKind::TimedOut.into(),
        ))),
    }
}
