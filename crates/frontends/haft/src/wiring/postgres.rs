//! Conversations on a PostgreSQL server, and tasks of its queue.

mod shared_name;

use std::sync::Arc;

use haft_agent::Extension;
use haft_agent::config::Section;
use haft_postgres::{PostgresStore, ProjectName, TaskLease};
use haft_store::{Store, StoreConfig, StoreError};
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
        // The clone of a task is no project that somebody would look for.
        let name = if self.lease.is_none() {
            project_name()
        } else {
            None
        };
        Some(connected.map(|server| Arc::new(server.with_name(name)) as _))
    }
}

/// The names of the project around the current folder.
fn project_name() -> Option<ProjectName> {
    let project = super::project(None).ok()?;
    Some(ProjectName {
        here: project.namespace(),
        shared: shared_name::of(&project.root),
    })
}
