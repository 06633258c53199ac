//! `haft sandbox`.

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct SandboxArgs {
    #[command(subcommand)]
    pub(crate) command: SandboxCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SandboxCommand {
    /// Show what holds commands in here, and why it is no more.
    Status(SandboxStatusArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SandboxStatusArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}
