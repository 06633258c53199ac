//! The arguments of `haft workflows`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};
use haft_types::PermissionMode;

use super::{CatalogueCommand, Common, OutputFormat, positive, seconds};

#[derive(Debug, Args)]
pub(crate) struct WorkflowsArgs {
    /// A list when absent.
    #[command(subcommand)]
    pub(crate) command: Option<WorkflowsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowsCommand {
    /// Run one, or go on with a run of it.
    ///
    /// Steps that do not need each other run at the same time. A step that fails stops those that need it, and no others.
    Run(Box<WorkflowRunArgs>),
    #[command(flatten)]
    Catalogue(CatalogueCommand),
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRunArgs {
    /// Its name.
    pub(crate) name: String,

    /// Tell it an input; may be repeated.
    #[arg(short, long = "input", value_name = "NAME=VALUE", value_parser = input)]
    pub(crate) inputs: Vec<(String, String)>,

    /// Go on with its last run in this project: only steps that are not done are run.
    #[arg(short = 'c', long = "continue", conflicts_with = "inputs")]
    pub(crate) resume: bool,

    /// The model of steps that name none, nor have an agent that does, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// What to print.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,

    /// How much may happen without asking: plan, ask, accept-edits, auto or yolo.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Stop each step after this many replies of its model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Stop when all steps together have spent this much money.
    #[arg(long, value_name = "USD", value_parser = positive)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Stop after this many seconds.
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) max_wall_time: Option<Duration>,

    /// Work in this folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Show whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

fn input(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.trim().to_owned(), value.to_owned()))
}
