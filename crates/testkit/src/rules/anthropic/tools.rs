//! Rules about tool definitions, and about single calls and results.

use std::collections::HashSet;

use serde_json::Value;

use super::{fields::field_not_permitted_problem, iter_blocks};
use crate::rules::{
    RequestInfo,
    common::{
        Problem, Verdict, array_field, find_unknown_key, is_plain_name, non_null_field,
        string_field, type_field,
    },
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

/// Iterates over the tools that the client defines, each with its index. The service's own tools
/// are skipped, because their definitions have another form.
fn iter_custom_tools(body: &Value) -> impl Iterator<Item = (usize, &Value)> {
    array_field(body, "tools")
        .iter()
        .enumerate()
        .filter(|(_, tool)| matches!(type_field(tool), "" | "custom"))
}

pub(super) fn check_known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, tool) in iter_custom_tools(body) {
        if let Some(key) = find_unknown_key(tool, TOOL_FIELDS) {
            return Err(field_not_permitted_problem(&format!(
                "tools.{index}.custom.{key}"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_name(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, tool) in iter_custom_tools(body) {
        match string_field(tool, "name") {
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

pub(super) fn check_names_unique(body: &Value, _: &RequestInfo) -> Verdict {
    let mut seen = HashSet::new();
    if array_field(body, "tools")
        .iter()
        .filter_map(|tool| string_field(tool, "name"))
        .all(|name| seen.insert(name))
    {
        return Ok(());
    }
    Err(Problem::new("tools: Tool names must be unique."))
}

pub(super) fn check_schema(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, tool) in iter_custom_tools(body) {
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

pub(super) fn check_choice_has_tools(body: &Value, _: &RequestInfo) -> Verdict {
    if non_null_field(body, "tool_choice").is_some() && array_field(body, "tools").is_empty() {
        return Err(Problem::new(
            "tool_choice: tool_choice may only be specified while providing tools.",
        ));
    }
    Ok(())
}

/// Iterates over all tool calls, each with the index of its message and its own index.
fn iter_calls(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    iter_blocks(body).filter(|(_, _, block)| type_field(block) == "tool_use")
}

pub(super) fn check_call_id(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, call) in iter_calls(body) {
        let path = || format!("messages.{message}.content.{block}.tool_use.id");
        match string_field(call, "id") {
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

pub(super) fn check_call_input(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, call) in iter_calls(body) {
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

pub(super) fn check_call_ids_unique(body: &Value, _: &RequestInfo) -> Verdict {
    let mut seen = HashSet::new();
    for (message, block, call) in iter_calls(body) {
        if string_field(call, "id").is_some_and(|id| !seen.insert(id)) {
            let message =
                format!("messages.{message}.content.{block}: `tool_use` ids must be unique");
            return Err(Problem::new(message));
        }
    }
    Ok(())
}

pub(super) fn check_error_has_content(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, result) in iter_blocks(body) {
        let failed = type_field(result) == "tool_result"
            && result.get("is_error") == Some(&Value::Bool(true));
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
