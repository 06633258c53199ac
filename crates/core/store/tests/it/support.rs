//! A temporary store, and the values of the conformance checks.

use std::path::PathBuf;

pub(crate) use haft_store::conformance::{TickingClock, conversation, id, tick, user};
use haft_store::{SqliteStore, StoreConfig, StoreError};
use tempfile::TempDir;

/// A temporary folder for a database.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("data").join("conversations.db")
    }

    /// Opens the store without a cache: every read comes from the database.
    pub(crate) fn try_open(&self) -> Result<SqliteStore, StoreError> {
        self.try_open_with(&StoreConfig {
            cache_conversations: 0,
            ..StoreConfig::default()
        })
    }

    pub(crate) fn try_open_with(&self, config: &StoreConfig) -> Result<SqliteStore, StoreError> {
        let config = StoreConfig {
            lock_timeout_ms: 120_000,
            ..config.clone()
        };
        SqliteStore::open(&self.path(), &config, TickingClock::new())
    }

    pub(crate) fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }

    /// Opens a store that waits 0.2 s for a lock, for tests in which the lock stays held.
    pub(crate) fn open_impatient(&self) -> SqliteStore {
        let config = StoreConfig {
            lock_timeout_ms: 200,
            cache_conversations: 0,
            ..StoreConfig::default()
        };
        SqliteStore::open(&self.path(), &config, TickingClock::new()).unwrap()
    }
}
