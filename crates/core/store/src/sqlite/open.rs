//! Opens or creates the database file, and checks that it is a haft database before changing it.
//!
//! Invariant: a file that is not a haft database, or has a newer format, is left unchanged.

use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::failure::{DatabaseFile, SqliteFailure};
use super::migrations::{APPLICATION_ID, FORMAT_VERSION, migrate_database, read_identity};
use crate::error::StoreError;

/// Requires a version of SQLite that is not affected by a known bug: in older versions, two
/// connections that write and checkpoint concurrently can corrupt a database in WAL mode.
const _: () = assert!(
    rusqlite::ffi::SQLITE_VERSION_NUMBER >= 3_051_003,
    "SQLite 3.51.3 or newer is needed"
);

/// Prevents two threads from creating and opening database files concurrently. When a thread closes
/// any handle of a file, this process loses all its locks on the file, including those of other
/// connections.
static CREATE_LOCK: Mutex<()> = Mutex::new(());

/// The purpose for which a connection is opened.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The connection creates and migrates the database, and later performs all writes.
    Write,
    /// The connection reads from a database that the writer has opened.
    Read,
}

/// Opens a connection to the database.
pub(super) fn open_connection(
    place: &DatabaseFile,
    purpose: Purpose,
) -> Result<Connection, StoreError> {
    if purpose == Purpose::Write {
        create_database_file(&place.path)?;
    }
    open_existing(place, purpose).map_err(|failure| place.to_store_error(failure))
}

fn open_existing(place: &DatabaseFile, purpose: Purpose) -> Result<Connection, SqliteFailure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(&place.path, flags)?;
    connection.busy_timeout(place.lock_timeout)?;
    check_identity(&connection, place)?;
    // The schema is data too: a damaged or malicious one must not run functions, and cells are
    // checked before use.
    connection.pragma_update(None, "trusted_schema", "OFF")?;
    connection.pragma_update(None, "cell_size_check", "ON")?;
    // A quarter of SQLite's default: the pages are in the system's cache too, and each connection
    // has its own cache.
    connection.pragma_update(None, "cache_size", -512)?;
    match purpose {
        Purpose::Write => {
            enable_wal(&connection, place)?;
            connection.pragma_update(None, "synchronous", "FULL")?;
            // On macOS, a plain sync leaves the data in the drive's cache. Elsewhere these settings
            // have no effect.
            connection.pragma_update(None, "fullfsync", "ON")?;
            connection.pragma_update(None, "checkpoint_fullfsync", "ON")?;
            connection.pragma_update(None, "foreign_keys", "ON")?;
            migrate_database(&mut connection)?;
            check_identity(&connection, place)?;
        }
        Purpose::Read => connection.pragma_update(None, "query_only", "ON")?,
    }
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

fn check_identity(connection: &Connection, place: &DatabaseFile) -> Result<(), SqliteFailure> {
    let path = place.path.clone();
    // Reads everything in one transaction: another process may be creating the database right now.
    let connection = connection.unchecked_transaction()?;
    let (application, format) = read_identity(&connection)?;
    if application != APPLICATION_ID {
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        // A kill right after the creation leaves an empty file.
        if (application, format, tables) != (0, 0, 0) {
            return Err(StoreError::NotADatabase { path }.into());
        }
    } else if format > FORMAT_VERSION {
        return Err(StoreError::NewerFormat {
            path,
            found: format,
            known: FORMAT_VERSION,
        }
        .into());
    }
    Ok(())
}

/// Switches the database to write-ahead logging. SQLite fails if another process is switching the
/// database at that moment, so this function retries until the lock timeout.
pub fn enable_wal(connection: &Connection, place: &DatabaseFile) -> Result<(), SqliteFailure> {
    let started = Instant::now();
    loop {
        match connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0))
        {
            Ok(mode) if mode == "wal" => return Ok(()),
            // Not every file system supports WAL mode, and without it readers and writers would
            // block each other.
            Ok(mode) => {
                let source = format!(
                    "its journal mode stays `{mode}` instead of `wal`; put it on a local disk"
                )
                .into();
                return Err(StoreError::Database {
                    path: place.path.clone(),
                    source,
                }
                .into());
            }
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && started.elapsed() < place.lock_timeout =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Creates the database file and its folders unless they exist. Only the owner can read the new
/// file and folders.
pub fn create_database_file(path: &Path) -> Result<(), StoreError> {
    let failed = |action, path: &Path, source| StoreError::Io {
        action,
        path: path.to_path_buf(),
        source,
    };
    let folder = haft_files::containing_folder(path);
    let _alone = CREATE_LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    if path.exists() {
        return Ok(());
    }
    haft_files::create_folder(folder)
        .map_err(|error| failed("create the folder", folder, error))?;
    match haft_files::create_new(path) {
        Ok(file) => {
            // The name of the file must survive a power cut, not only its content.
            drop(file);
            haft_files::sync_folder(folder)
                .map_err(|error| failed("save the folder", folder, error))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed("create", path, error)),
    }
}
