//! A connection with a runtime of its own, made again when it is lost.

use std::sync::Arc;
use std::time::Duration;

use haft_store::StoreError;
use sqlx::{Connection, PgConnection};
use tokio::runtime::{Builder, Runtime};

use crate::connect::PostgresServer;
use crate::failure::PostgresFailure;

/// How long a write may take, beside waiting for others. A server that vanished without a word
/// never answers.
const SILENCE: Duration = Duration::from_mins(1);

/// How a transaction begins that writes.
pub(crate) const WRITING: &str = "BEGIN";
/// How one begins that sees the database as it is at one moment, however many statements look at
/// it.
pub(crate) const READING: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// Does something whole or not at all. In either case the server is told at once that it is over: a
/// transaction that is only dropped ends with the next use of its connection, and until then keeps
/// everything locked that it had locked.
pub(crate) async fn transaction<T>(
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

/// A connection that a thread owns.
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

    /// Does something with the connection. One that broke is made anew for the next time: what was
    /// under way when it broke is not done again, since nobody knows whether it was done.
    pub(crate) fn run<T>(
        &mut self,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, PostgresFailure> {
        self.runtime.block_on(async {
            let connection = match &mut self.connection {
                Some(connection) => connection,
                none => none.insert(self.server.connect().await?),
            };
            let done = job(connection).await;
            if done
                .as_ref()
                .is_err_and(PostgresFailure::ends_the_connection)
            {
                self.connection = None;
            }
            done
        })
    }

    /// Does something that takes little time, unless it has to `wait` for others.
    pub(crate) fn run_briefly<T>(
        &mut self,
        wait: Duration,
        job: impl AsyncFnOnce(&mut PgConnection) -> Result<T, PostgresFailure>,
    ) -> Result<T, PostgresFailure> {
        self.run(async |connection| {
            match tokio::time::timeout(wait + SILENCE, job(connection)).await {
                Ok(done) => done,
                // An error that ends the connection, on which the answer may still come.
                Err(_) => Err(PostgresFailure::Sqlx(sqlx::Error::Io(
                    std::io::ErrorKind::TimedOut.into(),
                ))),
            }
        })
    }
}
