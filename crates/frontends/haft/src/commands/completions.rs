//! `haft completions`.

use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;

pub(super) fn run(shell: Shell) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::definition(), "haft", &mut script);
    crate::output::print(&String::from_utf8(script)?)?;
    Ok(Exit::Completed)
}
