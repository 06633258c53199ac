//! `docs/settings.md`: every key of config.toml, generated from the schema that `haft config
//! schema` prints.

use std::fmt::Write;

use serde_json::Value;

use crate::commands::config::schema;

const HEAD: &str = "# Settings\n\nThis page lists every key of `config.toml` with its type, its built-in value and its meaning; \
                    `haft config schema` prints this data for editors. [configuration.md](configuration.md) describes where the file is \
                    and how to change values. A test generates this page: run `UPDATE_DOCS=1 cargo test --workspace --lib reference` \
                    after a change.\n\n\
                    `NAME` is a name you choose; a key with `[]` belongs to each entry of a list. An empty third column means that nothing \
                    is set.\n";

/// Renders `docs/settings.md`.
pub(super) fn render_settings_page() -> String {
    let whole = schema::build_schema();
    let keys = whole["properties"].as_object().unwrap();
    let mut page = format!("{HEAD}\n## Top level\n\n");
    let (tables, plain): (Vec<_>, Vec<_>) =
        keys.iter().partition(|(_, node)| node["type"] == "object");
    render_table(&mut page, plain.into_iter());
    for (name, node) in tables {
        let named = &node["additionalProperties"];
        let (title, node) = if named["properties"].is_object() {
            (format!("[{name}.NAME]"), named)
        } else {
            (format!("[{name}]"), node)
        };
        let about = node["description"]
            .as_str()
            .unwrap_or_else(|| panic!("`{name}` has no description"));
        write!(page, "\n## `{title}`\n\n{about}\n").unwrap();
        if let Some(keys) = node["properties"].as_object() {
            page.push('\n');
            render_table(&mut page, keys.iter());
        }
    }
    page
}

fn render_table<'a>(page: &mut String, keys: impl Iterator<Item = (&'a String, &'a Value)>) {
    page.push_str("| key | type | built-in value | meaning |\n| --- | --- | --- | --- |\n");
    keys.for_each(|(name, node)| render_rows(page, name, node));
}

/// Renders the rows of a key, or of the keys below it.
fn render_rows(page: &mut String, path: &str, node: &Value) {
    if let Some(inner) = node["properties"].as_object() {
        return inner
            .iter()
            .for_each(|(name, node)| render_rows(page, &format!("{path}.{name}"), node));
    }
    let meaning = node["description"]
        .as_str()
        .unwrap_or_else(|| panic!("`{path}` has no description"));
    let built_in = node
        .get("default")
        .map(|value| format!("`{value}`"))
        .unwrap_or_default();
    writeln!(
        page,
        "| `{path}` | {} | {built_in} | {meaning} |",
        readable_type(node)
    )
    .unwrap();
    for (name, node) in node["items"]["properties"]
        .as_object()
        .into_iter()
        .flatten()
    {
        render_rows(page, &format!("{path}[].{name}"), node);
    }
}

/// Returns the type of a value as readable text, such as `list of strings`.
fn readable_type(node: &Value) -> String {
    if let Some(values) = node["enum"].as_array() {
        return values
            .iter()
            .map(|value| format!("`{}`", value.as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    let plural = |inner: &Value| match inner["type"].as_str() {
        Some("object") => "tables".to_owned(),
        Some("array") => "lists".to_owned(),
        Some(name) => format!("{name}s"),
        None => "values".to_owned(),
    };
    match node["type"].as_str() {
        Some("array") => format!("list of {}", plural(&node["items"])),
        Some("object") => format!("table of {}", plural(&node["additionalProperties"])),
        Some(name) => name.to_owned(),
        None => "several".to_owned(),
    }
}

#[test]
fn key_descriptions_all_belong_to_a_key() {
    fn count(node: &Value) -> usize {
        let below = node["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(_, inner)| count(inner))
            .sum::<usize>();
        let named = ["additionalProperties", "items"]
            .iter()
            .filter_map(|name| node.get(name))
            .map(count);
        usize::from(node["description"].is_string()) + below + named.sum::<usize>()
    }
    fn written(value: &toml::Value) -> usize {
        value
            .as_table()
            .map_or(1, |table| table.values().map(written).sum())
    }
    let all: toml::Value =
        toml::from_str(include_str!("../../../commands/config/keys.toml")).unwrap();
    assert_eq!(
        count(&schema::build_schema()),
        written(&all),
        "a sentence of keys.toml names no key"
    );
}
