//! The write lock of a conversation, and the process that holds the lock.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;

use haft_types::{ConversationId, Timestamp};
use serde::{Deserialize, Serialize};

/// The exclusive right to write to a conversation. Released when the value is dropped or the
/// process dies.
pub struct WriteLock {
    // The value whose drop releases the lock, for any kind of store.
    _held: Box<dyn Any + Send + Sync>,
}

impl WriteLock {
    /// Creates a lock that is released when `held` is dropped.
    pub fn new(held: impl Any + Send + Sync) -> Self {
        Self {
            _held: Box::new(held),
        }
    }
}

impl fmt::Debug for WriteLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteLock").finish_non_exhaustive()
    }
}

/// The process that holds a write lock.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The process id.
    pub pid: u32,
    /// The host name.
    pub host: String,
    /// The time at which the lock was taken.
    pub since: Timestamp,
}

impl Holder {
    /// Returns a holder that describes the current process.
    pub fn for_this_process(now: Timestamp) -> Self {
        let host = rustix::system::uname()
            .nodename()
            .to_string_lossy()
            .into_owned();
        Self {
            pid: std::process::id(),
            host,
            since: now,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Any client of a database server may have written the row, so the name is not trusted.
        let host = haft_text::sanitize(&self.host);
        let host: String = host.chars().take(100).collect();
        write!(
            f,
            "process {} on {host} (since {:.0})",
            self.pid, self.since
        )
    }
}

/// The locked object in [`StoreError::LockTimeout`](crate::StoreError::LockTimeout).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locked {
    /// The conversation with this id.
    Conversation(ConversationId),
    /// The whole database at this path.
    Database(PathBuf),
}

impl fmt::Display for Locked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conversation(id) => write!(f, "conversation `{id}`"),
            Self::Database(path) => write!(f, "{}", path.display()),
        }
    }
}
