//! `haft config`: what is configured, and where it comes from.

mod change;
pub(in crate::commands) mod file;
pub(crate) mod schema;

use clap::{Args, Subcommand};
use haft_agent::config::LoadedConfig;
use serde_json::json;

use crate::commands::options::JsonArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::{output, wiring};

/// How values are shown.
#[derive(Debug, Args)]
pub(crate) struct ShownArgs {
    /// Show where each value comes from.
    #[arg(long)]
    origin: bool,
    #[command(flatten)]
    output: JsonArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting.
    #[command(alias = "list")]
    Show(ShownArgs),
    /// Print the value of a key, or of everything below it.
    Get {
        /// The key, such as `retry.attempts`.
        key: String,
        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Set a value in your config.toml, which keeps its comments and layout.
    ///
    /// The value is TOML; what is not TOML is a string. Nothing is written unless the whole file is valid afterwards.
    Set {
        /// The key, such as `retry.attempts`.
        key: String,
        /// The value.
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a value, or a table, from your config.toml.
    Unset {
        /// The key, such as `retry.attempts`.
        key: String,
    },
    /// Open your config.toml in `$VISUAL` or `$EDITOR`; it is written once it is valid.
    Edit,
    /// Print the path of your config.toml.
    Path,
    /// Print the JSON Schema of config.toml, for editors and checkers.
    Schema,
}

pub(crate) fn run(command: &ConfigCommand) -> anyhow::Result<ProcessExit> {
    match command {
        ConfigCommand::Show(ShownArgs { origin, output: JsonArgs { json, common } }) => {
            let (_, loaded) = super::configuration(common)?;
            if *json {
                output::print_json(&as_json(&loaded)?)?;
            } else {
                output::print(&as_text(&loaded, *origin))?;
            }
        }
        ConfigCommand::Get { key, shown } => return get(key, shown),
        ConfigCommand::Set { key, value } => change::set(key, value)?,
        ConfigCommand::Unset { key } => change::unset(key)?,
        ConfigCommand::Edit => change::edit()?,
        ConfigCommand::Path => output::say(&wiring::places()?.config_file().display().to_string())?,
        ConfigCommand::Schema => output::print_exact(&format!("{:#}\n", schema::whole()))?,
    }
    Ok(ProcessExit::Completed)
}

/// Prints one value as it is, or all below the key with their keys.
fn get(key: &str, shown: &ShownArgs) -> anyhow::Result<ProcessExit> {
    let (with_origin, json) = (shown.origin, shown.output.json);
    let (_, mut loaded) = super::configuration(&shown.output.common)?;
    let below = format!("{key}.");
    loaded.values.retain(|one, _| one == key || one.starts_with(&below));
    match loaded.values.get(key) {
        Some(value) if json && !with_origin => output::print_json(&serde_json::to_value(value)?)?,
        Some(value) if !json && !with_origin => {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            output::say(&text)?;
        }
        _ if loaded.values.is_empty() && schema::knows(key) => {
            output::tell(&format!("haft: {}", text!("config-not-set", key)));
            return Ok(ProcessExit::Failed);
        }
        _ if loaded.values.is_empty() => {
            let known = schema::keys();
            let near = haft_model::nearest(key, known.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| text!("config-near", near));
            return Err(usage_error(text!("config-unknown-key", key, near)));
        }
        _ if json => output::print_json(&as_json(&loaded)?)?,
        _ => output::print(&as_text(&loaded, with_origin))?,
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
            text.push_str(&output::localised(origin));
        }
        text.push('\n');
    }
    text
}
