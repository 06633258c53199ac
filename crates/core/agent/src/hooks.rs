//! The hooks of the user and of a trusted project, ready to be called.

use std::sync::Arc;

use haft_engine::{Callback, CommandHook, HookHost, Notice};
use haft_project::KnowledgePaths;
use haft_project::hooks::{self, Hook, HooksConfig};

use crate::places::Places;

/// The hooks that are to be called, and what is wrong with others.
pub(crate) fn found(
    places: &Places,
    config: &HooksConfig,
    paths: &KnowledgePaths,
) -> (Vec<Hook>, Vec<Notice>) {
    let mut problems = Vec::new();
    let found = hooks::load(paths, config, &places.config_file(), &mut problems);
    let notice = |problem: haft_project::FileProblem| Notice {
        code: "hooks",
        message: problem.to_string(),
        failed: true,
    };
    (found, problems.into_iter().map(notice).collect())
}

/// Hooks as callbacks, in the same order.
pub(crate) fn callbacks(found: Vec<Hook>, host: HookHost) -> Vec<Arc<dyn Callback>> {
    let host = Arc::new(host);
    found
        .into_iter()
        .map(|hook| Arc::new(CommandHook::new(hook, Arc::clone(&host))) as _)
        .collect()
}
