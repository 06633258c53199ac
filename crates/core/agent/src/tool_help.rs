//! The sandbox in which external tools are asked for their help, independent of the run's
//! permission mode.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use haft_engine::{Asking, HelpCell};
use haft_project::{KnowledgeKind, TrustList};
use haft_sandbox::{ConfinementSpec, Sandbox, SandboxConfig};
use haft_types::Clock as _;
use tokio::sync::OnceCell;

use crate::clock::WallClock;
use crate::config::Config;
use crate::knowledge::knowledge;
use crate::places::Places;
use crate::project::Project;
use crate::{sandbox, spill};

/// Cached help output is removed after this many days.
const OLD: u32 = 90;

/// Removes old cached help output.
pub(crate) fn sweep(places: &Places) {
    spill::sweep(&places.tool_help(), WallClock.now().into(), OLD);
}

/// Returns the settings for asking external tools for their help; `None` if the configuration
/// disables it.
pub fn tool_help(places: &Places, config: &Config, project: &Project) -> Option<Asking> {
    if config.tools.help_timeout == 0 {
        return None;
    }
    let cell = SandboxCell {
        places: places.clone(),
        config: config.sandbox.clone(),
        project: project.clone(),
        sandbox: OnceCell::new(),
    };
    Some(Asking {
        supervisor: Arc::new(places.environment.supervisor()),
        cell: Arc::new(cell),
        environment: Arc::new(places.environment.child_environment()),
        timeout: Duration::from_secs(config.tools.help_timeout.into()),
        wait: Duration::from_secs(config.tools.help_wait.into()),
    })
}

/// The sandbox for asking tools, created on first use.
struct SandboxCell {
    places: Places,
    config: SandboxConfig,
    project: Project,
    sandbox: OnceCell<Option<Sandbox>>,
}

#[async_trait]
impl HelpCell for SandboxCell {
    async fn confined(&self) -> Option<Arc<ConfinementSpec>> {
        // Without a sandbox, tools are not run and only the comments in their files are used.
        let set_up = async || {
            let (paths, _) = knowledge(&self.places, &self.project).ok()?;
            let folders = paths
                .folders(KnowledgeKind::Tools)
                .into_iter()
                .map(|folder| folder.path);
            let seen = std::iter::once(paths.root.clone()).chain(folders);
            sandbox::for_help(&self.places, &self.config, seen)
                .await
                .ok()
        };
        self.sandbox.get_or_init(set_up).await.as_ref()?.confined()
    }

    fn is_trusted(&self) -> bool {
        let trust_state = TrustList::at(self.places.trust_file()).state(&self.project.root);
        trust_state.is_ok_and(|trust_state| trust_state.is_trusted())
    }
}
