//! The commands of the command line, one module each.

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
pub(crate) mod events;
pub(crate) mod hooks;
pub(crate) mod init;
pub(crate) mod jobs;
pub(crate) mod lib;
pub(crate) mod logs;
#[cfg(feature = "man")]
pub(crate) mod man;
#[cfg(feature = "mcp")]
pub(crate) mod mcp;
pub(crate) mod models;
pub(crate) mod notes;
pub(crate) mod permissions;
#[cfg(feature = "proxy")]
pub(crate) mod proxy;
#[cfg(feature = "postgres")]
pub(crate) mod queue;
#[cfg(feature = "rag")]
pub(crate) mod rag;
pub(crate) mod review;
pub(crate) mod run;
pub(crate) mod sandbox;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod tools;
pub(crate) mod trust;
pub(crate) mod useful;
#[cfg(feature = "postgres")]
pub(crate) mod worker;
#[cfg(feature = "workflows")]
pub(crate) mod workflows;
pub(crate) mod worktrees;

use std::sync::Once;

use haft_agent::Places;
use haft_agent::config::{Config, LoadedConfig, Sources, load};

use crate::cli::options::{Common, RunArgs};
use crate::wiring::log;
use crate::{output, wiring};

/// Loads the configuration of this user with the flags of this command, and reports variables
/// without effect.
pub(crate) fn configuration(common: &Common) -> anyhow::Result<(Places, LoadedConfig)> {
    let (places, loaded) = load_configuration(common)?;
    report_unknown_variables(&loaded.config);
    Ok((places, loaded))
}

/// Like [`configuration`], but reports nothing: for shells that ask for completions, and for jobs,
/// whose stderr is read as the reason of their failure.
pub(crate) fn load_configuration(common: &Common) -> anyhow::Result<(Places, LoadedConfig)> {
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

/// Prints one line on stderr for each variable that begins with `HAFT_` and has no effect, once per
/// process.
fn report_unknown_variables(config: &Config) {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        for variable in &config.unknown_variables {
            output::tell(&format!("haft: {}", output::localised(variable)));
        }
    });
}

/// Loads the configuration for a run, with the permission rules that its flags add.
pub(crate) fn run_configuration(args: &RunArgs) -> anyhow::Result<(Places, LoadedConfig)> {
    let (places, mut loaded) = if args.job.is_some() {
        load_configuration(&args.common)?
    } else {
        configuration(&args.common)?
    };
    permissions::add_for_run(&mut loaded.config.permissions, args)?;
    Ok((places, loaded))
}
