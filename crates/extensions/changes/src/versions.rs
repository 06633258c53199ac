//! Stores earlier file versions, so that haft's changes can be undone.
//!
//! The versions are in one SQLite file, `versions.db`, apart from the conversations: it may grow
//! large, and losing it loses only undo. It holds contents, each once under its hash; the
//! [steps](FileStep) of every conversation, which record what each call did to a path; and the
//! state of each tree at its last scan, so that a scan reads only changed files. Once a write
//! method returns, its data survives a kill and a power cut.
//!
//! All methods block on the disk. The database is opened on first use: a run that changes nothing
//! never opens it.
//!
//! Read first: [`SqliteVersions`], [`FileVersion`] (the content of a path), [`FileStep`] (the call,
//! undo, or redo that changed it).

mod content;
mod live;
mod steps;
mod trees;
mod trim;
mod version;

use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use haft_files::LockFile;
use haft_store::database::{
    DatabaseFile, SqliteFailure, begin_immediate, create_database_file, enable_wal,
};
use haft_store::{StoreConfig, StoreError};
use haft_tool::CallName;
use haft_types::{Clock, ContentHash, ConversationId};
use rusqlite::{Connection, OpenFlags};

use self::content::Unreadable;
use self::live::LiveUse;

pub use self::content::FileContent;
pub use self::steps::{FileStep, PathChange, Reversal, StepId, StepKind};
pub use self::trees::{FileStamp, KnownFile, TreeUpdate};
pub use self::version::FileVersion;

/// The application id in the header of the database file: `hafv` in ASCII.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"hafv");
/// The version number of the database format that this build writes.
const FORMAT_VERSION: u32 = 1;

/// The reason why a file version could not be stored or read.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// The content was removed to keep the store within its size limit, or was never stored.
    #[error(
        "content {hash} is no longer stored: old versions are removed beyond `store.versions_mb`"
    )]
    Gone { hash: ContentHash },
    /// The stored content does not match its hash.
    #[error("content {hash} in {} is damaged and is not used", .path.display())]
    DamagedContent {
        hash: ContentHash,
        /// The path of the database that holds the content.
        path: PathBuf,
    },
    /// The database cannot be read.
    #[error("{} is damaged: {detail}; move it away, only undo of earlier changes is lost with it", .path.display())]
    Damaged {
        /// The path of the damaged database.
        path: PathBuf,
        /// A description of the damage.
        detail: String,
    },
    /// The store failed for a reason other than damage, such as an I/O error.
    #[error(transparent)]
    Store(StoreError),
}

impl From<StoreError> for VersionsError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Damaged { path, detail } => Self::Damaged { path, detail },
            error => Self::Store(error),
        }
    }
}

/// A guard that holds a lock on the store, or on versions in the store, until the guard is dropped.
pub struct VersionsGuard {
    _held: Box<dyn Send + Sync>,
}

impl VersionsGuard {
    /// Creates a guard that owns `held`. Dropping `held` must release the lock.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self {
            _held: Box::new(held),
        }
    }
}

/// A callback that receives the paths changed by a call, undo or redo, before the result of that
/// operation is used.
pub type ChangeListener = Arc<dyn Fn(&[&Path]) -> Result<(), StoreError> + Send + Sync>;

/// An SQLite database of file contents, the steps that changed files, and the state of trees at
/// their last scan. The database has a folder of its own.
pub struct SqliteVersions {
    folder: PathBuf,
    place: DatabaseFile,
    cap: u64,
    clock: Arc<dyn Clock>,
    connection: Mutex<Option<Connection>>,
    on_change: Option<ChangeListener>,
}

impl SqliteVersions {
    /// Creates the store in `folder`. The database is not opened or created yet.
    pub fn new(folder: &Path, config: &StoreConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            folder: folder.to_owned(),
            place: DatabaseFile {
                path: folder.join("versions.db"),
                lock_timeout: config.lock_timeout(),
            },
            cap: u64::from(config.versions_mb) * 1024 * 1024,
            clock,
            connection: Mutex::default(),
            on_change: None,
        }
    }

    /// Sets a callback that receives the paths of every change.
    #[must_use]
    pub fn with_change_listener(self, told: ChangeListener) -> Self {
        Self {
            on_change: Some(told),
            ..self
        }
    }

    /// Passes the changed paths to the callback set by [`Self::with_change_listener`], if there is
    /// one.
    pub(crate) fn notify_changed(&self, paths: &[&Path]) -> Result<(), VersionsError> {
        self.on_change
            .as_ref()
            .map_or(Ok(()), |told| Ok(told(paths)?))
    }

    /// Returns the number of bytes that the database uses. The size limit of the store applies to
    /// this number.
    pub fn used_bytes(&self) -> Result<u64, VersionsError> {
        self.with_connection(|connection| trim::used_bytes(connection))
    }

    /// Deletes the changes of these conversations, with the contents that only these changes refer
    /// to, and overwrites the deleted data. The scan states of all trees are deleted as well, so
    /// the next scan reads all files again.
    pub fn purge(&self, conversations: &[ConversationId]) -> Result<(), VersionsError> {
        if !self.exists() {
            return Ok(());
        }
        self.with_connection(|connection| trim::purge_conversations(connection, conversations))
    }

    fn folder_error(&self, action: &'static str, source: io::Error) -> VersionsError {
        StoreError::Io {
            action,
            path: self.folder.clone(),
            source,
        }
        .into()
    }

    fn with_transaction<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, SqliteFailure>,
    ) -> Result<T, VersionsError> {
        self.with_connection(|connection| {
            let transaction = begin_immediate(connection)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
    }

    fn with_connection<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, SqliteFailure>,
    ) -> Result<T, VersionsError> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let explain = |failure| VersionsError::from(self.place.to_store_error(failure));
        let open = match connection.as_mut() {
            Some(open) => open,
            None => connection.insert(self.open_database()?),
        };
        work(open).map_err(explain)
    }

    fn open_database(&self) -> Result<Connection, VersionsError> {
        create_database_file(&self.place.path)?;
        self.open_existing_database()
            .map_err(|failure| self.place.to_store_error(failure).into())
    }

    fn open_existing_database(&self) -> Result<Connection, SqliteFailure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.place.path, flags)?;
        connection.busy_timeout(self.place.lock_timeout)?;
        self.check_format(&connection)?;
        connection.pragma_update(None, "trusted_schema", "OFF")?;
        connection.pragma_update(None, "cell_size_check", "ON")?;
        // Takes effect only before the first table is created.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        enable_wal(&connection, &self.place)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "fullfsync", "ON")?;
        connection.pragma_update(None, "checkpoint_fullfsync", "ON")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        if self.check_format(&connection)? == VersionsFileState::Empty {
            let transaction = begin_immediate(&mut connection)?;
            // Checked again now that no other process can write.
            if self.check_format(&transaction)? == VersionsFileState::Empty {
                transaction.execute_batch(include_str!("versions/schema.sql"))?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                transaction.pragma_update(None, "user_version", FORMAT_VERSION)?;
            }
            transaction.commit()?;
        }
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    }

    fn check_format(&self, connection: &Connection) -> Result<VersionsFileState, SqliteFailure> {
        let path = || self.place.path.clone();
        let application: i32 =
            connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let format: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match (application, format) {
            (0, 0) => Ok(VersionsFileState::Empty),
            (APPLICATION_ID, FORMAT_VERSION) => Ok(VersionsFileState::Current),
            (APPLICATION_ID, found) => Err(StoreError::NewerFormat {
                path: path(),
                found,
                known: FORMAT_VERSION,
            }
            .into()),
            (_, _) => Err(StoreError::NotADatabase { path: path() }.into()),
        }
    }
}

impl SqliteVersions {
    /// True if the database file exists.
    pub fn exists(&self) -> bool {
        self.place.path.exists()
    }

    /// Returns the content with this hash. Fails if the stored bytes do not match the hash.
    pub fn read_content(&self, hash: ContentHash) -> Result<Vec<u8>, VersionsError> {
        let path = self.place.path.clone();
        self.with_connection(|connection| content::read_content(connection, hash))?
            .map_err(|why| match why {
                Unreadable::Gone => VersionsError::Gone { hash },
                Unreadable::Damaged => VersionsError::DamagedContent { hash, path },
            })
    }

    /// Records the versions of paths before a call changes them, with their contents. A path that
    /// was already saved for this call keeps its first version.
    pub fn save_before(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        before: &[(PathBuf, FileVersion)],
        contents: &[FileContent],
    ) -> Result<(), VersionsError> {
        let now = self.clock.now();
        self.with_transaction(|connection| {
            steps::save_before(connection, conversation, call, now, before, contents)
        })
    }

    /// Records the versions of saved paths after a call, with their contents. Paths that the call
    /// left unchanged are removed from the record.
    pub fn save_after(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        after: &[(PathBuf, FileVersion)],
        contents: &[FileContent],
    ) -> Result<(), VersionsError> {
        let now = self.clock.now();
        self.with_transaction(|connection| {
            steps::save_after(connection, conversation, call, now, after, contents)
        })?;
        self.notify_changed(
            &after
                .iter()
                .map(|(path, _)| path.as_path())
                .collect::<Vec<_>>(),
        )
    }

    /// Records a call's file changes that were found by comparing two scans: each path with its
    /// versions before and after the call. A change is skipped if another step recorded it after
    /// the step `since`. Returns the recorded paths.
    pub fn save_scanned(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        since: StepId,
        changes: &[(PathBuf, FileVersion, FileVersion)],
    ) -> Result<Vec<PathBuf>, VersionsError> {
        let now = self.clock.now();
        let noted = self.with_transaction(|connection| {
            steps::save_scanned(connection, conversation, call, now, since, changes)
        })?;
        self.notify_changed(
            &changes
                .iter()
                .map(|(path, ..)| path.as_path())
                .collect::<Vec<_>>(),
        )?;
        Ok(noted)
    }

    /// Returns the recorded calls, undos and redos of a conversation, oldest first.
    pub fn steps(&self, conversation: &ConversationId) -> Result<Vec<FileStep>, VersionsError> {
        self.with_connection(|connection| steps::list_steps(connection, conversation))
    }

    /// Returns the id of the newest step of all conversations.
    pub fn newest_step(&self) -> Result<StepId, VersionsError> {
        self.with_connection(|connection| steps::newest_step(connection))
    }

    /// Records that an undo or redo is about to start, and which call requested it. If the process
    /// is killed, the step stays marked as not done.
    pub fn begin_reversal(
        &self,
        conversation: &ConversationId,
        kind: StepKind,
        call: Option<&CallName>,
        reversals: &[Reversal],
        contents: &[FileContent],
    ) -> Result<StepId, VersionsError> {
        let now = self.clock.now();
        self.with_transaction(|connection| {
            steps::begin_reversal(
                connection,
                conversation,
                kind,
                call,
                now,
                reversals,
                contents,
            )
        })
    }

    /// Marks an undo or redo as done. `left` lists the paths that could not be changed.
    pub fn finish_reversal(&self, step: StepId, left: &[&Path]) -> Result<(), VersionsError> {
        self.with_transaction(|connection| steps::finish_reversal(connection, step, left))
    }

    /// Returns the state of each file at the last scan of the tree at `root`, with its path
    /// relative to `root`.
    pub fn known_files(&self, root: &Path) -> Result<Vec<(PathBuf, KnownFile)>, VersionsError> {
        self.with_connection(|connection| trees::read_tree(connection, root))
    }

    /// Stores the result of a scan of the tree at `root`.
    pub fn update_tree(&self, root: &Path, update: &TreeUpdate) -> Result<(), VersionsError> {
        let now = self.clock.now();
        self.with_transaction(|connection| trees::update_tree(connection, root, update, now))
    }

    /// Removes old versions if the store exceeds its size limit. Versions are kept while a guard
    /// returned by [`hold`](Self::hold) protects them.
    pub fn trim(&self) -> Result<(), VersionsError> {
        self.with_connection(|connection| trim::trim_to_cap(connection, &self.folder, self.cap))
    }

    /// Protects the versions of a conversation and of the trees from removal until the returned
    /// guard is dropped.
    pub fn hold(
        &self,
        conversation: &ConversationId,
        roots: &[&Path],
    ) -> Result<VersionsGuard, VersionsError> {
        let mut used = vec![LiveUse::Conversation(conversation.as_str())];
        used.extend(
            roots
                .iter()
                .map(|root| LiveUse::Tree(version::path_bytes(root))),
        );
        live::hold_locks(&self.folder, &used)
            .map(VersionsGuard::new)
            .map_err(|error| self.folder_error("lock", error))
    }

    /// Waits until no other process runs an undo or redo, then returns a guard that prevents other
    /// processes from starting an undo or redo.
    pub fn lock_undo(&self) -> Result<VersionsGuard, VersionsError> {
        LockFile::acquire(&self.folder.join("undo.lock"))
            .map(VersionsGuard::new)
            .map_err(|error| self.folder_error("lock", error))
    }

    /// Returns the current time of the file system's clock, in nanoseconds. Files written after
    /// this call never have an earlier change time.
    pub fn current_file_time(&self) -> Result<i64, VersionsError> {
        write_time_file(&self.folder).map_err(|error| self.folder_error("write to", error))
    }
}

/// Writes to the file `time` in `folder`, and returns the new change time of the file in
/// nanoseconds.
fn write_time_file(folder: &Path) -> io::Result<i64> {
    haft_files::create_folder(folder)?;
    let mut file = haft_files::open_or_create(&folder.join("time"))?;
    file.write_all(b".")?;
    let seen = file.metadata()?;
    Ok(seen
        .ctime()
        .saturating_mul(1_000_000_000)
        .saturating_add(seen.ctime_nsec()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VersionsFileState {
    Empty,
    Current,
}

#[cfg(test)]
mod tests;
