//! `haft models`: which models there are, what is known of them, and whether they answer.

mod add;
mod list;
mod roles;
mod show;
mod test;
mod trial;

pub(super) use list::usable;

use haft_agent::config::Config;
use haft_model::Catalogue;

use crate::cli::{ListArgs, ModelsCommand};
use crate::exit::{Exit, mistake};

pub(super) use trial::Trial;

pub(super) fn run(command: Option<ModelsCommand>) -> anyhow::Result<Exit> {
    match command.unwrap_or_else(|| ModelsCommand::List(ListArgs::default())) {
        ModelsCommand::List(args) => list::run(&args),
        ModelsCommand::Show(args) => show::run(&args),
        ModelsCommand::Roles(args) => roles::run(&args),
        ModelsCommand::Add(args) => add::run(&args),
        ModelsCommand::Test(args) => test::run(&args),
    }
}

/// Everything that is declared and built in.
fn catalogue(config: &Config) -> anyhow::Result<Catalogue> {
    Catalogue::with_built_in(config.providers.clone(), config.models.clone())
        .map_err(|error| mistake(error.to_string()))
}

/// A number as people write it: no zeros at its end.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
