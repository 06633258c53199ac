//! Errors inside a store thread, before the server's name is added.

use haft_store::StoreError;
use haft_store::backend::{self, DamagedRow};
use serde::de::DeserializeOwned;

/// The reason why a job on the server failed. The error does not yet name the server.
#[derive(Debug)]
pub(crate) enum PostgresFailure {
    /// The server rejected a statement or cannot be reached.
    Sqlx(sqlx::Error),
    /// A newer version of haft has upgraded the tables.
    NewerFormat {
        /// The version of the tables' format.
        found: u32,
        /// The newest version that this build of haft supports.
        known: u32,
    },
    /// A row holds values that haft never writes.
    Damaged(String),
    /// A store error, which is passed on unchanged.
    Store(StoreError),
}

/// The error for tables that are missing or old while the role may not create tables.
#[derive(Debug, thiserror::Error)]
#[error(
    "the tables are missing or have an older format, and this role may not create tables; run `haft queue migrate` once with a role that may ({0})"
)]
pub(crate) struct NeedsMigration(sqlx::Error);

impl PostgresFailure {
    /// True if the connection can no longer be used.
    pub(crate) fn breaks_connection(&self) -> bool {
        match self {
            Self::Sqlx(sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_)) => true,
            // The server is shutting down.
            Self::Sqlx(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|code| code.starts_with("57P"))
            }
            Self::Sqlx(_) | Self::NewerFormat { .. } | Self::Damaged(_) | Self::Store(_) => false,
        }
    }

    /// Replaces a refusal to change tables by an error that names the command for it.
    pub(crate) fn explain_migration(self) -> Self {
        match self {
            Self::Sqlx(error) if has_code(&error, "42501") => Self::Store(StoreError::Database {
                path: "the server".into(),
                source: Box::new(NeedsMigration(error)),
            }),
            other => other,
        }
    }
}

/// True if a statement names a table that does not exist.
pub(crate) fn is_missing_table(error: &sqlx::Error) -> bool {
    has_code(error, "42P01")
}

/// True if a row breaks a unique index.
pub(crate) fn is_duplicate(error: &sqlx::Error) -> bool {
    has_code(error, "23505")
}

fn has_code(error: &sqlx::Error, code: &str) -> bool {
    matches!(error, sqlx::Error::Database(error) if error.code().as_deref() == Some(code))
}

impl From<sqlx::Error> for PostgresFailure {
    fn from(error: sqlx::Error) -> Self {
        Self::Sqlx(error)
    }
}

impl From<DamagedRow> for PostgresFailure {
    fn from(DamagedRow(detail): DamagedRow) -> Self {
        Self::Damaged(detail)
    }
}

impl From<StoreError> for PostgresFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Parses a value that was stored as JSON. `what` names the value in the error.
pub(crate) fn decode_json<T: DeserializeOwned>(
    what: impl FnOnce() -> String,
    text: &str,
) -> Result<T, PostgresFailure> {
    Ok(backend::decode_json(what, text)?)
}
