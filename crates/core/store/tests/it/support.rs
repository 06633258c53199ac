//! A temporary store, a clock that ticks by itself, and short ways to make values.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use haft_store::{SqliteStore, StoreConfig, StoreError};
use haft_types::{Clock, ConversationId, Message, MessageId, Role, Timestamp};
use tempfile::TempDir;

/// Each look at it is a second later than the one before.
pub(crate) struct Ticking(AtomicI64);

impl Ticking {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicI64::new(0)))
    }
}

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        tick(self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// What the ticking clock shows at its `n`th look, from 0.
pub(crate) fn tick(n: i64) -> Timestamp {
    Timestamp::from_second(1_794_736_800 + n).unwrap()
}

/// A folder that goes away with its database.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("data").join("conversations.db")
    }

    pub(crate) fn try_open(&self) -> Result<SqliteStore, StoreError> {
        // Long enough for a busy machine, short enough for the tests that wait for it in vain.
        SqliteStore::open(&self.path(), &StoreConfig { lock_timeout_ms: 200, ..StoreConfig::default() }, Ticking::new())
    }

    pub(crate) fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }
}

pub(crate) fn conversation(id: &str) -> ConversationId {
    ConversationId::new(id)
}

/// The message id whose first eight digits are `n` in hex.
pub(crate) fn id(n: u32) -> MessageId {
    format!("{n:08x}-0000-4000-8000-000000000000").parse().unwrap()
}

pub(crate) fn user(n: u32, text: &str) -> Message {
    Message::text(id(n), Role::User, text, tick(i64::from(n)))
}
