//! Where external tools are asked how they are used: a sandbox of their own, whatever the permission mode of the run.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use haft_engine::{Asking, HelpCell};
use haft_project::{Kind, TrustList};
use haft_sandbox::{Confined, Sandbox, SandboxConfig, Supervisor};
use tokio::sync::OnceCell;

use crate::config::Config;
use crate::places::Places;
use crate::project::Project;
use crate::{sandbox, spill, wiring};

/// What tools said is forgotten after so many days.
const OLD: u32 = 90;

/// Forgets what tools said long ago.
pub(crate) fn sweep(places: &Places) {
    spill::sweep(&places.tool_help(), SystemTime::now(), OLD);
}

/// How tools are asked; none when the configuration says that they are not.
pub(crate) fn asking(places: &Places, config: &Config, project: &Project) -> anyhow::Result<Option<Asking>> {
    if config.tools.help_timeout == 0 {
        return Ok(None);
    }
    let cell = Cell {
        places: places.clone(),
        config: config.sandbox.clone(),
        project: project.clone(),
        sandbox: OnceCell::new(),
    };
    Ok(Some(Asking {
        supervisor: Arc::new(Supervisor::new(std::env::current_exe()?)),
        cell: Arc::new(cell),
        environment: Arc::new(haft_sandbox::child_environment(std::env::vars_os())),
        timeout: Duration::from_secs(config.tools.help_timeout.into()),
        wait: Duration::from_secs(config.tools.help_wait.into()),
    }))
}

/// The sandbox, once it was needed.
struct Cell {
    places: Places,
    config: SandboxConfig,
    project: Project,
    sandbox: OnceCell<Option<Sandbox>>,
}

#[async_trait]
impl HelpCell for Cell {
    async fn confined(&self) -> Option<Arc<Confined>> {
        // Where there is no sandbox to be had, what the files say has to do.
        let set_up = async || {
            let (ground, _) = wiring::ground(&self.places, &self.project).ok()?;
            let folders = ground.folders(Kind::Tools).into_iter().map(|folder| folder.path);
            let seen = std::iter::once(ground.root.clone()).chain(folders);
            sandbox::for_help(&self.places, &self.config, seen).await.ok()
        };
        self.sandbox.get_or_init(set_up).await.as_ref()?.confined()
    }

    fn is_trusted(&self) -> bool {
        let standing = TrustList::at(self.places.trust_file()).standing(&self.project.root);
        standing.is_ok_and(|standing| standing.is_trusted())
    }
}
