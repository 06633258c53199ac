//! Rules about the schema in a function's `parameters`: a documented subset of `OpenAPI`, not JSON
//! schema.
//!
//! All rules share one walk. The service has two notations for a path: by position in errors of the
//! parser (`properties[0].value`), and by key in errors of later checks (`properties[unit]`).

use serde_json::Value;

use super::{
    field_problem, fields::unknown_field_violation, get_field, invalid_value_violation,
    reject_violations, tools::iter_declarations,
};
use crate::rules::{
    RequestInfo,
    common::{Verdict, Violation},
};

const KNOWN_FIELDS: &[&str] = &[
    "type",
    "format",
    "title",
    "description",
    "nullable",
    "enum",
    "maxItems",
    "minItems",
    "properties",
    "required",
    "minProperties",
    "maxProperties",
    "minLength",
    "maxLength",
    "pattern",
    "example",
    "anyOf",
    // Not in the reference, but accepted by the service.
    "oneOf",
    "propertyOrdering",
    "default",
    "items",
    "minimum",
    "maximum",
];

const TYPES: &[&str] = &[
    "TYPE_UNSPECIFIED",
    "STRING",
    "NUMBER",
    "INTEGER",
    "BOOLEAN",
    "ARRAY",
    "OBJECT",
    "NULL",
];
const TYPE_NAME: &str = "type.googleapis.com/google.ai.generativelanguage.v1beta.Type";

/// The path of a subschema, in the two forms that the service uses in errors.
struct SchemaPath {
    by_position: String,
    by_key: String,
}

impl SchemaPath {
    fn child(&self, by_position: &str, by_key: &str) -> Self {
        Self {
            by_position: format!("{}.{by_position}", self.by_position),
            by_key: format!("{}.{by_key}", self.by_key),
        }
    }
}

/// Calls `look` for every schema, at any depth, in the `parameters` and `response` of every
/// function.
fn for_each_schema(body: &Value, look: &mut dyn FnMut(&Value, &SchemaPath) -> Verdict) -> Verdict {
    for (tool, at, function) in iter_declarations(body) {
        for name in ["parameters", "response"] {
            if let Some(schema) = get_field(function, name) {
                let root = format!("tools[{tool}].function_declarations[{at}].{name}");
                visit_subschemas(
                    schema,
                    &SchemaPath {
                        by_position: root.clone(),
                        by_key: root,
                    },
                    look,
                )?;
            }
        }
    }
    Ok(())
}

fn visit_subschemas(
    schema: &Value,
    place: &SchemaPath,
    look: &mut dyn FnMut(&Value, &SchemaPath) -> Verdict,
) -> Verdict {
    look(schema, place)?;
    let properties = get_field(schema, "properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    for (at, (name, inner)) in properties.enumerate() {
        visit_subschemas(
            inner,
            &place.child(
                &format!("properties[{at}].value"),
                &format!("properties[{name}]"),
            ),
            look,
        )?;
    }
    if let Some(inner) = get_field(schema, "items").filter(|inner| inner.is_object()) {
        visit_subschemas(inner, &place.child("items", "items"), look)?;
    }
    for (camel, snake) in [("anyOf", "any_of"), ("oneOf", "one_of")] {
        for (at, inner) in super::array_field(schema, camel).iter().enumerate() {
            let name = format!("{snake}[{at}]");
            visit_subschemas(inner, &place.child(&name, &name), look)?;
        }
    }
    Ok(())
}

pub(super) fn check_known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    let mut violations: Vec<Violation> = Vec::new();
    for_each_schema(body, &mut |schema, place| {
        for key in schema
            .as_object()
            .into_iter()
            .flat_map(serde_json::Map::keys)
        {
            if !KNOWN_FIELDS
                .iter()
                .any(|known| super::fields::is_same_field(key, known))
            {
                violations.push(unknown_field_violation(key, &place.by_position));
            }
        }
        Ok(())
    })?;
    reject_violations(violations)
}

pub(super) fn check_types(body: &Value, _: &RequestInfo) -> Verdict {
    let mut violations: Vec<Violation> = Vec::new();
    for_each_schema(body, &mut |schema, place| {
        match schema.get("type") {
            Some(Value::Array(_)) => {
                let path = &place.by_position;
                violations.push(Violation {
                    field: path.clone(),
                    description: format!(
                        "Invalid JSON payload received. Unknown name \"type\" at '{path}': Proto field is not \
                         repeating, cannot start list."
                    ),
                });
            }
            Some(Value::String(found)) if !TYPES.contains(&found.to_ascii_uppercase().as_str()) => {
                let path = format!("{}.type", place.by_position);
                violations.push(invalid_value_violation(
                    path,
                    TYPE_NAME,
                    &Value::String(found.clone()),
                ));
            }
            _ => {}
        }
        Ok(())
    })?;
    reject_violations(violations)
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    schema
        .get("type")
        .and_then(Value::as_str)
        .is_some_and(|found| found.eq_ignore_ascii_case(wanted))
}

fn require_items(schema: &Value, place: &SchemaPath) -> Verdict {
    if has_type(schema, "array") && get_field(schema, "items").is_none() {
        return Err(field_problem(
            &format!("{}.items", place.by_key),
            "missing field.",
        ));
    }
    Ok(())
}

pub(super) fn check_items(body: &Value, _: &RequestInfo) -> Verdict {
    for_each_schema(body, &mut require_items)
}

pub(super) fn check_enums(body: &Value, _: &RequestInfo) -> Verdict {
    for_each_schema(body, &mut |schema, place| {
        let typed = schema.get("type").is_some();
        if get_field(schema, "enum").is_some() && typed && !has_type(schema, "string") {
            return Err(field_problem(
                &format!("{}.enum", place.by_key),
                "only allowed for STRING type",
            ));
        }
        Ok(())
    })
}

pub(super) fn check_required(body: &Value, _: &RequestInfo) -> Verdict {
    for_each_schema(body, &mut |schema, place| {
        let properties = get_field(schema, "properties").and_then(Value::as_object);
        for (at, name) in super::array_field(schema, "required").iter().enumerate() {
            let defined = name
                .as_str()
                .is_some_and(|name| properties.is_some_and(|known| known.contains_key(name)));
            if !defined {
                return Err(field_problem(
                    &format!("{}.required[{at}]", place.by_key),
                    "property is not defined",
                ));
            }
        }
        Ok(())
    })
}
