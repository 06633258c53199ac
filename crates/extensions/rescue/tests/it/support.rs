//! A temporary store, and the values of the conformance checks.

use std::path::PathBuf;

pub(crate) use haft_store::conformance::{TickingClock, conversation, id, user};
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

    pub(crate) fn try_open(&self) -> Result<SqliteStore, StoreError> {
        SqliteStore::open(&self.path(), &StoreConfig::default(), TickingClock::new())
    }

    pub(crate) fn open(&self) -> SqliteStore {
        self.try_open().unwrap()
    }
}
