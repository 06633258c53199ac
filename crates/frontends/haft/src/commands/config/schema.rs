//! `haft config schema`: prints the JSON Schema of config.toml, with the built-in values and a
//! description of each key.

use haft_agent::config::{self, ConfigSources};
use serde_json::{Value, json};

use crate::wiring;

/// The descriptions of the keys, nested like the keys.
const DESCRIPTIONS: &str = include_str!("keys.toml");

/// Builds the schema with its heading, the built-in values and the descriptions.
pub(crate) fn build_schema() -> Value {
    let sections = wiring::config_sections();
    let mut schema = config::config_schema(&sections);
    let built_in = config::load_config(&ConfigSources {
        sections,
        ..ConfigSources::default()
    })
    .map(|loaded| loaded.values);
    for (key, value) in built_in.unwrap_or_default() {
        let node = key.split('.').try_fold(&mut schema, |node, part| {
            node.get_mut("properties")?.get_mut(part)
        });
        if let (Some(Value::Object(node)), Ok(value)) = (node, serde_json::to_value(value)) {
            node.insert("default".to_owned(), value);
        }
    }
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("haft's config.toml");
    add_descriptions(
        &mut schema,
        &toml::from_str(DESCRIPTIONS).unwrap_or_default(),
    );
    schema
}

/// Adds descriptions to the schema node of a table and to the nodes below it.
fn add_descriptions(node: &mut Value, descriptions: &toml::Table) {
    for (name, described) in descriptions {
        let inner = match (name.as_str(), name.strip_suffix("[]")) {
            ("", _) => Some(&mut *node),
            ("NAME", _) => node.get_mut("additionalProperties"),
            (_, Some(list)) => node
                .get_mut("properties")
                .and_then(|keys| keys.get_mut(list)?.get_mut("items")),
            (_, None) => node
                .get_mut("properties")
                .and_then(|keys| keys.get_mut(name)),
        };
        match (inner, described) {
            (Some(Value::Object(inner)), toml::Value::String(text)) => {
                inner.insert("description".to_owned(), json!(text));
            }
            (Some(inner), toml::Value::Table(descriptions)) => {
                add_descriptions(inner, descriptions);
            }
            _ => {}
        }
    }
}

/// True if the schema allows this key.
pub(super) fn is_known_key(key: &str) -> bool {
    find_node(&config::config_schema(&wiring::config_sections()), key).is_some()
}

/// Returns the description of a configuration key.
pub(super) fn key_description(key: &str) -> Option<String> {
    let whole = build_schema();
    let node = find_node(&whole, key)?;
    // A table with arbitrary names has the description of its entries.
    let described = node
        .get("description")
        .or_else(|| node.get("additionalProperties")?.get("description"))?;
    described.as_str().map(str::to_owned)
}

/// Returns the schema node of a configuration key, or `None` if the schema does not allow the key.
fn find_node<'a>(schema: &'a Value, key: &str) -> Option<&'a Value> {
    let path = toml_edit::Key::parse(key).ok()?;
    path.iter().try_fold(schema, |node, part| {
        let named = node
            .get("properties")
            .and_then(|fields| fields.get(part.get()));
        named.or_else(|| {
            node.get("additionalProperties")
                .filter(|any| any.is_object())
        })
    })
}

/// Lists all configuration keys, except keys below names that the user chooses.
pub(crate) fn list_keys() -> Vec<String> {
    fn add_keys(node: &Value, path: &str, keys: &mut Vec<String>) {
        let Some(fields) = node.get("properties").and_then(Value::as_object) else {
            return;
        };
        for (name, field) in fields {
            let path = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            keys.push(path.clone());
            add_keys(field, &path, keys);
        }
    }
    let mut keys = Vec::new();
    add_keys(
        &config::config_schema(&wiring::config_sections()),
        "",
        &mut keys,
    );
    keys
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Returns the TOML code blocks of a page that contain configuration. Each is a pair of the
    /// text after the language name and the content.
    fn config_blocks(page: &str) -> Vec<(&str, &str)> {
        let blocks = page
            .split("```toml")
            .skip(1)
            .filter_map(|rest| rest.split("\n```").next()?.split_once('\n'));
        blocks
            .filter(|(mark, _)| {
                ![" not-config: ", " file: "]
                    .iter()
                    .any(|begin| mark.starts_with(begin))
            })
            .collect()
    }

    fn schema_errors(text: &str) -> Vec<String> {
        let value = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&build_schema()).unwrap();
        validator
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    #[test]
    fn schema_accepts_the_configuration_in_the_docs() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut pages = vec![root.join("README.md")];
        pages.extend(
            std::fs::read_dir(root.join("docs"))
                .unwrap()
                .map(|entry| entry.unwrap().path()),
        );
        let mut checked = 0;
        for page in pages
            .iter()
            .filter(|page| page.extension().is_some_and(|ending| ending == "md"))
        {
            let text = std::fs::read_to_string(page).unwrap();
            for (mark, block) in config_blocks(&text) {
                assert_eq!(
                    mark,
                    "",
                    "{}: what is no configuration says `not-config: REASON`",
                    page.display()
                );
                let read = wiring::check_config(page, block);
                assert!(
                    read.is_ok(),
                    "{}: {:#}\n{block}",
                    page.display(),
                    read.unwrap_err()
                );
                assert_eq!(
                    schema_errors(block),
                    Vec::<String>::new(),
                    "{}:\n{block}",
                    page.display()
                );
                checked += 1;
            }
        }
        assert!(checked > 20, "{checked} blocks");
    }

    #[test]
    fn schema_accepts_built_in_values_and_has_their_keys() {
        let loaded = config::load_config(&ConfigSources {
            sections: wiring::config_sections(),
            ..ConfigSources::default()
        })
        .unwrap();
        for (key, value) in &loaded.values {
            assert!(is_known_key(key), "{key}");
            let name = key.split('.').collect::<Vec<_>>();
            let table = name.iter().rev().fold(value.clone(), |inner, name| {
                toml::Value::Table([((*name).to_owned(), inner)].into_iter().collect())
            });
            assert_eq!(
                schema_errors(&toml::to_string(&table).unwrap()).len(),
                0,
                "{key} = {value}"
            );
        }
    }

    #[test]
    fn schema_rejects_wrong_keys_and_types() {
        for text in [
            "nothing = 1",
            "[retry]\natempts = 2",
            "[retry]\nattempts = \"two\"",
            "[providers.a]\napi = \"telepathy\"",
            "[tui]\nplain = 3",
            "model = 1",
        ] {
            assert_eq!(schema_errors(text).len(), 1, "{text}");
        }
        assert!(
            is_known_key("providers.any.base_url")
                && is_known_key("models.\"a/b\".context_window")
                && !is_known_key("retry.atempts")
        );
        assert!(
            list_keys().contains(&"retry.attempts".to_owned())
                && list_keys().contains(&"log_level".to_owned())
        );
    }
}
