//! `haft acp`: serves editors over the Agent Client Protocol, on standard input and output.

mod host;

use std::io::IsTerminal as _;
use std::sync::Arc;

use clap::Args;
use haft_types::PermissionMode;
use tokio_util::sync::CancellationToken;

pub(crate) use host::build_host;

use crate::cli::options::Common;
use crate::commands::run::cancel_on_signals;
use crate::exit::{ProcessExit, log_failure, report_failure};
use crate::haft::Haft;
use crate::interactive;
use crate::{output, wiring};

#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    /// The model, as `provider/model`.
    #[arg(short, long)]
    pub(crate) model: Option<String>,

    /// The permission mode sessions begin with, and the most permissive one that an editor can
    /// choose: plan, ask, accept-edits or auto.
    #[arg(long, value_name = "MODE")]
    pub(crate) permission_mode: Option<PermissionMode>,

    /// Choose a provider and a model at the terminal, and end.
    #[arg(long)]
    pub(crate) setup: bool,

    #[command(flatten)]
    pub(crate) common: Common,
}

pub(crate) fn run(haft: &Haft, args: AcpArgs) -> anyhow::Result<ProcessExit> {
    if args.setup {
        return interactive::run_setup(haft, &args.common);
    }
    let AcpArgs {
        model,
        permission_mode: mode,
        common,
        ..
    } = args;
    let host = match build_host(haft, common.clone(), model.clone(), mode) {
        Ok(host) => host,
        // An editor shows the answer to its request, but not always stderr.
        Err(failure) => {
            log_failure(&failure, haft.environment());
            report_failure(&failure);
            host::build_host_with_defaults(haft, common, model, mode)?
        }
    };
    warn_at_terminal("acp");
    wiring::build_runtime()?.block_on(async {
        let stop = CancellationToken::new();
        cancel_on_signals(&stop);
        let input = tokio::io::stdin();
        let output = tokio::io::stdout();
        haft_acp::serve(Arc::new(host), input, output, stop.cancelled()).await?;
        Ok(ProcessExit::Completed)
    })
}

/// Prints a note if stdin is a terminal: the command expects a program there, not a person.
pub(crate) fn warn_at_terminal(command: &str) {
    if std::io::stdin().is_terminal() {
        output::print_to_stderr(&format!(
            "haft: {}",
            text!("cli-waits-for-program", command)
        ));
    }
}
