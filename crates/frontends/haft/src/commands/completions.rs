//! `haft completions`.

use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::ProcessExit;

pub(crate) fn run(shell: Shell) -> anyhow::Result<ProcessExit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::definition(), "haft", &mut script);
    crate::output::print_exact(&String::from_utf8(script)?)?;
    Ok(ProcessExit::Completed)
}
