//! The right to write to a conversation, and who has it.

use std::any::Any;
use std::fmt;
use std::path::PathBuf;

use haft_types::{ConversationId, Timestamp};
use serde::{Deserialize, Serialize};

/// The right to write to a conversation. Nobody else writes to it until this is dropped; a process
/// that dies gives it back.
pub struct WriteLock {
    // Whatever the store needs to give the right back on drop.
    _held: Box<dyn Any + Send + Sync>,
}

impl WriteLock {
    /// A right that is given back by dropping this.
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

/// Who has the right to write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process.
    pub pid: u32,
    /// Its machine.
    pub host: String,
    /// Since when.
    pub since: Timestamp,
}

impl Holder {
    /// This process, from now on.
    pub fn this_process(now: Timestamp) -> Self {
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
        // A row of a server may have been written by anybody.
        let host = haft_text::sanitise(&self.host);
        let host: String = host.chars().take(100).collect();
        write!(
            f,
            "process {} on {host} (since {:.0})",
            self.pid, self.since
        )
    }
}

/// What stayed locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Locked {
    /// One conversation.
    Conversation(ConversationId),
    /// The whole database.
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
