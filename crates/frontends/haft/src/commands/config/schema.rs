//! `haft config schema`: what may stand in config.toml, as JSON Schema with the built-in values.

use haft_agent::config::{self, Sources};
use serde_json::{Value, json};

use crate::wiring;

/// The schema with its heading and the built-in values.
pub(crate) fn whole() -> Value {
    let sections = wiring::sections();
    let mut schema = config::schema(&sections);
    let built_in = config::load(&Sources { sections, ..Sources::default() }).map(|loaded| loaded.values);
    for (key, value) in built_in.unwrap_or_default() {
        let node = key.split('.').try_fold(&mut schema, |node, part| node.get_mut("properties")?.get_mut(part));
        if let (Some(Value::Object(node)), Ok(value)) = (node, serde_json::to_value(value)) {
            node.insert("default".to_owned(), value);
        }
    }
    schema["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    schema["title"] = json!("haft's config.toml");
    schema
}

/// Whether this can be a key.
pub(super) fn knows(key: &str) -> bool {
    let schema = config::schema(&wiring::sections());
    let Ok(path) = toml_edit::Key::parse(key) else { return false };
    let found = path.iter().try_fold(&schema, |node, part| {
        let named = node.get("properties").and_then(|fields| fields.get(part.get()));
        named.or_else(|| node.get("additionalProperties").filter(|any| any.is_object()))
    });
    found.is_some()
}

/// The keys there are, as far as they have names.
pub(crate) fn keys() -> Vec<String> {
    fn add(node: &Value, path: &str, keys: &mut Vec<String>) {
        let Some(fields) = node.get("properties").and_then(Value::as_object) else { return };
        for (name, field) in fields {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            keys.push(path.clone());
            add(field, &path, keys);
        }
    }
    let mut keys = Vec::new();
    add(&config::schema(&wiring::sections()), "", &mut keys);
    keys
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The blocks of TOML in a page, as text.
    fn blocks(page: &str) -> Vec<&str> {
        page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
    }

    fn problems(text: &str) -> Vec<String> {
        let value = serde_json::to_value(toml::from_str::<toml::Table>(text).unwrap()).unwrap();
        let validator = jsonschema::validator_for(&whole()).unwrap();
        validator.iter_errors(&value).map(|error| format!("{}: {error}", error.instance_path())).collect()
    }

    #[test]
    fn what_the_documentation_shows_is_valid() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut pages = vec![root.join("README.md")];
        pages.extend(std::fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
        let mut checked = 0;
        for page in pages.iter().filter(|page| page.extension().is_some_and(|ending| ending == "md")) {
            let text = std::fs::read_to_string(page).unwrap();
            // Not every block is part of a config.toml: some show other files.
            for block in blocks(&text).into_iter().filter(|block| wiring::check_config(page, block).is_ok()) {
                assert_eq!(problems(block), Vec::<String>::new(), "{}:\n{block}", page.display());
                checked += 1;
            }
        }
        assert!(checked > 10, "{checked} blocks");
        let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
        assert!(wiring::check_config(Path::new("README.md"), blocks(&readme)[0]).is_ok());
    }

    #[test]
    fn the_built_in_values_are_valid_and_all_have_a_key() {
        let loaded = config::load(&Sources { sections: wiring::sections(), ..Sources::default() }).unwrap();
        for (key, value) in &loaded.values {
            assert!(knows(key), "{key}");
            let name = key.split('.').collect::<Vec<_>>();
            let table = name.iter().rev().fold(value.clone(), |inner, name| {
                toml::Value::Table([((*name).to_owned(), inner)].into_iter().collect())
            });
            assert_eq!(problems(&toml::to_string(&table).unwrap()).len(), 0, "{key} = {value}");
        }
    }

    #[test]
    fn what_is_wrong_is_found() {
        for text in [
            "nothing = 1",
            "[retry]\natempts = 2",
            "[retry]\nattempts = \"two\"",
            "[providers.a]\napi = \"telepathy\"",
            "[tui]\nplain = 3",
            "model = 1",
        ] {
            assert_eq!(problems(text).len(), 1, "{text}");
        }
        assert!(knows("providers.any.base_url") && knows("models.\"a/b\".context_window") && !knows("retry.atempts"));
        assert!(keys().contains(&"retry.attempts".to_owned()) && keys().contains(&"log_level".to_owned()));
    }
}
