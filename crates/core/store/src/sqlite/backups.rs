//! Creates backups of a database that is in use, and restores backups.
//!
//! Invariant: a file with the name of a backup in the backup folder is a complete, checked copy of
//! the database at one moment. A copy gets such a name only after it was checked and synced, so a
//! kill leaves at most a file with another name. A damaged database never replaces a valid backup.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haft_files::Durability;
use haft_types::{Clock, ContentHash};
use rusqlite::backup::{Backup as Copying, StepResult};
use rusqlite::{Connection, OpenFlags};

use super::failure::{DatabaseFile, SqliteFailure};
use super::locks::DatabaseUse;
use super::migrations::{APPLICATION_ID, FORMAT_VERSION, read_identity};
use super::{files, index, open};
use crate::backup::{Backup, BackupLimits, REPLACED_MARK, select_expired};
use crate::config::StoreConfig;
use crate::error::StoreError;
use crate::lock::Locked;

/// The maximum rate at which backups are written, averaged over all runs of haft. When the store is
/// opened, a backup is created only if the newest backup is old enough for this rate, because many
/// short runs would otherwise copy a large database again and again.
const MAX_BYTES_PER_SECOND: u64 = 4 * 1024 * 1024;

/// The backups of one database.
#[derive(Clone)]
pub struct Backups {
    folder: PathBuf,
    place: DatabaseFile,
    keep: BackupLimits,
    interval: Duration,
    clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Backups")
            .field("folder", &self.folder)
            .finish_non_exhaustive()
    }
}

impl Backups {
    /// Returns the backups of this database in `folder`. Neither the folder nor a backup is
    /// created.
    pub fn new(
        database: &Path,
        folder: &Path,
        config: &StoreConfig,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            folder: folder.to_path_buf(),
            place: DatabaseFile {
                path: database.to_path_buf(),
                lock_timeout: config.lock_timeout(),
            },
            keep: BackupLimits {
                max_count: config.backups as usize,
                max_bytes: u64::from(config.backups_mb) * 1024 * 1024,
            },
            interval: Duration::from_secs(u64::from(config.backup_minutes.max(1)) * 60),
            clock,
        }
    }

    /// Returns all backups, oldest first.
    pub fn list(&self) -> Result<Vec<Backup>, StoreError> {
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| self.folder_error("read the folder", source))?,
        };
        let mut backups = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| self.folder_error("read the folder", source))?;
            let bytes = entry.metadata().map_or(0, |metadata| metadata.len());
            backups.extend(
                entry
                    .file_name()
                    .to_str()
                    .and_then(|name| Backup::from_file_name(&self.folder, name, bytes)),
            );
        }
        backups.sort_by_key(|backup| backup.number);
        Ok(backups)
    }

    /// Creates a backup now, even if nothing has changed since the newest backup.
    pub fn create(&self) -> Result<Backup, StoreError> {
        let _alone = DatabaseUse::lock_for_backup(&self.place.path, self.place.lock_timeout)?;
        self.create_locked()
    }

    /// Creates a backup if the database has changed since the newest backup. For
    /// [`BackupTrigger::Opened`], the newest backup must also be old enough for
    /// [`MAX_BYTES_PER_SECOND`].
    fn create_if_changed(&self, when: BackupTrigger) -> Result<(), StoreError> {
        let _alone = DatabaseUse::lock_for_backup(&self.place.path, self.place.lock_timeout)?;
        let due = self.list()?.pop().is_none_or(|newest| {
            let changed = newest.seen != self.fingerprint();
            let age = self.clock.now().duration_since(newest.made_at);
            let long_ago = age.as_secs().unsigned_abs() >= newest.bytes / MAX_BYTES_PER_SECOND;
            match when {
                // The age is negative, and so unknown, if the clock was set back.
                BackupTrigger::Opened => changed && (age.is_negative() || long_ago),
                BackupTrigger::Running => changed,
            }
        });
        if due && self.has_conversations()? {
            self.create_locked()?;
        }
        Ok(())
    }

    fn has_conversations(&self) -> Result<bool, StoreError> {
        let source = open::open_connection(&self.place, open::Purpose::Read)?;
        let exists = source.query_row("SELECT EXISTS (SELECT 1 FROM conversations)", [], |row| {
            row.get(0)
        });
        exists.map_err(|error| self.place.to_store_error(error.into()))
    }

    /// Copies the database under a temporary name, and renames the copy once it is complete. The
    /// caller must hold the backup lock.
    fn create_locked(&self) -> Result<Backup, StoreError> {
        haft_files::create_folder(&self.folder)
            .map_err(|source| self.folder_error("create the folder", source))?;
        let number = self.list()?.last().map_or(1, |newest| newest.number + 1);
        let made_at = self.clock.now();
        let seen = self.fingerprint();
        let unfinished = self.folder.join("unfinished");
        // A killed process may have left a copy.
        remove_database(&unfinished)
            .map_err(|source| self.folder_error("remove an unfinished backup from", source))?;
        if let Err(error) = self.copy_database(&unfinished) {
            let _ = remove_database(&unfinished);
            return Err(error);
        }
        let backup = Backup::new(&self.folder, number, made_at, &seen);
        // Unlike with `Durability::PowerCut`, it is an error if the folder cannot be synced.
        let named = haft_files::rename(&unfinished, &backup.path, Durability::Process)
            .and_then(|()| haft_files::sync_folder(&self.folder));
        named.map_err(|source| self.folder_error("name a backup in", source))?;
        self.prune()?;
        Ok(Backup {
            bytes: fs::metadata(&backup.path).map_or(0, |metadata| metadata.len()),
            ..backup
        })
    }

    fn copy_database(&self, to: &Path) -> Result<(), StoreError> {
        open::create_database_file(to)?;
        let copied = (|| {
            let source = open::open_connection(&self.place, open::Purpose::Read)?;
            let mut copy = Connection::open(to)?;
            // Copying all pages in one step is one read transaction: the copy is consistent even if
            // other processes write meanwhile.
            let copying = Copying::new(&source, &mut copy)?;
            if copying.step(-1)? != StepResult::Done {
                return Err(StoreError::LockTimeout {
                    what: Locked::Database(self.place.path.clone()),
                    holder: None,
                    waited: self.place.lock_timeout,
                }
                .into());
            }
            drop(copying);
            check_integrity(&copy)
        })();
        copied.map_err(|failure| self.place.to_store_error(failure))?;
        let synced = fs::File::open(to).and_then(|file| file.sync_all());
        synced.map_err(|source| self.folder_error("save a backup in", source))
    }

    /// Removes the backups that exceed the limits.
    fn prune(&self) -> Result<(), StoreError> {
        for backup in select_expired(self.list()?, self.keep) {
            remove_database(&backup.path)
                .map_err(|source| self.folder_error("remove a backup from", source))?;
        }
        Ok(())
    }

    /// Replaces the database with a backup. A copy of the replaced database is kept among the
    /// backups.
    pub fn restore(&self, backup: &Path) -> Result<(), StoreError> {
        let database = &self.place.path;
        let _alone = DatabaseUse::lock_exclusive(database)?;
        self.check_database_file(backup)?;
        // Makes a complete copy under another name first, so that the last step is a rename.
        let new = files::append_suffix(database, ".new");
        let _ = remove_database(&new);
        haft_files::copy_new(backup, &new)
            .map_err(|source| self.folder_error("copy a backup out of", source))?;
        if database.exists() {
            self.save_replaced_database()?;
        }
        let replaced = (|| {
            // The log of the old database must not be applied to the new one.
            files::remove_if_exists(&files::append_suffix(database, "-wal"))?;
            files::remove_if_exists(&files::append_suffix(database, "-shm"))?;
            haft_files::rename(&new, database, Durability::Process)?;
            haft_files::sync_folder(haft_files::containing_folder(database))?;
            index::remove_index(database)
        })();
        replaced.map_err(|source| StoreError::Io {
            action: "replace",
            path: database.clone(),
            source,
        })?;
        self.prune()
    }

    /// Copies the database and its log, even if they are damaged.
    fn save_replaced_database(&self) -> Result<(), StoreError> {
        haft_files::create_folder(&self.folder)
            .map_err(|source| self.folder_error("create the folder", source))?;
        let number = self.list()?.last().map_or(1, |newest| newest.number + 1);
        let path = Backup::new(&self.folder, number, self.clock.now(), REPLACED_MARK).path;
        let log = files::append_suffix(&self.place.path, "-wal");
        let copied = (|| {
            if log.exists() {
                haft_files::copy_new(&log, &files::append_suffix(&path, "-wal"))?;
            }
            haft_files::copy_new(&self.place.path, &path)?;
            haft_files::sync_folder(&self.folder)
        })();
        copied.map_err(|source| self.folder_error("keep the present database in", source))
    }

    /// Checks that the file is a valid database that this version of haft can read.
    fn check_database_file(&self, path: &Path) -> Result<(), StoreError> {
        let place = DatabaseFile {
            path: path.to_path_buf(),
            lock_timeout: self.place.lock_timeout,
        };
        let checked = (|| {
            // Opened for writing because a replaced database may have a log that was never
            // checkpointed.
            let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
            let (application, format) = read_identity(&connection)?;
            if application != APPLICATION_ID {
                return Err(StoreError::NotADatabase {
                    path: path.to_path_buf(),
                }
                .into());
            }
            if format > FORMAT_VERSION {
                return Err(SqliteFailure::NewerFormat(format));
            }
            connection.pragma_update_and_check(None, "wal_checkpoint", "TRUNCATE", |_| Ok(()))?;
            check_integrity(&connection)
        })();
        checked.map_err(|failure| place.to_store_error(failure))
    }

    /// Returns a fingerprint of the sizes and modification times of the database files. The
    /// fingerprint changes with every write.
    fn fingerprint(&self) -> String {
        let look = |path: &Path| {
            let metadata = fs::metadata(path)
                .ok()
                .filter(|metadata| metadata.len() > 0);
            let modified = metadata
                .as_ref()
                .and_then(|metadata| metadata.modified().ok());
            let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
            format!("{:?} {:?}", metadata.map(|metadata| metadata.len()), since)
        };
        let looks = [
            look(&self.place.path),
            look(&files::append_suffix(&self.place.path, "-wal")),
        ]
        .join(" ");
        ContentHash::from_content(looks.as_bytes()).to_string()[..8].to_owned()
    }

    fn folder_error(&self, action: &'static str, source: io::Error) -> StoreError {
        StoreError::Io {
            action,
            path: self.folder.clone(),
            source,
        }
    }
}

/// The event that triggers an automatic backup: the opening of the store, or the end of an
/// interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackupTrigger {
    Opened,
    Running,
}

fn check_integrity(connection: &Connection) -> Result<(), SqliteFailure> {
    let found: String = connection.pragma_query_value(None, "quick_check", |row| row.get(0))?;
    if found == "ok" {
        Ok(())
    } else {
        Err(SqliteFailure::Damaged(found))
    }
}

/// Removes a database with its log and its other files.
fn remove_database(path: &Path) -> io::Result<()> {
    ["-wal", "-shm", "-journal", ""]
        .iter()
        .try_for_each(|addition| files::remove_if_exists(&files::append_suffix(path, addition)))
}

/// A thread that creates backups while a store is open. Dropping the value waits for a backup in
/// progress.
pub(super) struct BackupThread {
    // Dropped to end the thread.
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl BackupThread {
    /// Starts the thread, which creates one backup now if anything has changed, and then one per
    /// configured interval.
    pub(super) fn start(backups: Backups) -> Result<Self, StoreError> {
        const NAME: &str = "haft-store-backup";
        let (stop, stopped) = mpsc::channel::<()>();
        let run = move || {
            let mut when = BackupTrigger::Opened;
            loop {
                // A failed backup is not fatal: `doctor` reports the age of the newest one, and the
                // next attempt may succeed.
                let _ = backups.create_if_changed(when);
                when = BackupTrigger::Running;
                match stopped.recv_timeout(backups.interval) {
                    Err(RecvTimeoutError::Timeout) => {}
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => return,
                }
            }
        };
        let thread = thread::Builder::new().name(NAME.to_owned()).spawn(run);
        let thread = thread.map_err(|source| StoreError::Thread {
            name: NAME.to_owned(),
            source,
        })?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for BackupThread {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
