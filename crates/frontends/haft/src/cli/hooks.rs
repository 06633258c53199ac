//! The arguments of `haft hooks`.

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct HooksArgs {
    #[command(subcommand)]
    pub(crate) command: Option<HooksCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// List the hooks of yours and of the project, where each comes from, and whether it would run.
    List(HookListArgs),
}

#[derive(Debug, Default, Args)]
pub(crate) struct HookListArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}
