//! What files were before haft changed them, so that its changes can be taken back.
//!
//! One SQLite file, `versions.db`, apart from the conversations: it may grow large, and losing it
//! loses undo and nothing else. It holds contents by hash, each once; the [steps](FileStep) of
//! every conversation, which say what a call did to a path; and what trees looked like when they
//! were last scanned, so that a scan reads only what changed since. What a method that writes
//! returned from survives a kill and a power cut.
//!
//! Everything here blocks on the disk. The database is opened when it is first needed: a run that
//! changes nothing never does.
//!
//! Read first: [`SqliteVersions`], [`FileVersion`] (what a path holds), [`FileStep`] (who changed
//! it).

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
use haft_store::database::{DatabaseFile, SqliteFailure, create_file, immediate, use_wal};
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

/// Marks a file as ours in its header: `hafv` in ASCII.
const APPLICATION_ID: i32 = i32::from_be_bytes(*b"hafv");
/// The format this version writes.
const FORMAT: u32 = 1;

/// Why a version could not be kept or found.
#[derive(Debug, thiserror::Error)]
pub enum VersionsError {
    /// The content is not stored any more.
    #[error(
        "content {hash} is no longer stored: old versions are removed beyond `store.versions_mb`"
    )]
    Gone {
        /// Its hash.
        hash: ContentHash,
    },
    /// The content is not what was stored.
    #[error("content {hash} in {} is damaged and is not used", .path.display())]
    DamagedContent {
        /// Its hash.
        hash: ContentHash,
        /// The database.
        path: PathBuf,
    },
    /// The database cannot be read.
    #[error("{} is damaged: {detail}; move it away, only undo of earlier changes is lost with it", .path.display())]
    Damaged {
        /// The database.
        path: PathBuf,
        /// What was found.
        detail: String,
    },
    /// Anything else.
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

/// Something that is released when this is dropped.
pub struct VersionsGuard {
    _held: Box<dyn Send + Sync>,
}

impl VersionsGuard {
    /// Releases `held` by dropping it.
    pub fn new(held: impl Send + Sync + 'static) -> Self {
        Self {
            _held: Box::new(held),
        }
    }
}

/// Is told of paths that calls, undos and redos changed, before anything is made of their results.
pub type ChangedPaths = Arc<dyn Fn(&[&Path]) -> Result<(), StoreError> + Send + Sync>;

/// What files were before haft changed them: contents, the steps that changed them, and trees as
/// they were last scanned. In an SQLite database, in a folder of its own.
pub struct SqliteVersions {
    folder: PathBuf,
    place: DatabaseFile,
    cap: u64,
    clock: Arc<dyn Clock>,
    connection: Mutex<Option<Connection>>,
    told: Option<ChangedPaths>,
}

impl SqliteVersions {
    /// The versions in this folder. Nothing is opened or made yet.
    pub fn at(folder: &Path, config: &StoreConfig, clock: Arc<dyn Clock>) -> Self {
        Self {
            folder: folder.to_owned(),
            place: DatabaseFile {
                path: folder.join("versions.db"),
                lock_timeout: config.lock_timeout(),
            },
            cap: u64::from(config.versions_mb) * 1024 * 1024,
            clock,
            connection: Mutex::default(),
            told: None,
        }
    }

    /// The same, where somebody else is told of every change.
    #[must_use]
    pub fn telling(self, told: ChangedPaths) -> Self {
        Self {
            told: Some(told),
            ..self
        }
    }

    /// Tells who wants to know that these paths have changed.
    pub(crate) fn tell(&self, paths: &[&Path]) -> Result<(), VersionsError> {
        self.told.as_ref().map_or(Ok(()), |told| Ok(told(paths)?))
    }

    /// How much of the cap the database uses.
    pub fn used_bytes(&self) -> Result<u64, VersionsError> {
        self.with(|connection| trim::used_bytes(connection))
    }

    /// Forgets what these conversations changed, with the contents nothing else refers to, and
    /// overwrites what was deleted. Trees are forgotten, too: they are looked at again when
    /// they are next needed.
    pub fn purge(&self, conversations: &[ConversationId]) -> Result<(), VersionsError> {
        if !self.exists() {
            return Ok(());
        }
        self.with(|connection| trim::purge(connection, conversations))
    }

    fn refused(&self, action: &'static str, source: io::Error) -> VersionsError {
        StoreError::Io {
            action,
            path: self.folder.clone(),
            source,
        }
        .into()
    }

    fn write<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, SqliteFailure>,
    ) -> Result<T, VersionsError> {
        self.with(|connection| {
            let transaction = immediate(connection)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, SqliteFailure>,
    ) -> Result<T, VersionsError> {
        let mut connection = self
            .connection
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let explain = |failure| VersionsError::from(self.place.explain(failure));
        let open = match connection.as_mut() {
            Some(open) => open,
            None => connection.insert(self.open()?),
        };
        work(open).map_err(explain)
    }

    fn open(&self) -> Result<Connection, VersionsError> {
        create_file(&self.place.path)?;
        self.open_existing()
            .map_err(|failure| self.place.explain(failure).into())
    }

    fn open_existing(&self) -> Result<Connection, SqliteFailure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut connection = Connection::open_with_flags(&self.place.path, flags)?;
        connection.busy_timeout(self.place.lock_timeout)?;
        self.check(&connection)?;
        connection.pragma_update(None, "trusted_schema", "OFF")?;
        connection.pragma_update(None, "cell_size_check", "ON")?;
        // Only before the first table is made; later it changes nothing.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        use_wal(&connection, &self.place)?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "fullfsync", "ON")?;
        connection.pragma_update(None, "checkpoint_fullfsync", "ON")?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        if self.check(&connection)? == VersionsFileState::Nothing {
            let transaction = immediate(&mut connection)?;
            // Looked at again now that nobody else can write.
            if self.check(&transaction)? == VersionsFileState::Nothing {
                transaction.execute_batch(include_str!("versions/schema.sql"))?;
                transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
                transaction.pragma_update(None, "user_version", FORMAT)?;
            }
            transaction.commit()?;
        }
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    }

    fn check(&self, connection: &Connection) -> Result<VersionsFileState, SqliteFailure> {
        let path = || self.place.path.clone();
        let application: i32 =
            connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let format: u32 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        match (application, format) {
            (0, 0) => Ok(VersionsFileState::Nothing),
            (APPLICATION_ID, FORMAT) => Ok(VersionsFileState::Ours),
            (APPLICATION_ID, found) => Err(StoreError::NewerFormat {
                path: path(),
                found,
                known: FORMAT,
            }
            .into()),
            (_, _) => Err(StoreError::NotADatabase { path: path() }.into()),
        }
    }
}

/// Every method blocks; what one that writes returned from survives a kill.
impl SqliteVersions {
    /// Whether anything was ever saved.
    pub fn exists(&self) -> bool {
        self.place.path.exists()
    }

    /// The content with this hash, checked.
    pub fn content(&self, hash: ContentHash) -> Result<Vec<u8>, VersionsError> {
        let path = self.place.path.clone();
        self.with(|connection| content::read(connection, hash))?
            .map_err(|why| match why {
                Unreadable::Gone => VersionsError::Gone { hash },
                Unreadable::Damaged => VersionsError::DamagedContent { hash, path },
            })
    }

    /// Notes what paths hold before a call changes them, with their contents. A path the call saved
    /// before keeps its first version.
    pub fn save(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        before: &[(PathBuf, FileVersion)],
        contents: &[FileContent],
    ) -> Result<(), VersionsError> {
        let now = self.clock.now();
        self.write(|connection| steps::save(connection, conversation, call, now, before, contents))
    }

    /// Notes how a call left paths it saved, with their contents. Those it left as they were are
    /// forgotten.
    pub fn changed(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        after: &[(PathBuf, FileVersion)],
        contents: &[FileContent],
    ) -> Result<(), VersionsError> {
        let now = self.clock.now();
        self.write(|connection| {
            steps::changed(connection, conversation, call, now, after, contents)
        })?;
        self.tell(
            &after
                .iter()
                .map(|(path, _)| path.as_path())
                .collect::<Vec<_>>(),
        )
    }

    /// Notes what a call did to paths between two scans: each with what it held before and after.
    /// What another step did since `since` is that step's doing. Gives the paths that were
    /// noted.
    pub fn record(
        &self,
        conversation: &ConversationId,
        call: &CallName,
        since: StepId,
        changes: &[(PathBuf, FileVersion, FileVersion)],
    ) -> Result<Vec<PathBuf>, VersionsError> {
        let now = self.clock.now();
        let noted = self.write(|connection| {
            steps::record(connection, conversation, call, now, since, changes)
        })?;
        self.tell(
            &changes
                .iter()
                .map(|(path, ..)| path.as_path())
                .collect::<Vec<_>>(),
        )?;
        Ok(noted)
    }

    /// The steps of a conversation, in order.
    pub fn steps(&self, conversation: &ConversationId) -> Result<Vec<FileStep>, VersionsError> {
        self.with(|connection| steps::list(connection, conversation))
    }

    /// The newest step of any conversation.
    pub fn newest(&self) -> Result<StepId, VersionsError> {
        self.with(|connection| steps::newest(connection))
    }

    /// Notes an undo or redo that is about to be done, and the call that asked for it. Should the
    /// process be killed, the steps show it as not done.
    pub fn begin(
        &self,
        conversation: &ConversationId,
        kind: StepKind,
        call: Option<&CallName>,
        reversals: &[Reversal],
        contents: &[FileContent],
    ) -> Result<StepId, VersionsError> {
        let now = self.clock.now();
        self.write(|connection| {
            steps::begin(
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

    /// Notes that an undo or redo is over, and which paths it left as they were.
    pub fn finish(&self, step: StepId, left: &[&Path]) -> Result<(), VersionsError> {
        self.write(|connection| steps::finish(connection, step, left))
    }

    /// What is known of the tree at `root`, by path relative to it.
    pub fn tree(&self, root: &Path) -> Result<Vec<(PathBuf, KnownFile)>, VersionsError> {
        self.with(|connection| trees::read(connection, root))
    }

    /// Notes what a scan of the tree at `root` found out.
    pub fn update_tree(&self, root: &Path, update: &TreeUpdate) -> Result<(), VersionsError> {
        let now = self.clock.now();
        self.write(|connection| trees::update(connection, root, update, now))
    }

    /// Removes what is beyond the cap, oldest first. What a guard of [`hold`](Self::hold) holds
    /// stays.
    pub fn trim(&self) -> Result<(), VersionsError> {
        self.with(|connection| trim::trim(connection, &self.folder, self.cap))
    }

    /// Keeps the versions of a conversation and of trees from being removed while the result lives.
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
        live::hold(&self.folder, &used)
            .map(VersionsGuard::new)
            .map_err(|error| self.refused("lock", error))
    }

    /// Waits until no other process takes changes back.
    pub fn undoing(&self) -> Result<VersionsGuard, VersionsError> {
        LockFile::wait(&self.folder.join("undo.lock"))
            .map(VersionsGuard::new)
            .map_err(|error| self.refused("lock", error))
    }

    /// The time as the file system tells it: what is written from now on has this stamp or a later
    /// one.
    pub fn file_time(&self) -> Result<i64, VersionsError> {
        let touch = || -> io::Result<i64> {
            haft_files::create_folder(&self.folder)?;
            let mut file = haft_files::open(&self.folder.join("time"))?;
            file.write_all(b".")?;
            let seen = file.metadata()?;
            Ok(seen
                .ctime()
                .saturating_mul(1_000_000_000)
                .saturating_add(seen.ctime_nsec()))
        };
        touch().map_err(|error| self.refused("write to", error))
    }
}

/// What a database file holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum VersionsFileState {
    Nothing,
    Ours,
}

#[cfg(test)]
mod tests;
