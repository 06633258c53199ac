//! Conversations on a PostgreSQL server, and tasks of its queue.

use std::sync::Arc;

use haft_agent::Extension;
use haft_agent::config::Section;
use haft_postgres::{PostgresStore, TaskLease};
use haft_store::{CachedStore, Store, StoreConfig, StoreError};
use haft_types::Clock;
use haft_worker::WorkerConfig;

/// The section of the configuration that workers read.
pub(crate) const SECTION: &str = "worker";

/// Connects to what `store.url` names.
pub(super) struct PostgresExtension {
    /// The run of a task in whose name everything is written.
    pub(super) lease: Option<TaskLease>,
}

impl Extension for PostgresExtension {
    fn sections(&self) -> Vec<Section> {
        vec![Section::of::<WorkerConfig>(SECTION)]
    }

    fn connect_store(
        &self,
        url: &str,
        config: &StoreConfig,
        clock: Arc<dyn Clock>,
    ) -> Option<Result<Arc<dyn Store>, StoreError>> {
        let connected = PostgresStore::connect_for(url, config, clock, self.lease);
        Some(connected.map(|server| Arc::new(CachedStore::new(server, config)) as _))
    }
}
