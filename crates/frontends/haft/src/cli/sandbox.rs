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
    /// Try to leave it, in every way haft knows, and show what holds.
    ///
    /// Each attempt is made on a place of its own and harms nothing. Exit code 0 when namespaces can be had and no attempt succeeds
    /// in them, else 1; what Landlock leaves open is shown.
    Test(SandboxTestArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SandboxTestArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct SandboxStatusArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}
