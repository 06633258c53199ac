//! The `[store]` section of the configuration.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The `[store]` section of the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct StoreConfig {
    /// How long a write waits while another process holds the database, in milliseconds.
    pub lock_timeout_ms: u32,
    /// How much room the file versions behind undo may take, in megabytes; the oldest go first.
    pub versions_mb: u32,
}

impl StoreConfig {
    /// [`Self::lock_timeout_ms`] as a duration.
    pub fn lock_timeout(&self) -> Duration {
        Duration::from_millis(self.lock_timeout_ms.into())
    }
}

impl Default for StoreConfig {
    fn default() -> Self {
        Self { lock_timeout_ms: 10_000, versions_mb: 1024 }
    }
}
