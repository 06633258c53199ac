//! The server's address, the format of its tables, and the conversion of its errors.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use haft_store::backend::hide_password;
use haft_store::{Locked, StoreError};
use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions, PgConnection};

use crate::failure::{self, PostgresFailure};
use crate::queue::{self, TaskLease};
use crate::session;

/// The SQL migrations that create and upgrade the tables, oldest first. A released migration is
/// never edited; each change of the format is a new migration.
pub(crate) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001_conversations.sql"),
    include_str!("migrations/0002_many.sql"),
];

/// The version of the table format that this build of haft writes.
pub(crate) const FORMAT_VERSION: i32 = (MIGRATIONS.len() as u32).cast_signed();

/// The statement that creates the table with the format version.
pub(crate) const CREATE_FORMAT_TABLE: &str =
    "CREATE TABLE IF NOT EXISTS haft_format (format INTEGER NOT NULL)";

/// A PostgreSQL server, and the options with which haft connects to it.
pub(crate) struct PostgresServer {
    options: PgConnectOptions,
    /// The server's URL without its password.
    name: PathBuf,
    lock_timeout: Duration,
    /// The time limit of each operation, if there is one beside that of writes.
    timeout: Option<Duration>,
    lease: Option<TaskLease>,
}

impl PostgresServer {
    pub(crate) fn new(url: &str, lock_timeout: Duration) -> Result<Self, StoreError> {
        let options = PgConnectOptions::from_str(url).map_err(|error| StoreError::BadAddress {
            address: hide_password(url),
            problem: error.to_string(),
        })?;
        let milliseconds = lock_timeout.as_millis().to_string();
        let options = options
            .application_name("haft")
            .disable_statement_logging()
            .options([
                // Acknowledged writes must be on the server's disk, whatever its default is.
                ("synchronous_commit", "on"),
                ("lock_timeout", milliseconds.as_str()),
                // The locks of a host that vanished are released within a minute.
                ("tcp_keepalives_idle", "20"),
                ("tcp_keepalives_interval", "10"),
                ("tcp_keepalives_count", "3"),
                // The row locks of a host that stops in the middle of a transaction are released
                // after 20 seconds.
                ("idle_in_transaction_session_timeout", "20000"),
                ("tcp_user_timeout", "30000"),
                // Compiling a statement takes longer than running any of these.
                ("jit", "off"),
                ("client_min_messages", "warning"),
            ]);
        Ok(Self {
            options,
            name: PathBuf::from(hide_password(url)),
            lock_timeout,
            timeout: None,
            lease: None,
        })
    }

    /// Limits the time of each operation, on both ends of the connection.
    pub(crate) fn with_timeout(self, timeout: Duration) -> Self {
        let milliseconds = timeout.as_millis().to_string();
        Self {
            options: self
                .options
                .options([("statement_timeout", milliseconds.as_str())]),
            timeout: Some(timeout),
            ..self
        }
    }

    /// Returns the time limit of each operation, if there is one.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    pub(crate) fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// Sets the task run for which connections are opened. The name of each connection contains the
    /// run, so that the connections can be ended when another worker takes over the task.
    pub(crate) fn with_lease(self, lease: Option<TaskLease>) -> Self {
        Self { lease, ..self }
    }

    pub(crate) async fn connect(&self) -> Result<PgConnection, PostgresFailure> {
        const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
        let connect = async {
            let mut connection = self.options.connect().await?;
            if let Some(lease) = self.lease {
                queue::set_connection_name(&mut connection, lease).await?;
            }
            Ok(connection)
        };
        let limit = self.timeout.unwrap_or(CONNECT_TIMEOUT).min(CONNECT_TIMEOUT);
        match tokio::time::timeout(limit, connect).await {
            Ok(connected) => connected,
            Err(_) => Err(PostgresFailure::Sqlx(sqlx::Error::Io(
                std::io::ErrorKind::TimedOut.into(),
            ))),
        }
    }

    /// Converts a failure to a store error, which names the server.
    pub(crate) fn to_store_error(&self, failure: PostgresFailure) -> StoreError {
        let path = self.name.clone();
        match failure {
            PostgresFailure::Store(error) => error,
            PostgresFailure::NewerFormat { found, known } => {
                StoreError::NewerFormat { path, found, known }
            }
            PostgresFailure::Damaged(detail) => StoreError::Damaged { path, detail },
            PostgresFailure::Sqlx(sqlx::Error::Io(source)) => StoreError::Io {
                action: "reach the server",
                path,
                source,
            },
            PostgresFailure::Sqlx(sqlx::Error::Database(error))
                if error.code().as_deref() == Some("55P03") =>
            {
                StoreError::LockTimeout {
                    what: Locked::Database(path),
                    holder: None,
                    waited: self.lock_timeout,
                }
            }
            PostgresFailure::Sqlx(error) => StoreError::Database {
                path,
                source: Box::new(error),
            },
        }
    }
}

/// Upgrades the tables to [`FORMAT_VERSION`] in one transaction, unless they have this format
/// already: then the role needs no right to create tables. Several processes may call this function
/// at the same time.
pub(crate) async fn migrate_tables(connection: &mut PgConnection) -> Result<(), PostgresFailure> {
    let sql = "SELECT max(format) FROM haft_format";
    match sqlx::query_scalar::<_, Option<i32>>(sql)
        .fetch_one(&mut *connection)
        .await
    {
        Ok(Some(found)) if found >= FORMAT_VERSION => return check_format(found),
        Ok(_) => {}
        Err(error) if failure::is_missing_table(&error) => {}
        Err(error) => return Err(error.into()),
    }
    session::run_transaction(connection, session::BEGIN_WRITE, async |connection| {
        let migrated = migrate_in_transaction(connection).await;
        migrated.map_err(PostgresFailure::explain_migration)
    })
    .await
}

pub(crate) async fn migrate_in_transaction(
    connection: &mut PgConnection,
) -> Result<(), PostgresFailure> {
    // An advisory lock is needed because concurrent `CREATE TABLE IF NOT EXISTS` statements can
    // fail.
    sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended(current_schema()::text || ' format'::text, 0::bigint))")
        .execute(&mut *connection)
        .await?;
    sqlx::raw_sql(CREATE_FORMAT_TABLE)
        .execute(&mut *connection)
        .await?;
    let found: Option<i32> = sqlx::query_scalar("SELECT format FROM haft_format")
        .fetch_optional(&mut *connection)
        .await?;
    let format = found.unwrap_or(0);
    if format >= FORMAT_VERSION {
        return check_format(format);
    }
    for migration in MIGRATIONS.iter().skip(format.unsigned_abs() as usize) {
        sqlx::raw_sql(*migration).execute(&mut *connection).await?;
    }
    let set = if found.is_some() {
        "UPDATE haft_format SET format = $1"
    } else {
        "INSERT INTO haft_format VALUES ($1)"
    };
    sqlx::query(set)
        .bind(FORMAT_VERSION)
        .execute(&mut *connection)
        .await?;
    Ok(())
}

/// Rejects a table format that is newer than the one this build of haft writes. The check is made
/// for each write, because another process may upgrade the tables after this process has connected,
/// and a newer haft would not find data in the old format.
pub(crate) fn check_format(found: i32) -> Result<(), PostgresFailure> {
    if found > FORMAT_VERSION {
        Err(PostgresFailure::NewerFormat {
            found: found.unsigned_abs(),
            known: FORMAT_VERSION.unsigned_abs(),
        })
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_error_does_not_contain_the_password() {
        let error = PostgresServer::new("postgres://me:secret@host:port/db", Duration::ZERO)
            .err()
            .unwrap()
            .to_string();
        assert!(
            error.contains("me@host:port") && !error.contains("secret"),
            "{error}"
        );
        for address in [
            "postgres://me:secret@host:99999/db",
            "postgres://me:sec/secret@host/db",
            "postgres://me:secret@/db?port=x",
            "postgres://host/db?password=secret&sslmode=odd",
            "host=h user=me password=secret",
            "me:secret@host",
            "postgres://me:secret%zz@host/db?sslmode=\u{1b}[2J",
        ] {
            if let Some(error) = PostgresServer::new(address, Duration::ZERO).err() {
                assert!(!error.to_string().contains("secret"), "{address}: {error}");
            }
        }
    }
}
