//! Checks the JSON schema of a function.
//!
//! All checks share one walk over the schema. Paths are formatted as the service reports them: as a
//! tuple of keys.

use serde_json::Value;

use super::{Problem, Verdict, array_field};

/// The path of a subschema, as the keys that lead to it from the root.
type Path<'a> = Vec<std::borrow::Cow<'a, str>>;

/// Checks the requirements for the parameter schema of any function: an object with `properties`,
/// and `items` in every array.
pub(in crate::rules) fn check_function_schema(
    function: &str,
    parameters: &Value,
    param: &str,
) -> Verdict {
    let refuse = |what: String| {
        let message = format!("Invalid schema for function '{function}': {what}");
        Err(Problem::new(message)
            .param(param)
            .code("invalid_function_parameters"))
    };
    if parameters.get("type").and_then(Value::as_str) != Some("object") {
        let found = parameters
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or("None");
        return refuse(format!(
            "schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{found}\"'."
        ));
    }
    if parameters.get("properties").is_none() {
        return refuse("In context=(), object schema missing properties.".to_owned());
    }
    let found = find_fault(parameters, &|schema| {
        let lacking = has_type(schema, "array")
            && schema.get("items").is_none()
            && schema.get("prefixItems").is_none();
        lacking.then(|| "array schema missing items.".to_owned())
    });
    found.map_or(Ok(()), refuse)
}

/// Checks the requirements that only strict functions have: closed objects, in which every property
/// is required.
pub(in crate::rules) fn check_strict_schema(
    function: &str,
    parameters: &Value,
    param: &str,
) -> Verdict {
    match find_fault(parameters, &find_strictness_fault) {
        Some(what) => {
            let message = format!("Invalid schema for function '{function}': {what}");
            Err(Problem::new(message)
                .param(param)
                .code("invalid_function_parameters"))
        }
        None => Ok(()),
    }
}

fn find_strictness_fault(schema: &Value) -> Option<String> {
    if !has_type(schema, "object") {
        return None;
    }
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Some(
            "'additionalProperties' is required to be supplied and to be false.".to_owned(),
        );
    }
    let properties = schema.get("properties").and_then(Value::as_object)?;
    let required: std::collections::HashSet<&str> = array_field(schema, "required")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let missing = properties
        .keys()
        .find(|name| !required.contains(name.as_str()))?;
    Some(format!(
        "'required' is required to be supplied and to be an array including every key in properties. Missing '{missing}'."
    ))
}

fn has_type(schema: &Value, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(found)) => found == wanted,
        Some(Value::Array(found)) => found.iter().any(|found| found == wanted),
        _ => false,
    }
}

/// Finds the first fault in document order, and returns its description after the path of the
/// subschema.
fn find_fault(schema: &Value, fault: &dyn Fn(&Value) -> Option<String>) -> Option<String> {
    let mut path = Path::new();
    let what = walk_schema(schema, &mut path, fault)?;
    let keys: Vec<String> = path.iter().map(|key| format!("'{key}'")).collect();
    let comma = if keys.len() == 1 { "," } else { "" };
    Some(format!("In context=({}{comma}), {what}", keys.join(", ")))
}

fn walk_schema<'a>(
    schema: &'a Value,
    path: &mut Path<'a>,
    fault: &dyn Fn(&Value) -> Option<String>,
) -> Option<String> {
    if let Some(what) = fault(schema) {
        return Some(what);
    }
    for group in ["properties", "$defs", "definitions"] {
        for (name, inner) in schema
            .get(group)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
        {
            path.extend([group.into(), name.as_str().into()]);
            if let Some(what) = walk_schema(inner, path, fault) {
                return Some(what);
            }
            path.truncate(path.len() - 2);
        }
    }
    for group in ["anyOf", "oneOf", "allOf", "prefixItems"] {
        for (at, inner) in array_field(schema, group).iter().enumerate() {
            path.extend([group.into(), at.to_string().into()]);
            if let Some(what) = walk_schema(inner, path, fault) {
                return Some(what);
            }
            path.truncate(path.len() - 2);
        }
    }
    for group in ["items", "additionalProperties"] {
        if let Some(inner) = schema.get(group).filter(|inner| inner.is_object()) {
            path.push(group.into());
            if let Some(what) = walk_schema(inner, path, fault) {
                return Some(what);
            }
            path.pop();
        }
    }
    None
}
