//! Failures in the database threads, without the path of the database file.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ErrorCode;

use super::migrations::FORMAT_VERSION;
use crate::encoding::DamagedRow;
use crate::error::StoreError;
use crate::lock::Locked;

/// The reason why a job in a database thread failed.
#[derive(Debug)]
pub enum SqliteFailure {
    /// SQLite returned an error.
    Sqlite(rusqlite::Error),
    /// A row has content that haft cannot have written.
    Damaged(String),
    /// A newer version of haft changed the database format while this process had the file open.
    NewerFormat(u32),
    /// The job failed with an error that needs no conversion.
    Store(StoreError),
}

impl SqliteFailure {
    /// Returns the description of the failure, without the path of the file.
    pub fn description(&self) -> String {
        match self {
            Self::Sqlite(error) => error.to_string(),
            Self::Damaged(detail) => detail.clone(),
            Self::NewerFormat(found) => {
                format!("its format is {found}, which is newer than this haft")
            }
            Self::Store(error) => error.to_string(),
        }
    }
}

impl From<rusqlite::Error> for SqliteFailure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<DamagedRow> for SqliteFailure {
    fn from(DamagedRow(detail): DamagedRow) -> Self {
        Self::Damaged(detail)
    }
}

impl From<StoreError> for SqliteFailure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The path and the lock timeout of a database.
#[derive(Clone, Debug)]
pub struct DatabaseFile {
    /// The path of the database.
    pub path: PathBuf,
    /// The maximum time to wait for a lock of the database.
    pub lock_timeout: Duration,
}

impl DatabaseFile {
    /// Converts a failure to the error that the caller receives.
    pub fn to_store_error(&self, failure: SqliteFailure) -> StoreError {
        match failure {
            SqliteFailure::Sqlite(error) => self.sqlite_to_store_error(error),
            SqliteFailure::Damaged(detail) => StoreError::Damaged {
                path: self.path.clone(),
                detail,
            },
            SqliteFailure::NewerFormat(found) => StoreError::NewerFormat {
                path: self.path.clone(),
                found,
                known: FORMAT_VERSION,
            },
            SqliteFailure::Store(error) => error,
        }
    }

    fn sqlite_to_store_error(&self, error: rusqlite::Error) -> StoreError {
        let path = self.path.clone();
        if is_unreadable_value(&error) {
            return StoreError::Damaged {
                path,
                detail: error.to_string(),
            };
        }
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::LockTimeout {
                what: Locked::Database(path),
                holder: None,
                waited: self.lock_timeout,
            },
            Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged {
                path,
                detail: error.to_string(),
            },
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::DiskFull
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied,
            ) => StoreError::Io {
                action: "use the database",
                path,
                source: to_io_error(error),
            },
            _ => StoreError::Database {
                path,
                source: Box::new(error),
            },
        }
    }
}

/// Converts an error of SQLite to an I/O error, with advice for known causes.
fn to_io_error(error: rusqlite::Error) -> io::Error {
    let code = error.sqlite_error().map(|error| error.extended_code);
    // SQLite reports this I/O error if the memory file shared by its processes cannot grow. A full
    // disk is nearly the only reason.
    if code == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
        return io::Error::new(
            io::ErrorKind::StorageFull,
            format!("{error}; the disk seems to be full"),
        );
    }
    io::Error::other(error)
}

/// True if a column contained a value that haft would never write to it.
fn is_unreadable_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}
