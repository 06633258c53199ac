//! What each command does, one module each.

pub(crate) mod catalogue;
pub(crate) mod changes;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod conversations;
pub(crate) mod count;
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
use haft_project::Kind;
use interactive::Looks;

use crate::cli::{Cli, Command, Common};
use crate::exit::Exit;
use crate::wiring;
use crate::wiring::log;

/// Does what the command line says.
pub(crate) fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    match cli.command {
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Review(args)) => review::run(*args),
        #[cfg(feature = "workflows")]
        Some(Command::Workflows(args)) => workflows::run(args.command),
        Some(Command::Jobs(args)) => jobs::run(args.command),
        Some(Command::Demo(args)) => crate::demo::run(&args),
        Some(Command::Conversations(args)) => conversations::run(args.command),
        Some(Command::Context(args)) => context::run(args.command),
        Some(Command::Rules(args)) => catalogue::run(Kind::Rules, args.command),
        Some(Command::Skills(args)) => catalogue::run(Kind::Skills, args.command),
        Some(Command::Commands(args)) => catalogue::run(Kind::Commands, args.command),
        Some(Command::Agents(args)) => catalogue::run(Kind::Agents, args.command),
        Some(Command::Lib(args)) => lib::run(args.command),
        #[cfg(feature = "rag")]
        Some(Command::Rag(args)) => rag::run(args.command),
        Some(Command::Useful(args)) => useful::run(args.command),
        Some(Command::Notes(args)) => notes::run(args.command),
        Some(Command::Tools(args)) => tools::run(args.command),
        #[cfg(feature = "mcp")]
        Some(Command::Mcp(args)) => mcp::run(args.command),
        Some(Command::Changes(args)) => changes::changes(&args),
        Some(Command::Undo(args)) => changes::undo(&args),
        Some(Command::Redo(args)) => changes::redo(&args),
        Some(Command::Rewind(args)) => changes::rewind(&args),
        Some(Command::Permissions(args)) => permissions::run(args.command),
        Some(Command::Sandbox(args)) => sandbox::run(&args.command),
        Some(Command::Hooks(args)) => hooks::run(args.command),
        Some(Command::Models(args)) => models::run(args.command),
        Some(Command::Count(args)) => count::run(&args),
        Some(Command::Trust(args)) => trust::run(&args),
        Some(Command::Config(args)) => config::run(&args.command),
        Some(Command::Doctor(args)) => doctor::run(&args),
        Some(Command::Logs(args)) => logs::run(&args),
        Some(Command::Events(args)) => events::run(&args),
        Some(Command::Completions { shell }) => completions::run(shell),
        None if cli.print => run::run(&cli.run),
        None => interactive::run(&cli.run, if cli.plain { Looks::Plain } else { Looks::AsConfigured }),
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
