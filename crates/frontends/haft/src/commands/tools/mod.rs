//! `haft tools`: what the model can call and run, what it is told of it, and how it was used.

mod list;
mod page;
mod show;
mod stats;

use std::sync::Arc;

use haft_project::Kind;
use haft_tool::Registry;
use haft_tools::{LimitsConfig, Running};

use super::catalogue;
use crate::cli::{CatalogueCommand, ToolListArgs, ToolsCommand};
use crate::exit::Exit;
use crate::wiring;

pub(super) fn run(command: Option<ToolsCommand>) -> anyhow::Result<Exit> {
    match command.unwrap_or_else(|| ToolsCommand::List(ToolListArgs::default())) {
        ToolsCommand::List(args) => wiring::runtime()?.block_on(list::run(&args))?,
        ToolsCommand::Show { name, json, common } => wiring::runtime()?.block_on(show::run(&name, json, &common))?,
        ToolsCommand::Add { name, file, user, common } => {
            return catalogue::run(Kind::Tools, Some(CatalogueCommand::Add { name, file, user, common }));
        }
        ToolsCommand::Remove { name, common } => {
            return catalogue::run(Kind::Tools, Some(CatalogueCommand::Remove { name, common }));
        }
        ToolsCommand::Stats { of, json, common } => wiring::runtime()?.block_on(stats::run(&of, json, &common))?,
    }
    Ok(Exit::Completed)
}

/// Every tool there is.
pub(in crate::commands) fn registry() -> Registry {
    let supervisor = Arc::new(wiring::environment().supervisor());
    let readers = wiring::readers(&supervisor);
    haft_engine::all_tools(&Arc::new(Running::new(supervisor, LimitsConfig::default()).with_readers(readers)))
}
