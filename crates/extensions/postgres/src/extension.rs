//! The PostgreSQL extension: connects to the server that `store.url` names.

use std::sync::Arc;
use std::time::Duration;

use haft_agent::{Extension, HostEnvironment, Project};
use haft_store::{Store, StoreConfig, StoreError};
use haft_types::Clock;

use crate::names::ProjectName;
use crate::queue::TaskLease;
use crate::{PostgresStore, shared_name};

/// Connects a session to the team store on the PostgreSQL server that `store.url` names.
pub struct PostgresExtension {
    lease: Option<TaskLease>,
    timeout: Option<Duration>,
}

impl PostgresExtension {
    /// Creates the extension. With a `lease`, all writes are made on behalf of the task run that
    /// has this lease.
    pub fn new(lease: Option<TaskLease>) -> Self {
        Self {
            lease,
            timeout: None,
        }
    }

    /// Limits the time of each operation of the store.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }
}

impl Extension for PostgresExtension {
    fn connect_store(
        &self,
        url: &str,
        config: &StoreConfig,
        environment: &HostEnvironment,
        clock: Arc<dyn Clock>,
    ) -> Option<Result<Arc<dyn Store>, StoreError>> {
        let connected =
            PostgresStore::connect_with_timeout(url, config, clock, self.lease, self.timeout);
        // The clone that a task works in is not a project with conversations of its own.
        let name = if self.lease.is_none() {
            find_project_name(environment)
        } else {
            None
        };
        Some(connected.map(|server| Arc::new(server.with_name(name)) as _))
    }
}

/// Returns the local and shared names of the project that contains the current folder.
fn find_project_name(environment: &HostEnvironment) -> Option<ProjectName> {
    let project = Project::find(environment, None).ok()?;
    Some(ProjectName {
        local: project.namespace(),
        shared: shared_name::shared_project_name(&project.root),
    })
}
