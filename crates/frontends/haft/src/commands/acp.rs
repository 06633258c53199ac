//! `haft acp`: an agent for editors on standard input and output.

mod host;

use std::sync::Arc;

use clap::Args;
use haft_types::PermissionMode;

pub(crate) use host::DrivenHost;

use crate::commands::interactive;
use crate::commands::options::Common;
use crate::exit::ProcessExit;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// The model, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The permission mode sessions begin with: plan, ask, accept-edits or auto.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Choose a provider and a model at the terminal, and end.
    #[arg(long)]
    pub(crate) setup: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(args: AcpArgs) -> anyhow::Result<ProcessExit> {
    if args.setup {
        return interactive::set_up(&args.common);
    }
    let host = DrivenHost::new(args.common, args.model, args.permission_mode)?;
    wiring::runtime()?.block_on(haft_acp::serve(Arc::new(host), tokio::io::stdin(), tokio::io::stdout()))?;
    Ok(ProcessExit::Completed)
}
