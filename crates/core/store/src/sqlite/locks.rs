//! The write locks of conversations, shared between processes: one file per conversation, locked by
//! the operating system and removed on release.
//!
//! Invariant: a locked file is still the file at its path, so two processes never hold locks on two
//! files of one name. The operating system releases the locks of a dead process, so a kill needs no
//! cleanup. The holder recorded in the file is only informational.

use std::collections::HashSet;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haft_files::LockFile;
use haft_types::{ContentHash, ConversationId, Timestamp};

use crate::error::StoreError;
use crate::lock::{Holder, Locked};

/// The interval between two attempts to take a lock.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The time limit for [`Store::try_lock`](crate::Store::try_lock). It is long enough for a process
/// that is just exiting to release its lock.
pub(super) const TRY_TIMEOUT: Duration = Duration::from_millis(250);

/// The write locks of the conversations in one database.
pub(super) struct SqliteLocks {
    folder: PathBuf,
    pub(super) timeout: Duration,
    /// The conversations that this store has locked with a [`KeptWriteLock`]. Single writes to them
    /// need no further lock.
    held: Mutex<HashSet<ConversationId>>,
}

/// The result of an attempt to take a lock.
enum LockAttempt {
    Taken(ConversationLock),
    HeldBy(Option<Holder>),
}

/// The lock file of one conversation, held by this process.
pub(super) struct ConversationLock {
    path: PathBuf,
    // Closing the file unlocks it.
    _file: File,
}

impl Drop for ConversationLock {
    fn drop(&mut self) {
        // Removed before it is unlocked: a process that waits for the lock finds that the file has
        // no name any more, and opens a new one. If the removal fails, the remaining file does no
        // harm.
        let _ = fs::remove_file(&self.path);
    }
}

/// A lock that is held across several writes.
pub(super) struct KeptWriteLock {
    locks: Arc<SqliteLocks>,
    conversation: ConversationId,
    right: Option<ConversationLock>,
}

impl Drop for KeptWriteLock {
    fn drop(&mut self) {
        let mut held = self.locks.held_conversations();
        held.remove(&self.conversation);
        // Released before another thread of this store can see that the lock is gone.
        self.right = None;
    }
}

impl SqliteLocks {
    pub(super) fn new(database: &Path, timeout: Duration) -> Self {
        Self {
            folder: lock_folder(database),
            timeout,
            held: Mutex::default(),
        }
    }

    fn held_conversations(&self) -> std::sync::MutexGuard<'_, HashSet<ConversationId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the write lock for one write. Waits while another process holds the lock, and blocks
    /// the thread. Returns `None` if this store already holds the lock.
    pub(super) fn lock_for_write(
        &self,
        conversation: &ConversationId,
        now: Timestamp,
    ) -> Result<Option<ConversationLock>, StoreError> {
        let started = Instant::now();
        loop {
            if self.held_conversations().contains(conversation) {
                return Ok(None);
            }
            match self.try_lock(conversation, now)? {
                LockAttempt::Taken(right) => return Ok(Some(right)),
                LockAttempt::HeldBy(holder) if started.elapsed() >= self.timeout => {
                    return Err(timeout_error(conversation, holder, self.timeout));
                }
                LockAttempt::HeldBy(_) => std::thread::sleep(POLL_INTERVAL),
            }
        }
    }

    /// Takes a write lock that is held until the result is dropped. Waits at most `timeout` while
    /// another process holds the lock.
    pub(super) async fn lock_until_dropped(
        self: &Arc<Self>,
        conversation: &ConversationId,
        now: Timestamp,
        timeout: Duration,
    ) -> Result<KeptWriteLock, StoreError> {
        let started = Instant::now();
        loop {
            match self.try_lock(conversation, now)? {
                LockAttempt::Taken(right) => {
                    self.held_conversations().insert(conversation.clone());
                    let locks = Arc::clone(self);
                    let conversation = conversation.clone();
                    return Ok(KeptWriteLock {
                        locks,
                        conversation,
                        right: Some(right),
                    });
                }
                LockAttempt::HeldBy(holder) if started.elapsed() >= timeout => {
                    return Err(timeout_error(conversation, holder, timeout));
                }
                LockAttempt::HeldBy(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    fn try_lock(
        &self,
        conversation: &ConversationId,
        now: Timestamp,
    ) -> Result<LockAttempt, StoreError> {
        let path = self
            .folder
            .join(ContentHash::from_content(conversation.as_str().as_bytes()).to_string());
        let holder = Holder::for_this_process(now);
        try_lock_file(path.clone(), &holder).map_err(|source| StoreError::Io {
            action: "lock",
            path,
            source,
        })
    }
}

fn timeout_error(
    conversation: &ConversationId,
    holder: Option<Holder>,
    waited: Duration,
) -> StoreError {
    StoreError::LockTimeout {
        what: Locked::Conversation(conversation.clone()),
        holder,
        waited,
    }
}

/// Returns the folder with the lock files of a database.
fn lock_folder(database: &Path) -> PathBuf {
    haft_files::containing_folder(database).join("locks")
}

/// Takes the lock of a conversation if no other process holds it. A [`LockFile`] is not suitable,
/// because the lock's file contains its holder and is removed when the lock is released.
fn try_lock_file(path: PathBuf, holder: &Holder) -> io::Result<LockAttempt> {
    loop {
        let mut file = match haft_files::open_or_create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                haft_files::create_folder(haft_files::containing_folder(&path))?;
                continue;
            }
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(LockAttempt::HeldBy(read_holder(&mut file)));
            }
            // The file system has no locks. Transactions still protect every single write.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_at_path(&file, &path)? {
            file.set_len(0)?;
            serde_json::to_writer(&mut file, holder)?;
            file.flush()?;
            return Ok(LockAttempt::Taken(ConversationLock { path, _file: file }));
        }
    }
}

fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// True if the file at the path is still the open file `file`.
#[cfg(unix)]
fn is_at_path(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_at_path(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// A lock on the use of a whole database.
#[derive(Debug)]
pub(super) struct DatabaseUse {
    /// The lock that was taken; `None` on a file system without locks.
    _lock: Option<LockFile>,
}

/// The name of the lock on the use of a database. Every process that has the database open shares
/// the lock; a process that replaces the database holds it exclusively.
const DATABASE_LOCK: &str = "database";
/// The name of the lock that a process holds while it creates a backup.
const BACKUP_LOCK: &str = "backup";

impl DatabaseUse {
    /// Locks the database for shared use. Waits while another process holds the exclusive lock.
    pub(super) fn lock_for_use(database: &Path, timeout: Duration) -> Result<Self, StoreError> {
        wait_for_lock(database, timeout, || {
            try_lock_database(database, DATABASE_LOCK, LockFile::try_acquire_shared)
        })
    }

    /// Locks the database exclusively. Fails if another process has the database open.
    pub(super) fn lock_exclusive(database: &Path) -> Result<Self, StoreError> {
        try_lock_database(database, DATABASE_LOCK, LockFile::try_acquire)?.ok_or_else(|| {
            StoreError::InUse {
                path: database.to_path_buf(),
            }
        })
    }

    /// Takes the lock for creating a backup. Waits while another process is creating one.
    pub(super) fn lock_for_backup(database: &Path, timeout: Duration) -> Result<Self, StoreError> {
        wait_for_lock(database, timeout, || {
            try_lock_database(database, BACKUP_LOCK, LockFile::try_acquire)
        })
    }
}

fn wait_for_lock(
    database: &Path,
    timeout: Duration,
    take: impl Fn() -> Result<Option<DatabaseUse>, StoreError>,
) -> Result<DatabaseUse, StoreError> {
    let started = Instant::now();
    loop {
        match take()? {
            Some(taken) => return Ok(taken),
            None if started.elapsed() >= timeout => {
                let what = Locked::Database(database.to_path_buf());
                return Err(StoreError::LockTimeout {
                    what,
                    holder: None,
                    waited: timeout,
                });
            }
            None => std::thread::sleep(POLL_INTERVAL),
        }
    }
}

fn try_lock_database(
    database: &Path,
    name: &str,
    lock: impl Fn(&Path) -> io::Result<Option<LockFile>>,
) -> Result<Option<DatabaseUse>, StoreError> {
    let folder = lock_folder(database);
    let path = folder.join(name);
    let failed = |path: &Path, source| StoreError::Io {
        action: "lock",
        path: path.to_path_buf(),
        source,
    };
    haft_files::create_folder(&folder).map_err(|source| failed(&folder, source))?;
    match lock(&path) {
        Ok(lock) => Ok(lock.map(|lock| DatabaseUse { _lock: Some(lock) })),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            Ok(Some(DatabaseUse { _lock: None }))
        }
        Err(source) => Err(failed(&path, source)),
    }
}
