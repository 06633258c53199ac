//! The arguments of `haft jobs`.

use clap::{Args, Subcommand};

use super::Common;

#[derive(Debug, Args)]
pub(crate) struct JobsArgs {
    #[command(subcommand)]
    pub(crate) command: JobsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List runs in the background, newest first.
    List(ListJobsArgs),
    /// Show one: how it stands, what it was told, what it answered.
    Show(ShowJobArgs),
    /// Print what it did so far.
    Logs(LogsArgs),
    /// Watch it to its end, as if it were run here; Ctrl-C only stops watching.
    ///
    /// The exit code is that of the run.
    Attach(AttachArgs),
    /// End it. Its conversation stays and can be gone on with.
    Kill(KillArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListJobsArgs {
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct ShowJobArgs {
    /// The job's id, or the beginning of it.
    pub(crate) id: String,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// The job's id, or the beginning of it.
    pub(crate) id: String,
    /// Go on printing until it ends.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// The events, one JSON object a line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Show reasoning and whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct AttachArgs {
    /// The job's id, or the beginning of it.
    pub(crate) id: String,
    /// Show reasoning and whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct KillArgs {
    /// The jobs' ids, or the beginnings of them.
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}
