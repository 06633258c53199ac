//! The `[store]` section of the configuration.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The `[store]` section of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// How long a write waits while another process holds the conversation or the database, in milliseconds.
    pub lock_timeout_ms: u32,
    /// How much room the file versions behind undo may take, in megabytes; the oldest go first.
    pub versions_mb: u32,
    /// How many backups are kept; none are made when 0.
    pub backups: u32,
    /// How many minutes pass between two backups while haft runs.
    pub backup_minutes: u32,
    /// How much room all backups together may take, in megabytes.
    pub backups_mb: u32,
    /// How many conversations are kept in memory; none when 0.
    pub cache_conversations: u32,
    /// For how many seconds they are kept there.
    pub cache_seconds: u32,
}

impl StoreConfig {
    /// [`Self::lock_timeout_ms`] as a duration.
    pub fn lock_timeout(&self) -> Duration {
        Duration::from_millis(self.lock_timeout_ms.into())
    }

    /// [`Self::cache_seconds`] as a duration.
    pub fn cache_life(&self) -> Duration {
        Duration::from_secs(self.cache_seconds.into())
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self {
            lock_timeout_ms: 10_000,
            versions_mb: 1_024,
            backups: 10,
            backup_minutes: 60,
            backups_mb: 2_048,
            cache_conversations: 100,
            cache_seconds: 300,
        }
    }
}
