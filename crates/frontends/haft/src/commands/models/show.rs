//! `haft models show`: prints every setting of a model with its origin.

use std::fmt::Write as _;

use haft_agent::KeyState;
use haft_agent::config::{self, LoadedConfig, ValueOrigin};
use haft_model::{BuiltIn, Declared};
use serde_json::{Map, Value, json};

use crate::commands::models::ShowModelArgs;
use crate::exit::{ProcessExit, usage_error};
use crate::haft::Haft;
use crate::output;

/// One setting of a model or of its provider.
pub(crate) struct ModelSetting {
    /// The key as in the configuration: `models."provider/model".context_window`.
    pub(crate) key: String,
    pub(crate) value: toml::Value,
    pub(crate) origin: String,
}

pub(super) fn run(haft: &Haft, args: &ShowModelArgs) -> anyhow::Result<ProcessExit> {
    let (settings, loaded) = haft.load_with_origins(&args.output.common)?;
    let catalogue = super::build_catalogue(&settings.config)?;
    let declared = catalogue
        .resolve(&args.name)
        .map_err(|error| usage_error(error.to_string()))?;
    let lines = list_model_settings(&declared, &loaded)?;
    let key = settings.key_state(&declared.provider);
    if args.output.json {
        output::print_json(&settings_to_json(&declared, key, &lines)?)?;
    } else {
        output::print_text(&settings_to_text(&declared, key, &lines))?;
    }
    Ok(ProcessExit::Completed)
}

/// Returns the settings of a model and its provider under their configuration keys.
pub(crate) fn list_model_settings(
    declared: &Declared,
    loaded: &LoadedConfig,
) -> anyhow::Result<Vec<ModelSetting>> {
    let spec = &declared.spec;
    let name = spec.full_name();
    let mut model = toml::Table::try_from(spec)?;
    for identity_key in ["provider", "name", "api"] {
        model.remove(identity_key);
    }
    if let Some((currency, price)) = declared
        .listed
        .as_ref()
        .filter(|(currency, _)| currency != "USD")
    {
        model.insert("currency".to_owned(), currency.clone().into());
        model.insert("price".to_owned(), toml::Value::try_from(price)?);
    }
    let provider = toml::Table::try_from(&declared.provider)?;
    let single_entry = |name: &str, table: toml::Table| {
        toml::Value::Table([(name.to_owned(), table.into())].into_iter().collect())
    };
    let whole: toml::Table = [
        ("models".to_owned(), single_entry(&name, model)),
        (
            "providers".to_owned(),
            single_entry(&spec.provider, provider),
        ),
    ]
    .into_iter()
    .collect();
    let built_in = BuiltIn::get();
    let mut built_in_tables = toml::Table::new();
    built_in_tables.insert(
        "models".into(),
        single_entry(&name, built_in.model_keys(&name).unwrap_or_default()),
    );
    built_in_tables.insert(
        "providers".into(),
        single_entry(
            &spec.provider,
            built_in
                .provider_keys(&spec.provider)
                .cloned()
                .unwrap_or_default(),
        ),
    );
    let mut known_keys = std::collections::BTreeSet::new();
    config::visit_values(&built_in_tables, &mut Vec::new(), &mut |key, _| {
        known_keys.insert(key);
    });
    let mut lines = Vec::new();
    config::visit_values(&whole, &mut Vec::new(), &mut |key, value| {
        let origin = match loaded.value_origin(&key) {
            ValueOrigin::BuiltIn if known_keys.contains(&key) => "built-in".to_owned(),
            ValueOrigin::BuiltIn => "default".to_owned(),
            told @ (ValueOrigin::File(_) | ValueOrigin::Variable(_) | ValueOrigin::Flag) => {
                told.to_string()
            }
        };
        lines.push(ModelSetting {
            key,
            value: value.clone(),
            origin,
        });
    });
    Ok(lines)
}

fn settings_to_json(
    declared: &Declared,
    key: KeyState,
    lines: &[ModelSetting],
) -> anyhow::Result<Value> {
    let mut values = Map::new();
    for line in lines {
        values.insert(
            line.key.clone(),
            json!({"value": serde_json::to_value(&line.value)?, "origin": line.origin}),
        );
    }
    let name = declared.spec.full_name();
    let about = |name: &str| {
        let about = BuiltIn::get().provenance(name)?;
        Some(json!({"source": about.source, "as_of": about.as_of, "note": about.note}))
    };
    Ok(json!({
        "name": name,
        "key": key.name(),
        "profile_reason": super::profile_reason_name(&declared.spec),
        "values": values,
        "built_in": {"model": about(&name), "provider": about(&declared.spec.provider)},
    }))
}

fn settings_to_text(declared: &Declared, key: KeyState, lines: &[ModelSetting]) -> String {
    let spec = &declared.spec;
    let mut text = text!(
        "models-show-heading",
        model = spec.full_name(),
        key = output::localize_text(key.name())
    );
    text.extend(["\n", &super::profile_text(spec), "\n"]);
    let shown: Vec<_> = lines
        .iter()
        .map(|line| (format!("{} = {}", line.key, line.value), &line.origin))
        .collect();
    let width = shown
        .iter()
        .map(|(line, _)| haft_text::display_width(line))
        .max()
        .unwrap_or(0)
        .min(72);
    for (line, origin) in shown {
        let padding = width.saturating_sub(haft_text::display_width(&line));
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{line}{:padding$}  # {}",
            "",
            output::localize_text(origin)
        );
    }
    for name in [spec.full_name(), spec.provider.clone()] {
        if let Some(about) = BuiltIn::get().provenance(&name) {
            let note = about
                .note
                .as_ref()
                .map_or_else(String::new, |note| format!("; {note}"));
            let _ = writeln!(
                text,
                "{}",
                text!(
                    "models-price-source",
                    name,
                    source = about.source,
                    as_of = about.as_of,
                    note
                )
            );
        }
    }
    text
}
