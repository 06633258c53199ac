//! Waits for changes of the queue, so that idle workers need not poll.

use std::sync::Arc;
use std::time::Duration;

use haft_store::StoreError;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::connect::PostgresServer;
use crate::failure::PostgresFailure;

/// The time after which a connection that received nothing is tested.
const TEST_INTERVAL: Duration = Duration::from_mins(1);
/// The time limit of connecting and of a test.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A change of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSignal {
    /// There may be a task to take.
    Task,
    /// A running task is to be canceled.
    Cancel,
    /// Nothing happened for a while, or the wait was canceled.
    Nothing,
}

/// A connection on which the server announces changes of the queue. Notifications are lost while
/// the connection is broken, so workers also poll, slowly.
pub struct QueueListener {
    runtime: Runtime,
    server: Arc<PostgresServer>,
    listener: Option<PgListener>,
}

impl Drop for QueueListener {
    fn drop(&mut self) {
        // Dropping the listener starts a task.
        let _entered = self.runtime.enter();
        self.listener = None;
    }
}

impl QueueListener {
    /// Prepares a listener for the server with this URL. It connects with the first wait.
    pub fn new(url: &str) -> Result<Self, StoreError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|source| StoreError::Thread {
            name: "haft-queue-listen".to_owned(),
            source,
        })?;
        Ok(Self {
            runtime,
            server: Arc::new(PostgresServer::new(url, Duration::ZERO)?),
            listener: None,
        })
    }

    /// Waits for the next change, until `stop` is canceled. Returns an error if the server cannot
    /// be reached; the next call connects again.
    pub fn wait(&mut self, stop: &CancellationToken) -> Result<QueueSignal, StoreError> {
        let Self {
            runtime,
            server,
            listener,
        } = self;
        let waited = runtime.block_on(async {
            tokio::select! {
                () = stop.cancelled() => Ok(QueueSignal::Nothing),
                signal = receive_signal(server, listener) => signal,
            }
        });
        waited.map_err(|failure| {
            let _entered = runtime.enter();
            *listener = None;
            server.to_store_error(failure)
        })
    }
}

async fn receive_signal(
    server: &PostgresServer,
    listener: &mut Option<PgListener>,
) -> Result<QueueSignal, PostgresFailure> {
    let Some(listener) = listener else {
        let connected = tokio::time::timeout(CONNECT_TIMEOUT, listen(server)).await;
        *listener = Some(connected.map_err(|_| timed_out())??);
        // Notifications since the last connection are lost.
        return Ok(QueueSignal::Task);
    };
    match tokio::time::timeout(TEST_INTERVAL, listener.try_recv()).await {
        Ok(Ok(Some(notification))) if notification.payload() == "cancel" => Ok(QueueSignal::Cancel),
        Ok(Ok(_)) => Ok(QueueSignal::Task),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => {
            let test = sqlx::query("SELECT 1").execute(&mut *listener);
            let tested = tokio::time::timeout(CONNECT_TIMEOUT, test).await;
            tested.map_err(|_| timed_out())??;
            Ok(QueueSignal::Nothing)
        }
    }
}

async fn listen(server: &PostgresServer) -> Result<PgListener, PostgresFailure> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(CONNECT_TIMEOUT)
        .connect_lazy_with(server.options().clone());
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.ignore_pool_close_event(true);
    listener.eager_reconnect(false);
    let sql =
        "SELECT 'haft_queue_'::text || to_hex(hashtextextended(current_schema()::text, 0::bigint))";
    let channel: String = sqlx::query_scalar(sql).fetch_one(&mut listener).await?;
    listener.listen(&channel).await?;
    Ok(listener)
}

fn timed_out() -> PostgresFailure {
    PostgresFailure::Sqlx(sqlx::Error::Io(std::io::ErrorKind::TimedOut.into()))
}
