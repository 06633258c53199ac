//! Opens and checks the database of a collection's index, and recreates it if it is damaged.
//!
//! Invariant: opening always returns a usable index, whatever a killed process, a concurrent
//! process, or a damaged disk left behind; the next update adds the missing parts. A process
//! creates or recreates the database only while it holds the lock file next to the database.

mod search;
mod update;
mod vectors;

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use haft_files::LockFile;
use rusqlite::{Connection, ErrorCode, OpenFlags};

pub(crate) use search::IndexHit;
pub use update::IndexUpdate;
pub(crate) use vectors::{PendingVector, fuse_rankings};

use crate::error::RagError;

/// The id in the header of the database file, which is `haft` in ASCII.
const APPLICATION_ID: i32 = 0x6861_6674;
/// The version of the schema. An index with another version is recreated.
const FORMAT_VERSION: i32 = 2;
/// The maximum time to wait for another process. Writers lock the database only for a batch of
/// files.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

const SCHEMA: &str = "
    CREATE TABLE file (id INTEGER PRIMARY KEY, path BLOB NOT NULL UNIQUE, stamp TEXT NOT NULL, hash BLOB NOT NULL);
    CREATE TABLE chunk (id INTEGER PRIMARY KEY, file INTEGER NOT NULL, start INTEGER NOT NULL, \"end\" INTEGER NOT NULL,
        hash BLOB NOT NULL);
    CREATE TABLE vector (hash BLOB NOT NULL, model TEXT NOT NULL, dimension INTEGER NOT NULL, parts BLOB NOT NULL,
        PRIMARY KEY (hash, model)) WITHOUT ROWID;
    CREATE INDEX chunk_of_file ON chunk (file);
    CREATE VIRTUAL TABLE passage USING fts5(path, names, comments, text, content = '', contentless_delete = 1,
        tokenize = \"porter unicode61 remove_diacritics 2 tokenchars '_'\");
    CREATE VIRTUAL TABLE whole USING fts5(path, names, comments, text, content = '', contentless_delete = 1,
        tokenize = \"porter unicode61 remove_diacritics 2 tokenchars '_'\");
";

/// An open index of passages, in an SQLite database.
pub(crate) struct PassageIndex {
    connection: Connection,
}

/// The condition of an index when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexCondition {
    /// The index was usable or did not exist.
    Sound,
    /// The index was unusable and has been replaced by an empty one.
    Recreated,
}

impl PassageIndex {
    /// Opens the index in the file `path`. Creates the index if it does not exist, and recreates it
    /// if it is unusable.
    pub(crate) fn open(path: &Path) -> Result<(Self, IndexCondition), RagError> {
        let _alone = lock_index(path)?;
        match Self::open_database(path) {
            Ok(index) => Ok((index, IndexCondition::Sound)),
            Err(error) if is_damage_error(&error) => {
                remove_database(path)?;
                let index =
                    Self::open_database(path).map_err(|source| index_error(path, source))?;
                Ok((index, IndexCondition::Recreated))
            }
            Err(source) => Err(index_error(path, source)),
        }
    }

    /// Replaces an index with an empty one. Used if the index proves to be damaged after it was
    /// opened.
    pub(crate) fn recreate(path: &Path) -> Result<Self, RagError> {
        let _alone = lock_index(path)?;
        remove_database(path)?;
        Self::open_database(path).map_err(|source| index_error(path, source))
    }

    fn open_database(path: &Path) -> rusqlite::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(BUSY_TIMEOUT)?;
        connection.pragma_update(None, "trusted_schema", "OFF")?;
        connection.pragma_update(None, "cell_size_check", "ON")?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        // A power failure may lose the last transactions. The files in these transactions are then
        // indexed again.
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        let read_pragma = |name: &str| {
            connection.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i32>(0))
        };
        let application = read_pragma("application_id")?;
        let format = read_pragma("user_version")?;
        if (application, format) == (APPLICATION_ID, FORMAT_VERSION) {
            return Ok(Self { connection });
        }
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        if tables > 0 {
            return Err(damage_error("it has another format"));
        }
        let making = connection.transaction()?;
        making.execute_batch(SCHEMA)?;
        making.pragma_update(None, "application_id", APPLICATION_ID)?;
        making.pragma_update(None, "user_version", FORMAT_VERSION)?;
        making.commit()?;
        Ok(Self { connection })
    }

    /// Returns the number of files that contain text, and the number of passages.
    pub(crate) fn count_files_and_passages(&self) -> rusqlite::Result<(u64, u64)> {
        let count =
            |row: &rusqlite::Row<'_>, column| row.get::<_, i64>(column).map(i64::unsigned_abs);
        self.connection.query_row(
            "SELECT count(DISTINCT file), count(*) FROM chunk",
            [],
            |row| Ok((count(row, 0)?, count(row, 1)?)),
        )
    }
}

/// True if `error` shows that the database is unusable, because it is damaged or has a different
/// schema.
pub(crate) fn is_damage_error(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
        // A missing or different table.
        || matches!(error, rusqlite::Error::SqliteFailure(code, _) if code.extended_code == rusqlite::ffi::SQLITE_ERROR)
        || matches!(error, rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..))
        || matches!(error, rusqlite::Error::SqlInputError { .. })
}

fn damage_error(why: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(code, Some(why.to_owned()))
}

pub(crate) fn index_error(path: &Path, source: rusqlite::Error) -> RagError {
    if source.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) {
        return RagError::Busy(path.to_owned());
    }
    RagError::Database {
        path: path.to_owned(),
        source,
    }
}

/// Locks the index for opening or recreating it. Creates the folder and the database file, which
/// are readable only by their owner.
fn lock_index(path: &Path) -> Result<LockFile, RagError> {
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| RagError::Io {
            action,
            path,
            source,
        }
    };
    if let Some(folder) = path.parent() {
        haft_files::create_folder(folder).map_err(io("create the folder", folder))?;
    }
    let lock_path = sibling_path(path, "lock");
    let lock = LockFile::acquire(&lock_path).map_err(io("lock", &lock_path))?;
    haft_files::open_or_create(path).map_err(io("create", path))?;
    Ok(lock)
}

fn sibling_path(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!("-{ending}"));
    name.into()
}

/// Removes the database at `path`, and the files that SQLite creates next to it.
pub(crate) fn remove_database(path: &Path) -> Result<(), RagError> {
    for file in [
        path.to_owned(),
        sibling_path(path, "wal"),
        sibling_path(path, "shm"),
    ] {
        match std::fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(RagError::Io {
                    action: "remove",
                    path: file,
                    source: error,
                });
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Removes the database and its lock file.
pub(crate) fn remove_index(path: &Path) -> Result<(), RagError> {
    let alone = lock_index(path)?;
    remove_database(path)?;
    drop(alone);
    // Another process that waits for the lock then creates a new lock file.
    let _ = std::fs::remove_file(sibling_path(path, "lock"));
    Ok(())
}
