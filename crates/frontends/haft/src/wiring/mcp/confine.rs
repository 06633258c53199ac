//! The sandbox of servers that are to run in one. It is set up when the first of them starts, and is their own: they share no
//! `/tmp` with the model's commands, and have it in every permission mode.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use haft_agent::{Places, set_up_sandbox};
use haft_mcp::Confines;
use haft_sandbox::{ConfinementSpec, Sandbox, SandboxConfig};
use haft_types::PermissionMode;
use tokio::sync::OnceCell;

pub(super) struct OwnSandbox {
    pub(super) places: Places,
    pub(super) config: SandboxConfig,
    pub(super) project: PathBuf,
    pub(super) set_up: OnceCell<Sandbox>,
}

#[async_trait]
impl Confines for OwnSandbox {
    async fn confined(&self) -> Result<Arc<ConfinementSpec>, String> {
        let projects = || vec![self.project.clone()];
        // Only `yolo` makes a difference, and what the user says of a server counts more.
        let set_up = || set_up_sandbox(&self.places, &self.config, PermissionMode::Ask, projects());
        let sandbox = self.set_up.get_or_try_init(set_up).await.map_err(|error| error.to_string())?;
        sandbox.confined().ok_or_else(|| sandbox.status().reasons.join("; "))
    }
}
