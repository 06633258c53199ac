//! `haft tools`: what the model can call and run, how it is described to it, and how it was used.

mod list;
mod page;
mod show;
mod stats;

use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, Subcommand};
use haft_project::KnowledgeKind;
use haft_tool::Registry;
use haft_tools::{LimitsConfig, Running};

use super::catalogue;
use crate::cli::Common;
use crate::commands::catalogue::CatalogueCommand;
use crate::commands::useful::OfConversation;
use crate::exit::Exit;
use crate::wiring;

#[derive(Debug, Args)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: Option<ToolsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools, where they come from, and how many tokens each costs in every request.
    List(ToolListArgs),
    /// Show what the model is told of a tool: description, schema, example, other names; of an external one, its help.
    Show {
        /// The tool, by its name or one of its other names.
        name: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Add a program of your own, which the model runs as a command, to this project or to your own with `--user`.
    Add {
        /// Its file name: without an ending, or with the one of its language, such as `lint.py`.
        name: String,
        /// The program to copy; standard input when absent.
        #[arg(value_name = "FILE")]
        file: Option<PathBuf>,
        /// Add it for all your projects.
        #[arg(long)]
        user: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Remove a program that lies in a folder of haft's.
    Remove {
        /// Its file name.
        name: String,
        #[command(flatten)]
        common: Common,
    },
    /// Show how often each tool was called in a conversation, how often it failed, and what its results cost in tokens.
    Stats {
        #[command(flatten)]
        of: OfConversation,
        /// As JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Debug, Default, Args)]
pub(crate) struct ToolListArgs {
    /// Show what is not used because another of the same name comes first, and the folders that are looked through.
    #[arg(short, long)]
    pub(crate) verbose: bool,
    /// As JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// The reference as the page of the documentation.
    #[arg(long, hide = true, conflicts_with = "json")]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) common: Common,
}

pub(super) fn run(command: Option<ToolsCommand>) -> anyhow::Result<Exit> {
    match command.unwrap_or_else(|| ToolsCommand::List(ToolListArgs::default())) {
        ToolsCommand::List(args) => wiring::runtime()?.block_on(list::run(&args))?,
        ToolsCommand::Show { name, json, common } => wiring::runtime()?.block_on(show::run(&name, json, &common))?,
        ToolsCommand::Add { name, file, user, common } => {
            return catalogue::run(KnowledgeKind::Tools, Some(CatalogueCommand::Add { name, file, user, common }));
        }
        ToolsCommand::Remove { name, common } => {
            return catalogue::run(KnowledgeKind::Tools, Some(CatalogueCommand::Remove { name, common }));
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
