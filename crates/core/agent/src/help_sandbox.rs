//! The sandbox in which external tools run to print their help, independent of the run's permission
//! mode.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_engine::{HelpSandbox, HelpSettings};
use haft_project::{KnowledgeKind, TrustList};
use haft_sandbox::{ConfinementSpec, Sandbox, SandboxConfig};
use haft_types::Clock as _;
use tokio::sync::OnceCell;

use crate::clock::WallClock;
use crate::config::Config;
use crate::knowledge::find_knowledge_and_trust;
use crate::places::Places;
use crate::project::Project;
use crate::{cleanup, sandbox};

/// The age in days after which cached help output is removed.
const MAX_HELP_AGE_DAYS: u32 = 90;

/// Removes old cached help output.
pub(crate) fn remove_old_help(places: &Places) {
    cleanup::remove_old_entries(
        &places.tool_help_folder(),
        WallClock.now().into(),
        MAX_HELP_AGE_DAYS,
    );
}

/// Returns the settings for running external tools to get their help; `None` if the configuration
/// disables this.
pub fn build_help_settings(
    places: &Places,
    config: &Config,
    project: &Project,
) -> Option<HelpSettings> {
    if config.tools.help_timeout == 0 {
        return None;
    }
    let cell = LazySandbox {
        places: places.clone(),
        config: config.sandbox.clone(),
        project: project.clone(),
        sandbox: OnceCell::new(),
    };
    Some(HelpSettings {
        supervisor: Arc::new(places.environment.supervisor()),
        sandbox: Arc::new(cell),
        environment: Arc::new(places.environment.child_environment()),
        timeout: Duration::from_secs(config.tools.help_timeout.into()),
        wait: Duration::from_secs(config.tools.help_wait.into()),
    })
}

/// The sandbox in which external tools run to print their help. Created on first use.
struct LazySandbox {
    places: Places,
    config: SandboxConfig,
    project: Project,
    sandbox: OnceCell<Option<Sandbox>>,
}

#[async_trait]
impl HelpSandbox for LazySandbox {
    async fn confinement(&self) -> Option<Arc<ConfinementSpec>> {
        // Without a sandbox, tools are not run and only the comments in their files are used.
        let set_up = async || {
            let (paths, _) = find_knowledge_and_trust(&self.places, &self.project).ok()?;
            let folders = paths
                .folders_of_kind(KnowledgeKind::Tools)
                .into_iter()
                .map(|folder| folder.path);
            let seen = std::iter::once(paths.root.clone()).chain(folders);
            sandbox::set_up_help_sandbox(&self.places, &self.config, seen)
                .await
                .ok()
        };
        self.sandbox
            .get_or_init(set_up)
            .await
            .as_ref()?
            .confinement()
    }

    fn is_trusted(&self) -> bool {
        let trust_state =
            TrustList::at_path(self.places.trust_file()).trust_state(&self.project.root);
        trust_state.is_ok_and(|trust_state| trust_state.is_trusted())
    }
}
