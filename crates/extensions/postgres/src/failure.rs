//! What goes wrong inside a thread, before it is known which server it was.

use haft_store::StoreError;
use haft_store::backend::{self, DamagedRow};
use serde::de::DeserializeOwned;

/// A failure inside a job.
#[derive(Debug)]
pub(crate) enum PostgresFailure {
    /// The server refused, or is not there.
    Sqlx(sqlx::Error),
    /// A newer haft has changed the tables.
    NewerFormat(u32),
    /// A row cannot be what was written.
    Damaged(String),
    /// Anything that already has its final form.
    Store(StoreError),
}

impl PostgresFailure {
    /// Whether the connection is of no more use.
    pub(crate) fn ends_the_connection(&self) -> bool {
        match self {
            Self::Sqlx(sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::Tls(_)) => true,
            // The server says that it goes.
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

/// A value from the JSON form we wrote; `what` names it in the error.
pub(crate) fn decode<T: DeserializeOwned>(
    what: impl FnOnce() -> String,
    text: &str,
) -> Result<T, PostgresFailure> {
    Ok(backend::decode(what, text)?)
}
