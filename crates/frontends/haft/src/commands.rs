//! What each command does, one module each.

pub(crate) mod catalogue;
pub(crate) mod changes;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod conversations;
pub(crate) mod count;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drive;
pub(crate) mod events;
pub(crate) mod hooks;
pub(crate) mod interactive;
pub(crate) mod jobs;
pub(crate) mod lib;
pub(crate) mod logs;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod notes;
pub(crate) mod permissions;
#[cfg(feature = "rag")]
pub(crate) mod rag;
pub(crate) mod reference;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod sandbox;
pub(crate) mod slash;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod useful;
#[cfg(feature = "workflows")]
pub(crate) mod workflows;

use haft_agent::Places;
use haft_agent::config::{LoadedConfig, Sources, load};
use haft_project::KnowledgeKind;
use interactive::InterfaceStyle;

use crate::cli::{Cli, CliCommand, Common};
use crate::exit::ProcessExit;
use crate::wiring;
use crate::wiring::log;

/// Does what the command line says.
pub(crate) fn dispatch(cli: Cli) -> anyhow::Result<ProcessExit> {
    match cli.command {
        Some(CliCommand::Run(args)) => run::run(&args),
        Some(CliCommand::Review(args)) => review::run(*args),
        #[cfg(feature = "workflows")]
        Some(CliCommand::Workflows(args)) => workflows::run(args.command),
        Some(CliCommand::Jobs(args)) => jobs::run(args.command),
        Some(CliCommand::Demo(args)) => demo::run(&args),
        Some(CliCommand::Conversations(args)) => conversations::run(args.command),
        Some(CliCommand::Context(args)) => context::run(args.command),
        Some(CliCommand::Rules(args)) => catalogue::run(KnowledgeKind::Rules, args.command),
        Some(CliCommand::Skills(args)) => catalogue::run(KnowledgeKind::Skills, args.command),
        Some(CliCommand::Commands(args)) => catalogue::run(KnowledgeKind::Commands, args.command),
        Some(CliCommand::Agents(args)) => catalogue::run(KnowledgeKind::Agents, args.command),
        Some(CliCommand::Lib(args)) => lib::run(args.command),
        #[cfg(feature = "rag")]
        Some(CliCommand::Rag(args)) => rag::run(args.command),
        Some(CliCommand::Useful(args)) => useful::run(args.command),
        Some(CliCommand::Notes(args)) => notes::run(args.command),
        Some(CliCommand::Tools(args)) => tools::run(args.command),
        #[cfg(feature = "mcp")]
        Some(CliCommand::Mcp(args)) => mcp::run(args.command),
        Some(CliCommand::Changes(args)) => changes::changes(&args),
        Some(CliCommand::Undo(args)) => changes::undo(&args),
        Some(CliCommand::Redo(args)) => changes::redo(&args),
        Some(CliCommand::Rewind(args)) => changes::rewind(&args),
        Some(CliCommand::Permissions(args)) => permissions::run(args.command),
        Some(CliCommand::Sandbox(args)) => sandbox::run(&args.command),
        Some(CliCommand::Hooks(args)) => hooks::run(args.command),
        Some(CliCommand::Models(args)) => models::run(args.command),
        Some(CliCommand::Count(args)) => count::run(&args),
        Some(CliCommand::Trust(args)) => trust::run(&args),
        Some(CliCommand::Config(args)) => config::run(&args.command),
        Some(CliCommand::Doctor(args)) => doctor::run(&args),
        Some(CliCommand::Logs(args)) => logs::run(&args),
        Some(CliCommand::Events(args)) => events::run(&args),
        Some(CliCommand::Completions { shell }) => completions::run(shell),
        None if cli.print => run::run(&cli.run),
        None => {
            interactive::run(&cli.run, if cli.plain { InterfaceStyle::Plain } else { InterfaceStyle::AsConfigured })
        }
    }
}

/// Loads the configuration of this user with the flags of this command.
fn configuration(common: &Common) -> anyhow::Result<(Places, LoadedConfig)> {
    let places = wiring::places()?;
    let loaded = load(&Sources {
        user_file: places.config_file(),
        // Names and values that are not UTF-8 cannot be ours.
        environment: places.environment.text_variables(),
        set: common.set.clone(),
        sections: wiring::sections(),
    })?;
    log::start(places.log(), wiring::log_level(&loaded.config)?);
    Ok((places, loaded))
}
