//! `haft worktrees`: lists and removes the remaining copies of projects that sub-agents worked in.

use clap::{Args, Subcommand};
use haft_agent::{find_knowledge_and_trust, set_up_sandbox};
use haft_changes::{KeptCopy, list_kept_copies, remove_copy};
use haft_sandbox::GitProgram;
use haft_types::{ConversationId, PermissionMode, Timestamp};
use serde_json::json;

use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::{Haft, Settings};
use crate::interactive::format_age;
use crate::output::{self, TextTable};
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct WorktreesArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WorktreesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorktreesCommand {
    /// List the copies that are kept, last used first.
    List(JsonArgs),
    /// Remove copies; changes that were not merged are kept as a patch.
    Remove {
        /// Their ids, or the beginnings of them.
        #[arg(required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        common: Common,
    },
}

pub(crate) fn run(haft: &Haft, command: Option<WorktreesCommand>) -> anyhow::Result<ProcessExit> {
    match command.unwrap_or(WorktreesCommand::List(JsonArgs::default())) {
        WorktreesCommand::List(output) => list_worktrees(haft, &output)?,
        WorktreesCommand::Remove { ids, common } => {
            let settings = haft.load(&common)?;
            ids.iter()
                .try_for_each(|id| remove_worktree(haft, &settings, id))?;
        }
    }
    Ok(ProcessExit::Completed)
}

fn list_worktrees(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let copies = list_kept_copies(&settings.places.worktrees_folder());
    if args.json {
        let row = |copy: &KeptCopy| {
            let used = Timestamp::try_from(copy.used)
                .map(|used| used.to_string())
                .ok();
            json!({ "id": copy.name, "project": copy.repository, "path": copy.at, "used_at": used })
        };
        return output::print_json(&copies.iter().map(row).collect());
    }
    if copies.is_empty() {
        return output::print_text_line(text!("worktrees-none"));
    }
    let mut table = TextTable::new(&[
        text!("table-id"),
        text!("table-age"),
        text!("table-project"),
        text!("table-path"),
    ]);
    for copy in copies {
        let used = Timestamp::try_from(copy.used)
            .map(format_age)
            .unwrap_or_default();
        let project = copy
            .repository
            .map(|project| project.display().to_string())
            .unwrap_or_default();
        table.add_row(vec![
            copy.name,
            used,
            project,
            copy.at.display().to_string(),
        ]);
    }
    output::print_text(&table.to_string())
}

fn remove_worktree(haft: &Haft, settings: &Settings, id: &str) -> anyhow::Result<()> {
    let named: Vec<_> = list_kept_copies(&settings.places.worktrees_folder())
        .into_iter()
        .filter(|copy| copy.name.starts_with(id))
        .collect();
    let [copy] = named.as_slice() else {
        return Err(usage_error(match named.len() {
            0 => text!("worktrees-unknown", id),
            count => text!("worktrees-several", id, count),
        }));
    };
    let path = copy.at.display();
    let Some(root) = copy.repository.as_deref().filter(|root| root.is_dir()) else {
        return Err(usage_error(text!("worktrees-no-repository", path)));
    };
    let project = haft.project(Some(root))?;
    // git runs programs that a repository configures, so it must not run in an untrusted
    // repository.
    if !find_knowledge_and_trust(&settings.places, &project)?
        .1
        .is_trusted()
    {
        return Err(usage_error(text!(
            "review-untrusted",
            root = root.display()
        )));
    }
    let store = settings.open_store()?;
    let mode = PermissionMode::Plan;
    let (_held, sandbox) = wiring::build_runtime()?.block_on(async {
        // A session that works in the copy holds the lock of its conversation.
        let held = store
            .try_lock(&ConversationId::new(copy.name.clone()))
            .await?;
        anyhow::Ok((
            held,
            set_up_sandbox(&settings.places, &settings.config.sandbox, mode, Vec::new()).await?,
        ))
    })?;
    let host = haft.environment();
    let program = GitProgram::find(
        &host.supervisor(),
        &sandbox,
        &host.child_environment(),
        &[root],
    )
    .map_err(|error| usage_error(error.to_string()))?;
    let patch = remove_copy(program, &project.root, copy)
        .map_err(|why| usage_error(format!("{path}: {why}")))?;
    output::print_text_line(&match patch {
        Some(patch) => text!("worktrees-removed-patch", path, patch = patch.display()),
        None => text!("worktrees-removed", path),
    })
}
