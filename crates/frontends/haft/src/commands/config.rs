//! `haft config`.

use clap::{Args, Subcommand};
use haft_agent::config::LoadedConfig;
use serde_json::json;

use crate::commands::options::Common;
use crate::exit::ProcessExit;
use crate::output;

#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting.
    Show {
        /// Show where each value comes from.
        #[arg(long)]
        origin: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
}

pub(crate) fn run(command: &ConfigCommand) -> anyhow::Result<ProcessExit> {
    match command {
        ConfigCommand::Show { origin, json, common } => {
            let (_, loaded) = super::configuration(common)?;
            if *json {
                output::print_json(&as_json(&loaded)?)?;
            } else {
                output::print(&as_text(&loaded, *origin))?;
            }
        }
    }
    Ok(ProcessExit::Completed)
}

fn as_json(loaded: &LoadedConfig) -> anyhow::Result<serde_json::Value> {
    let mut values = serde_json::Map::new();
    for (key, value) in &loaded.values {
        let value = serde_json::to_value(value)?;
        values.insert(key.clone(), json!({"value": value, "origin": loaded.origin(key).to_string()}));
    }
    Ok(values.into())
}

fn as_text(loaded: &LoadedConfig, with_origin: bool) -> String {
    let lines: Vec<_> =
        loaded.values.iter().map(|(key, value)| (format!("{key} = {value}"), loaded.origin(key))).collect();
    let width = lines.iter().map(|(line, _)| haft_text::width(line)).max().unwrap_or(0).min(60);
    let mut text = String::new();
    for (line, origin) in lines {
        text.push_str(&line);
        if with_origin {
            let padding = width.saturating_sub(haft_text::width(&line));
            text.extend(std::iter::repeat_n(' ', padding));
            text.push_str("  # ");
            text.push_str(&origin.to_string());
        }
        text.push('\n');
    }
    text
}
