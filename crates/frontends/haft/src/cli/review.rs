//! The arguments of `haft review`.

use clap::Args;

use super::{Common, OutputFormat, positive};

#[derive(Debug, Args)]
pub(crate) struct ReviewArgs {
    /// What to look at above all.
    pub(crate) instructions: Option<String>,

    #[command(flatten)]
    pub(crate) of: ReviewOf,

    /// The model, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// What to print.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output_format: OutputFormat,

    /// Stop after this many replies of the model.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_turns: Option<u32>,

    /// Stop when this much money is spent.
    #[arg(long, value_name = "USD", value_parser = positive)]
    pub(crate) max_budget_usd: Option<f64>,

    /// Show reasoning and whole tool results.
    #[arg(long)]
    pub(crate) verbose: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

/// Which change is meant: what is not committed, unless one of these is given.
#[derive(Debug, Args)]
pub(crate) struct ReviewOf {
    /// Everything since this branch left another one.
    #[arg(long, value_name = "BRANCH", conflicts_with = "commit")]
    pub(crate) base: Option<String>,

    /// One commit.
    #[arg(long, value_name = "COMMIT")]
    pub(crate) commit: Option<String>,
}
