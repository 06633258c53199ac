//! Converts the schema of a server's question to a form.

use haft_types::{Choice, Field, FieldKind, Form};
use serde_json::Value;

/// Converts a server's question to a form. The protocol allows only flat schemas; a field of an
/// unknown type becomes a text field.
pub(crate) fn build_form(server: &str, message: &str, schema: &Value) -> Form {
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let field = |(name, field): (&String, &Value)| Field {
        name: name.clone(),
        title: string_or_empty(&field["title"]),
        description: string_or_empty(&field["description"]),
        kind: field_kind(field),
        required: required(name),
        default: field.get("default").cloned(),
    };
    Form {
        requester: format!("the MCP server `{server}`"),
        message: message.to_owned(),
        fields: schema["properties"]
            .as_object()
            .into_iter()
            .flatten()
            .map(field)
            .collect(),
    }
}

fn field_kind(field: &Value) -> FieldKind {
    match (field["type"].as_str(), parse_choices(field)) {
        (Some("array"), _) => FieldKind::Some(parse_choices(&field["items"]).unwrap_or_default()),
        (_, Some(choices)) => FieldKind::One(choices),
        (Some("boolean"), None) => FieldKind::Boolean,
        (Some("integer"), None) => FieldKind::Integer,
        (Some("number"), None) => FieldKind::Number,
        (_, None) => FieldKind::Text,
    }
}

/// Parses the choices of a form field. Accepts the notations of all revisions of the protocol.
fn parse_choices(field: &Value) -> Option<Vec<Choice>> {
    if let Some(values) = field["enum"].as_array() {
        let title = |index: usize, value: &str| match field["enumNames"][index].as_str() {
            Some(title) => title.to_owned(),
            None => value.to_owned(),
        };
        let named = values.iter().map(string_or_empty).enumerate();
        return Some(
            named
                .map(|(index, value)| Choice {
                    title: title(index, &value),
                    value,
                })
                .collect(),
        );
    }
    let titled = field["oneOf"]
        .as_array()
        .or_else(|| field["anyOf"].as_array())?;
    Some(
        titled
            .iter()
            .map(|one| Choice {
                value: string_or_empty(&one["const"]),
                title: string_or_empty(&one["title"]),
            })
            .collect(),
    )
}

fn string_or_empty(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn form_converts_every_kind_of_field() {
        let schema = json!({"type": "object", "required": ["who"], "properties": {
            "who": {"type": "string", "title": "Name", "description": "Your name.", "default": "Ada"},
            "age": {"type": "integer"}, "size": {"type": "number"}, "sure": {"type": "boolean"},
            "old": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red"]},
            "new": {"type": "string", "oneOf": [{"const": "r", "title": "Red"}]},
            "many": {"type": "array", "items": {"anyOf": [{"const": "r", "title": "Red"}]}},
            "plain": {"type": "array", "items": {"type": "string", "enum": ["r"]}},
            "strange": {"type": "object"}
        }});
        let form = build_form("s", "Who?", &schema);
        let choice = |value: &str, title: &str| Choice {
            value: value.into(),
            title: title.into(),
        };
        let kinds: Vec<_> = form
            .fields
            .iter()
            .map(|field| (field.name.as_str(), field.kind.clone()))
            .collect();
        assert_eq!(
            kinds,
            [
                ("who", FieldKind::Text),
                ("age", FieldKind::Integer),
                ("size", FieldKind::Number),
                ("sure", FieldKind::Boolean),
                (
                    "old",
                    FieldKind::One(vec![choice("r", "Red"), choice("g", "g")])
                ),
                ("new", FieldKind::One(vec![choice("r", "Red")])),
                ("many", FieldKind::Some(vec![choice("r", "Red")])),
                ("plain", FieldKind::Some(vec![choice("r", "r")])),
                ("strange", FieldKind::Text),
            ]
        );
        let who = &form.fields[0];
        assert_eq!(
            (who.label(), who.required, &who.default),
            ("Name", true, &Some(json!("Ada")))
        );
        assert!(!form.fields[1].required);
    }
}
