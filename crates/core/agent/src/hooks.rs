//! Loads the hooks of the user and of a trusted project, and creates their callbacks.

use std::sync::Arc;

use haft_engine::{Callback, CommandHook, HookHost, Notice};
use haft_project::KnowledgePaths;
use haft_project::hooks::{self, Hook, HooksConfig};

use crate::places::Places;

/// Loads the hooks, with a notice for each problem.
pub(crate) fn load_hooks_with_notices(
    places: &Places,
    config: &HooksConfig,
    paths: &KnowledgePaths,
) -> (Vec<Hook>, Vec<Notice>) {
    let mut problems = Vec::new();
    let found = hooks::load_hooks(paths, config, &places.config_file(), &mut problems);
    let notice = |problem: haft_project::FileProblem| Notice {
        code: "hooks",
        message: problem.to_string(),
        failed: true,
    };
    (found, problems.into_iter().map(notice).collect())
}

/// Creates the callbacks of the hooks, in order.
pub(crate) fn create_hook_callbacks(found: Vec<Hook>, host: HookHost) -> Vec<Arc<dyn Callback>> {
    let host = Arc::new(host);
    found
        .into_iter()
        .map(|hook| Arc::new(CommandHook::new(hook, Arc::clone(&host))) as _)
        .collect()
}
