//! Errors inside a store thread, before the server's name is added.

use haft_store::StoreError;
use haft_store::backend::{self, DamagedRow};
use serde::de::DeserializeOwned;

/// The reason why a job on the server failed. The error does not yet name the server.
#[derive(Debug)]
pub(crate) enum PostgresFailure {
    /// The server rejected a statement or cannot be reached.
    Sqlx(sqlx::Error),
    /// A newer version of haft has upgraded the tables. The value is the version of their format.
    NewerFormat(u32),
    /// A row holds values that haft never writes.
    Damaged(String),
    /// A store error, which is passed on unchanged.
    Store(StoreError),
}

impl PostgresFailure {
    /// True if the connection can no longer be used.
    pub(crate) fn breaks_connection(&self) -> bool {
        match self {
            Self::Sqlx(sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_)) => true,
            // The server is shutting down.
            Self::Sqlx(sqlx::Error::Database(error)) => {
                error.code().is_some_and(|code| code.starts_with("57P"))
            }
            Self::Sqlx(_) | Self::NewerFormat(_) | Self::Damaged(_) | Self::Store(_) => false,
        }
    }
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
