//! Rules about tool definitions, and about single calls and results.

use std::collections::HashSet;

use serde_json::Value;

use super::{each_block, fields::not_permitted};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, given, is_plain_name, kind, list, text, unknown_key},
};

const TOOL_FIELDS: &[&str] = &[
    "type",
    "name",
    "description",
    "input_schema",
    "allowed_callers",
    "cache_control",
    "defer_loading",
    "eager_input_streaming",
    "input_examples",
    "strict",
];

/// Iterates over the tools that the client defines, with their indexes. The service's own tools
/// have other shapes.
fn custom_tools(body: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list(body, "tools")
        .iter()
        .enumerate()
        .filter(|(_, tool)| matches!(kind(tool), "" | "custom"))
}

pub(super) fn known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, tool) in custom_tools(body) {
        if let Some(key) = unknown_key(tool, TOOL_FIELDS) {
            return Err(not_permitted(&format!("tools.{index}.custom.{key}")));
        }
    }
    Ok(())
}

pub(super) fn name(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, tool) in custom_tools(body) {
        match text(tool, "name") {
            Some(name) if is_plain_name(name, 128) => {}
            Some(_) => {
                let pattern = "^[a-zA-Z0-9_-]{1,128}$";
                let message =
                    format!("tools.{index}.custom.name: String should match pattern '{pattern}'");
                return Err(Problem::new(message));
            }
            None => {
                return Err(Problem::new(format!(
                    "tools.{index}.custom.name: Field required"
                )));
            }
        }
    }
    Ok(())
}

pub(super) fn names_differ(body: &Value, _: &RequestInfo) -> Verdict {
    let mut seen = HashSet::new();
    if list(body, "tools")
        .iter()
        .filter_map(|tool| text(tool, "name"))
        .all(|name| seen.insert(name))
    {
        return Ok(());
    }
    Err(Problem::new("tools: Tool names must be unique."))
}

pub(super) fn schema(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, tool) in custom_tools(body) {
        let problem = match tool.get("input_schema") {
            None => "Field required",
            Some(Value::Object(schema)) => match schema.get("type") {
                Some(Value::String(found)) if found == "object" => continue,
                Some(_) => {
                    let path = format!("tools.{index}.custom.input_schema.type");
                    return Err(Problem::new(format!("{path}: Input should be 'object'")));
                }
                None => {
                    return Err(Problem::new(format!(
                        "tools.{index}.custom.input_schema.type: Field required"
                    )));
                }
            },
            Some(_) => "Input should be a valid dictionary",
        };
        return Err(Problem::new(format!(
            "tools.{index}.custom.input_schema: {problem}"
        )));
    }
    Ok(())
}

pub(super) fn choice_needs_tools(body: &Value, _: &RequestInfo) -> Verdict {
    if given(body, "tool_choice").is_some() && list(body, "tools").is_empty() {
        return Err(Problem::new(
            "tool_choice: tool_choice may only be specified while providing tools.",
        ));
    }
    Ok(())
}

/// Iterates over every call, with the indexes of its message and its block.
fn calls(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    each_block(body).filter(|(_, _, block)| kind(block) == "tool_use")
}

pub(super) fn call_id(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, call) in calls(body) {
        let path = || format!("messages.{message}.content.{block}.tool_use.id");
        match text(call, "id") {
            Some(id) if is_plain_name(id, usize::MAX) => {}
            Some(_) => {
                return Err(Problem::new(format!(
                    "{}: String should match pattern '^[a-zA-Z0-9_-]+$'",
                    path()
                )));
            }
            None => return Err(Problem::new(format!("{}: Field required", path()))),
        }
    }
    Ok(())
}

pub(super) fn call_input(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, call) in calls(body) {
        let problem = match call.get("input") {
            Some(Value::Object(_)) => continue,
            Some(_) => "Input should be a valid dictionary",
            None => "Field required",
        };
        return Err(Problem::new(format!(
            "messages.{message}.content.{block}.tool_use.input: {problem}"
        )));
    }
    Ok(())
}

pub(super) fn call_ids_differ(body: &Value, _: &RequestInfo) -> Verdict {
    let mut seen = HashSet::new();
    for (message, block, call) in calls(body) {
        if text(call, "id").is_some_and(|id| !seen.insert(id)) {
            let message =
                format!("messages.{message}.content.{block}: `tool_use` ids must be unique");
            return Err(Problem::new(message));
        }
    }
    Ok(())
}

pub(super) fn error_has_content(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, result) in each_block(body) {
        let failed =
            kind(result) == "tool_result" && result.get("is_error") == Some(&Value::Bool(true));
        let empty = match result.get("content") {
            None | Some(Value::Null) => true,
            Some(Value::String(content)) => content.is_empty(),
            Some(Value::Array(content)) => content.is_empty(),
            Some(_) => false,
        };
        if failed && empty {
            let path = format!("messages.{message}.content.{block}.tool_result");
            return Err(Problem::new(format!(
                "{path}: content cannot be empty if `is_error` is true"
            )));
        }
    }
    Ok(())
}
