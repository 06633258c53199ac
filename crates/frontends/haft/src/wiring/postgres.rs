//! Conversations on a PostgreSQL server.

use std::sync::Arc;

use haft_agent::Extension;
use haft_postgres::PostgresStore;
use haft_store::{CachedStore, Store, StoreConfig, StoreError};
use haft_types::Clock;

/// Connects to what `store.url` names.
pub(super) struct PostgresExtension;

impl Extension for PostgresExtension {
    fn connect_store(
        &self,
        url: &str,
        config: &StoreConfig,
        clock: Arc<dyn Clock>,
    ) -> Option<Result<Arc<dyn Store>, StoreError>> {
        let connected = PostgresStore::connect(url, config, clock);
        Some(connected.map(|server| Arc::new(CachedStore::new(server, config)) as _))
    }
}
