//! `haft sandbox`: shows and tests the sandbox of commands.

#[cfg(target_os = "linux")]
mod escape_test;

use std::path::PathBuf;

use clap::Subcommand;
use haft_agent::set_up_sandbox;
use haft_sandbox::{ConfinementSpec, Network, Sandbox};
use haft_types::PermissionMode;
use serde_json::json;

use crate::cli::options::JsonArgs;
use crate::exit::ProcessExit;
use crate::haft::Haft;
use crate::{output, wiring};

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show sandbox status: the layer in use, and why no stronger one.
    Status(JsonArgs),
    /// Test the sandbox with every known way to escape, and show what is blocked.
    ///
    /// Each attempt uses files of its own and does no harm. Exit code 0 when namespaces are
    /// available and no attempt succeeds in them, else 1; what Landlock leaves open is shown.
    Test(JsonArgs),
}

pub(crate) fn run(haft: &Haft, command: &SandboxCommand) -> anyhow::Result<ProcessExit> {
    match command {
        SandboxCommand::Status(args) => show_status(haft, args).map(|()| ProcessExit::Completed),
        #[cfg(target_os = "linux")]
        SandboxCommand::Test(args) => escape_test::run(haft, args),
        #[cfg(not(target_os = "linux"))]
        SandboxCommand::Test(_) => anyhow::bail!(text!("sandbox-only-linux")),
    }
}

fn show_status(haft: &Haft, args: &JsonArgs) -> anyhow::Result<()> {
    let settings = haft.load(&args.common)?;
    let projects = vec![haft.project(None)?.root];
    let config = &settings.config.sandbox;
    let found = wiring::build_runtime()?.block_on(set_up_sandbox(
        &settings.places,
        config,
        PermissionMode::Auto,
        projects,
    ))?;
    let confined = found.confinement();
    let policy = confined.as_ref().map(|confined| &confined.policy);
    if args.json {
        let list = |paths: Option<Vec<PathBuf>>| json!(paths.unwrap_or_default());
        return output::print_json(&json!({
            "layer": found.status().layer,
            "reasons": found.status().reasons,
            "mode": config.mode,
            "writable": list(policy.map(|policy| [policy.projects.clone(), policy.writable.clone()].concat())),
            "hidden": list(policy.map(|policy| policy.hidden.clone())),
            "readable": list(confined.as_deref().map(list_readable_paths)),
            "network": config.network,
        }));
    }
    output::print_text(&status_to_text(&found, confined.as_deref()))
}

fn status_to_text(found: &Sandbox, confined: Option<&ConfinementSpec>) -> String {
    let mut lines = vec![output::describe_sandbox(found.status())];
    if let Some(confined @ ConfinementSpec { policy, .. }) = confined {
        let shown = |paths: &[&PathBuf]| {
            output::join_names(
                &paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect::<Vec<_>>(),
            )
        };
        let writable: Vec<_> = policy.projects.iter().chain(&policy.writable).collect();
        lines.push(text!("sandbox-writable", folders = shown(&writable)));
        let hidden: Vec<_> = policy.hidden.iter().filter(|path| path.exists()).collect();
        lines.push(text!("sandbox-hidden", paths = shown(&hidden)));
        let readable = list_readable_paths(confined);
        if !readable.is_empty() {
            lines.push(text!(
                "sandbox-readable",
                paths = shown(&readable.iter().collect::<Vec<_>>())
            ));
        }
        lines.push(match policy.network {
            Network::None => text!("sandbox-network-none").to_owned(),
            Network::Through(_) => text!("sandbox-network-hosts").to_owned(),
            Network::All => text!("sandbox-network-all").to_owned(),
        });
    }
    lines.join("\n") + "\n"
}

/// Returns the existing paths that commands can read although they lie in `/tmp` or in a hidden
/// folder.
fn list_readable_paths(confined: &ConfinementSpec) -> Vec<PathBuf> {
    let is_visible = |path: &&PathBuf| path.exists() && confined.hidden_path(path).is_none();
    confined
        .policy
        .readable
        .iter()
        .filter(is_visible)
        .cloned()
        .collect()
}
