//! Who may write to a conversation, between processes: one file a conversation, locked by the
//! system and gone when unlocked.
//!
//! Invariant: a file that a right was taken on is the one that stands under its name, so two
//! processes never have the right on two files of one name. The system gives a dead process's locks
//! back, so nothing has to be cleaned up after a kill; what the file says of its holder is for
//! people only.

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

/// How often somebody who waits looks again.
pub(super) const PATIENCE: Duration = Duration::from_millis(10);

/// How long somebody waits who hardly waits: a process that is just leaving gets out of the way.
pub(super) const AT_ONCE: Duration = Duration::from_millis(250);

/// The locks beside one database.
pub(super) struct SqliteLocks {
    folder: PathBuf,
    pub(super) timeout: Duration,
    /// The conversations this store has the right to write to until it is given back.
    held: Mutex<HashSet<ConversationId>>,
}

/// Whether the right could be had at once.
enum Tried {
    Taken(Right),
    HeldBy(Option<Holder>),
}

/// The right to write to one conversation.
pub(super) struct Right {
    path: PathBuf,
    // Unlocked by closing it.
    _file: File,
}

impl Drop for Right {
    fn drop(&mut self) {
        // Removed while it is still locked: who waits for it finds that it has no name any more,
        // and takes the next one. A file that stays is no harm, it only lies about.
        let _ = fs::remove_file(&self.path);
    }
}

/// The right of somebody who keeps it for longer.
pub(super) struct KeptWriteLock {
    locks: Arc<SqliteLocks>,
    conversation: ConversationId,
    right: Option<Right>,
}

impl Drop for KeptWriteLock {
    fn drop(&mut self) {
        let mut held = self.locks.held();
        held.remove(&self.conversation);
        // Given back before another thread of this store can see that it is not held here.
        self.right = None;
    }
}

impl SqliteLocks {
    pub(super) fn new(database: &Path, timeout: Duration) -> Self {
        Self {
            folder: folder(database),
            timeout,
            held: Mutex::default(),
        }
    }

    fn held(&self) -> std::sync::MutexGuard<'_, HashSet<ConversationId>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right for one write: at once where this store keeps it, else as soon as nobody else has
    /// it. Blocks.
    pub(super) fn for_one_write(
        &self,
        conversation: &ConversationId,
        now: Timestamp,
    ) -> Result<Option<Right>, StoreError> {
        let started = Instant::now();
        loop {
            if self.held().contains(conversation) {
                return Ok(None);
            }
            match self.try_take(conversation, now)? {
                Tried::Taken(right) => return Ok(Some(right)),
                Tried::HeldBy(holder) if started.elapsed() >= self.timeout => {
                    return Err(timed_out(conversation, holder, self.timeout));
                }
                Tried::HeldBy(_) => std::thread::sleep(PATIENCE),
            }
        }
    }

    /// The right until it is dropped, as soon as nobody else has it.
    pub(super) async fn keep(
        self: &Arc<Self>,
        conversation: &ConversationId,
        now: Timestamp,
        timeout: Duration,
    ) -> Result<KeptWriteLock, StoreError> {
        let started = Instant::now();
        loop {
            match self.try_take(conversation, now)? {
                Tried::Taken(right) => {
                    self.held().insert(conversation.clone());
                    let locks = Arc::clone(self);
                    let conversation = conversation.clone();
                    return Ok(KeptWriteLock {
                        locks,
                        conversation,
                        right: Some(right),
                    });
                }
                Tried::HeldBy(holder) if started.elapsed() >= timeout => {
                    return Err(timed_out(conversation, holder, timeout));
                }
                Tried::HeldBy(_) => tokio::time::sleep(PATIENCE).await,
            }
        }
    }

    fn try_take(&self, conversation: &ConversationId, now: Timestamp) -> Result<Tried, StoreError> {
        let path = self
            .folder
            .join(ContentHash::of(conversation.as_str().as_bytes()).to_string());
        let holder = Holder::this_process(now);
        try_take(path.clone(), &holder).map_err(|source| StoreError::Io {
            action: "lock",
            path,
            source,
        })
    }
}

fn timed_out(
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

/// Where the locks of a database lie.
fn folder(database: &Path) -> PathBuf {
    haft_files::folder_of(database).join("locks")
}

/// Takes the lock of a conversation, if no other process has it. Not a `LockFile`: the file is
/// removed with the lock, and it names its holder to those that wait.
fn try_take(path: PathBuf, holder: &Holder) -> io::Result<Tried> {
    loop {
        let mut file = match haft_files::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                haft_files::create_folder(haft_files::folder_of(&path))?;
                continue;
            }
            opened => opened?,
        };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Tried::HeldBy(read_holder(&mut file))),
            // A file system without locks: transactions still keep every single write whole.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
        if is_named(&file, &path)? {
            file.set_len(0)?;
            serde_json::to_writer(&mut file, holder)?;
            file.flush()?;
            return Ok(Tried::Taken(Right { path, _file: file }));
        }
    }
}

fn read_holder(file: &mut File) -> Option<Holder> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

/// Whether the file stands under this name, and not one that took its place.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
fn is_named(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// Something of a database as a whole that others may not have at the same time.
#[derive(Debug)]
pub(super) struct DatabaseUse {
    /// None on a file system without locks.
    _lock: Option<LockFile>,
}

/// The use of the database: shared by all who have it open, alone for who puts another in its
/// place.
const DATABASE: &str = "database";
/// The making of backups.
const BACKUP: &str = "backup";

impl DatabaseUse {
    /// The database together with others; waits while somebody has it alone.
    pub(super) fn together(database: &Path, timeout: Duration) -> Result<Self, StoreError> {
        wait_for(database, timeout, || {
            take(database, DATABASE, LockFile::try_shared)
        })
    }

    /// The database alone, or not at all.
    pub(super) fn alone(database: &Path) -> Result<Self, StoreError> {
        take(database, DATABASE, LockFile::try_new)?.ok_or_else(|| StoreError::InUse {
            path: database.to_path_buf(),
        })
    }

    /// The making of backups; waits while another process makes one.
    pub(super) fn backup(database: &Path, timeout: Duration) -> Result<Self, StoreError> {
        wait_for(database, timeout, || {
            take(database, BACKUP, LockFile::try_new)
        })
    }
}

fn wait_for(
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
            None => std::thread::sleep(PATIENCE),
        }
    }
}

fn take(
    database: &Path,
    name: &str,
    lock: impl Fn(&Path) -> io::Result<Option<LockFile>>,
) -> Result<Option<DatabaseUse>, StoreError> {
    let folder = folder(database);
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
