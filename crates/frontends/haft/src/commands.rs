//! What each command does, one module each.

#[cfg(feature = "acp")]
pub(crate) mod acp;
pub(crate) mod catalogue;
pub(crate) mod changes;
pub(crate) mod chat;
pub(crate) mod claude;
pub(crate) mod commit;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod conversations;
pub(crate) mod count;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod drive;
pub(crate) mod events;
pub(crate) mod foreign_flags;
pub(crate) mod hooks;
pub(crate) mod init;
pub(crate) mod inline;
pub(crate) mod interactive;
pub(crate) mod jobs;
pub(crate) mod lib;
pub(crate) mod logs;
pub(crate) mod lone_word;
#[cfg(feature = "man")]
pub(crate) mod man;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod notes;
pub(crate) mod options;
pub(crate) mod permissions;
#[cfg(feature = "proxy")]
pub(crate) mod proxy;
#[cfg(feature = "postgres")]
pub(crate) mod queue;
#[cfg(feature = "rag")]
pub(crate) mod rag;
pub(crate) mod reference;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod sandbox;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod side_editor;
pub(crate) mod slash;
pub(crate) mod tools;
pub(crate) mod trust;
mod typed_ahead;
pub(crate) mod useful;
#[cfg(feature = "postgres")]
pub(crate) mod worker;
#[cfg(feature = "workflows")]
pub(crate) mod workflows;
pub(crate) mod worktrees;

use haft_agent::Places;
use haft_agent::config::{LoadedConfig, Sources, load};

use crate::commands::options::{Common, RunArgs};
use crate::wiring;
use crate::wiring::log;

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

/// The same for a run, with the permission rules it is given.
fn run_configuration(args: &RunArgs) -> anyhow::Result<(Places, LoadedConfig)> {
    let (places, mut loaded) = configuration(&args.common)?;
    permissions::add_for_run(&mut loaded.config.permissions, args)?;
    Ok((places, loaded))
}
