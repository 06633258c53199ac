//! What goes wrong inside the database threads, before it is known which file it was.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rusqlite::ErrorCode;

use super::migrations::FORMAT;
use crate::encoding::DamagedRow;
use crate::error::StoreError;
use crate::lock::Locked;

/// A failure inside a job.
#[derive(Debug)]
pub enum SqliteFailure {
    /// SQLite refused.
    Sqlite(rusqlite::Error),
    /// A row cannot be what was written.
    Damaged(String),
    /// A newer haft changed the format while this one had the file open.
    NewerFormat(u32),
    /// Anything that already has its final form.
    Store(StoreError),
}

impl SqliteFailure {
    /// What it is, without the file it happened in.
    pub fn in_words(&self) -> String {
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

/// The database a failure belongs to.
#[derive(Clone, Debug)]
pub struct DatabaseFile {
    /// Where it lies.
    pub path: PathBuf,
    /// How long is waited for others who have it locked.
    pub lock_timeout: Duration,
}

impl DatabaseFile {
    /// The failure as the caller sees it.
    pub fn explain(&self, failure: SqliteFailure) -> StoreError {
        match failure {
            SqliteFailure::Sqlite(error) => self.explain_sqlite(error),
            SqliteFailure::Damaged(detail) => StoreError::Damaged {
                path: self.path.clone(),
                detail,
            },
            SqliteFailure::NewerFormat(found) => StoreError::NewerFormat {
                path: self.path.clone(),
                found,
                known: FORMAT,
            },
            SqliteFailure::Store(error) => error,
        }
    }

    fn explain_sqlite(&self, error: rusqlite::Error) -> StoreError {
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
                source: io_error(error),
            },
            _ => StoreError::Database {
                path,
                source: Box::new(error),
            },
        }
    }
}

/// What the system said, with what helps.
fn io_error(error: rusqlite::Error) -> io::Error {
    let code = error.sqlite_error().map(|error| error.extended_code);
    // SQLite calls it an I/O error when the file that its processes share cannot grow, for which
    // there is hardly another reason.
    if code == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) {
        return io::Error::new(
            io::ErrorKind::StorageFull,
            format!("{error}; the disk seems to be full"),
        );
    }
    io::Error::other(error)
}

/// Whether a column held what we never write there.
fn is_unreadable_value(error: &rusqlite::Error) -> bool {
    matches!(
        error,
        rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::Utf8Error(..)
    )
}
