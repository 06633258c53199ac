//! `haft config`: prints settings with their origins, and changes config.toml.

mod change;
pub(crate) mod effective;
pub(crate) mod file;
pub(crate) mod schema;

use std::collections::BTreeMap;

use clap::{Args, Subcommand};
use effective::EffectiveValue;
use haft_agent::config::ValueOrigin;
use haft_messages::Language;
use serde_json::json;

use crate::cli::options::{Common, JsonArgs};
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;
use crate::wiring;

/// The options for printing values.
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
    /// Show every setting in force, with the reason where the configuration does not set it.
    #[command(alias = "list")]
    Show(ShownArgs),
    /// Print the value in force of a key, or of everything below it.
    Get {
        /// The key, such as `retry.attempts`.
        key: String,
        #[command(flatten)]
        shown: ShownArgs,
    },
    /// Set a value in your config.toml, which keeps its comments and layout.
    ///
    /// The value is TOML; what is not TOML is a string. Nothing is written unless the whole file is
    /// valid afterwards.
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

pub(crate) fn run(haft: &Haft, command: &ConfigCommand) -> anyhow::Result<ProcessExit> {
    match command {
        ConfigCommand::Show(ShownArgs {
            origin,
            output: JsonArgs { json, common },
        }) => {
            let shown = ShownValues::load(haft, common, None)?;
            if *json {
                output::print_json(&shown.to_json()?)?;
            } else {
                output::print_text(&shown.to_text(*origin))?;
            }
        }
        ConfigCommand::Get { key, shown } => return print_value(haft, key, shown),
        ConfigCommand::Set { key, value } => change::set_value(haft, key, value)?,
        ConfigCommand::Unset { key } => change::unset_value(haft, key)?,
        ConfigCommand::Edit => change::edit_config_file(haft)?,
        ConfigCommand::Path => {
            output::print_text_line(&haft.places()?.config_file().display().to_string())?;
        }
        ConfigCommand::Schema => output::print_exact(&format!("{:#}\n", schema::build_schema()))?,
    }
    Ok(ProcessExit::Completed)
}

/// Prints the value of `key` that is in force, or all values below `key`. If the value does not
/// come from the configuration alone, the reason for the value goes to stderr, so that scripts read
/// only the value.
fn print_value(haft: &Haft, key: &str, args: &ShownArgs) -> anyhow::Result<ProcessExit> {
    let with_origin = args.origin;
    let json = args.output.json;
    let shown = ShownValues::load(haft, &args.output.common, Some(key))?;
    match shown.values.get(key) {
        Some(value) if json && !with_origin => {
            output::print_json(&serde_json::to_value(&value.in_force)?)?;
        }
        Some(value) if !json && !with_origin => {
            let text = value
                .in_force
                .as_str()
                .map_or_else(|| value.in_force.to_string(), str::to_owned);
            output::print_text_line(&text)?;
            if let Some(reason) = &value.reason {
                output::print_to_stderr(&format!("haft: {}", text!("config-reason", key, reason)));
            }
        }
        _ if shown.values.is_empty() && schema::is_known_key(key) => {
            output::print_to_stderr(&format!("haft: {}", not_set_message(key)));
            return Ok(ProcessExit::Failed);
        }
        _ if shown.values.is_empty() => {
            let known = schema::list_keys();
            let near = haft_model::nearest_name(key, known.iter().map(String::as_str));
            let near = near.map_or_else(String::new, |near| text!("config-near", near));
            return Err(usage_error(text!("config-unknown-key", key, near)));
        }
        _ if json => output::print_json(&shown.to_json()?)?,
        _ => output::print_text(&shown.to_text(with_origin))?,
    }
    Ok(ProcessExit::Completed)
}

/// Returns the message that a key is not set. If this build lacks the cargo feature that the key
/// needs, the message names the feature. In English, the message ends with the key's description,
/// which names the default.
fn not_set_message(key: &str) -> String {
    if let Some(feature) = wiring::find_missing_feature(key) {
        return text!("config-not-set-absent", key, feature);
    }
    match schema::key_description(key)
        .filter(|_| haft_messages::current_language() == Language::English)
    {
        Some(description) => text!("config-not-set-described", key, description),
        None => text!("config-not-set", key),
    }
}

/// The values to print: the whole configuration, or the values of one key and of the keys below it.
struct ShownValues {
    values: BTreeMap<String, ShownValue>,
}

/// A value to print, with its origin.
struct ShownValue {
    in_force: toml::Value,
    /// The configured value, if a different value is in force.
    configured: Option<toml::Value>,
    /// The reason for the value, if the configuration alone does not explain it.
    reason: Option<String>,
    origin: ValueOrigin,
}

impl ShownValues {
    fn load(haft: &Haft, common: &Common, wanted: Option<&str>) -> anyhow::Result<Self> {
        let (settings, loaded) = haft.load_with_origins(common)?;
        let mut effective = effective::find_effective_values(&settings, &loaded, wanted)?;
        let configured = loaded.values.iter().map(|(key, value)| {
            let shown = match effective.remove(key) {
                Some(EffectiveValue {
                    value: in_force,
                    reason,
                }) => ShownValue {
                    configured: (in_force != *value).then(|| value.clone()),
                    in_force,
                    reason: Some(reason),
                    origin: loaded.value_origin(key),
                },
                None => ShownValue {
                    in_force: value.clone(),
                    configured: None,
                    reason: None,
                    origin: loaded.value_origin(key),
                },
            };
            (key.clone(), shown)
        });
        let mut values: BTreeMap<_, _> = configured.collect();
        values.extend(
            effective
                .into_iter()
                .map(|(key, EffectiveValue { value, reason })| {
                    let origin = ValueOrigin::BuiltIn;
                    (
                        key,
                        ShownValue {
                            in_force: value,
                            configured: None,
                            reason: Some(reason),
                            origin,
                        },
                    )
                }),
        );
        values.retain(|key, _| {
            wanted.is_none_or(|wanted| {
                key.strip_prefix(wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        });
        Ok(Self { values })
    }

    fn to_json(&self) -> anyhow::Result<serde_json::Value> {
        let mut all = serde_json::Map::new();
        for (key, shown) in &self.values {
            let mut one = json!({"value": serde_json::to_value(&shown.in_force)?, "origin": shown.origin.to_string()});
            if let Some(reason) = &shown.reason {
                one["reason"] = json!(reason);
            }
            if let Some(configured) = &shown.configured {
                one["configured"] = serde_json::to_value(configured)?;
            }
            all.insert(key.clone(), one);
        }
        Ok(all.into())
    }

    fn to_text(&self, with_origin: bool) -> String {
        let lines: Vec<_> = self
            .values
            .iter()
            .map(|(key, shown)| (format!("{key} = {}", shown.in_force), shown))
            .collect();
        let width = lines
            .iter()
            .map(|(line, _)| haft_text::display_width(line))
            .max()
            .unwrap_or(0)
            .min(60);
        let mut text = String::new();
        for (line, shown) in lines {
            text.push_str(&line);
            let origin = with_origin.then(|| output::localize_text(&shown.origin));
            let configured = shown.configured.as_ref().map(ToString::to_string);
            let why: Vec<_> = origin
                .into_iter()
                .chain(configured)
                .chain(shown.reason.clone())
                .collect();
            if !why.is_empty() {
                let padding = width.saturating_sub(haft_text::display_width(&line));
                text.extend(std::iter::repeat_n(' ', padding));
                text.push_str("  # ");
                text.push_str(&why.join(text!("config-reason-between")));
            }
            text.push('\n');
        }
        text
    }
}
