//! Renders the reference of events as a page of the documentation.

use std::fmt::Write as _;

use haft_claude::{ControlLine, InputLine};
use haft_types::EventBody;
use serde_json::Value;

use super::{LineDirection, build_schema};

pub(super) fn render_page() -> String {
    let mut page = include_str!("page.md").to_owned();
    for (mark, schema) in [
        (
            "<!-- events -->\n",
            build_schema::<EventBody>(LineDirection::Out),
        ),
        (
            "<!-- input -->\n",
            build_schema::<InputLine>(LineDirection::In),
        ),
        (
            "<!-- control -->\n",
            build_schema::<ControlLine>(LineDirection::Out),
        ),
    ] {
        page = page.replace(mark, &describe_kinds(&schema));
    }
    page
}

/// Describes every variant of a tagged enum under a heading of its own.
fn describe_kinds(schema: &Value) -> String {
    let mut text = String::new();
    for kind in schema["oneOf"].as_array().into_iter().flatten() {
        let name = kind["properties"]["type"]["const"]
            .as_str()
            .unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(text, "### `{name}`\n\n{}\n\n", one_line_description(kind));
        write_fields(&mut text, kind);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn write_fields(text: &mut String, kind: &Value) {
    let required: Vec<_> = kind["required"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let properties = kind["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(name, _)| *name != "type");
    let rows: Vec<_> = properties
        .map(|(name, field)| {
            let absent = if required.contains(&name.as_str()) {
                ""
            } else {
                ", may be absent"
            };
            format!(
                "| `{name}` | {}{absent} | {} |",
                describe_type(field),
                one_line_description(field)
            )
        })
        .collect();
    if !rows.is_empty() {
        let _ = write!(
            text,
            "| field | type | |\n| --- | --- | --- |\n{}\n\n",
            rows.join("\n")
        );
    }
}

/// Returns the type of a field in short form.
fn describe_type(field: &Value) -> String {
    if let Some(value) = field["const"].as_str() {
        return format!("`{value}`");
    }
    if let Some(choices) = field["enum"].as_array() {
        return choices
            .iter()
            .filter_map(Value::as_str)
            .map(|one| format!("`{one}`"))
            .collect::<Vec<_>>()
            .join(" ");
    }
    if let Some(choices) = field["oneOf"]
        .as_array()
        .or_else(|| field["anyOf"].as_array())
    {
        return choices.iter().map(describe_type).collect::<Vec<_>>().join(
            if field["anyOf"].is_array() {
                " or "
            } else {
                " "
            },
        );
    }
    match &field["type"] {
        Value::String(name) if name == "array" => {
            format!("list of {}", describe_type(&field["items"]))
        }
        Value::String(name) => describe_named_type(name, field),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .map(|name| describe_named_type(name, field))
            .collect::<Vec<_>>()
            .join(" or "),
        _ => "any".to_owned(),
    }
}

/// Returns the name of a type; for an object, also the names of its fields.
fn describe_named_type(name: &str, field: &Value) -> String {
    let names: Vec<_> = field["properties"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if name == "object" && !names.is_empty() {
        format!("object ({})", names.join(", "))
    } else {
        name.to_owned()
    }
}

fn one_line_description(schema: &Value) -> String {
    schema["description"]
        .as_str()
        .unwrap_or_default()
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
}
