//! Rules about tools, calls and their results.

use std::collections::HashSet;

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, array_field, non_null_field, string_field, type_field},
    openai::{
        check_function_name, check_function_schema, check_strict_schema, empty_array_problem,
        missing_parameter_problem, unsupported_value_problem, wrong_type_problem,
    },
};

const MAX_TOOLS: usize = 128;

/// Iterates over the tool calls of all messages, each with the index of its message and its own
/// index.
fn iter_calls(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    array_field(body, "messages")
        .iter()
        .enumerate()
        .flat_map(|(message, value)| {
            array_field(value, "tool_calls")
                .iter()
                .enumerate()
                .map(move |(call, value)| (message, call, value))
        })
}

pub(super) fn check_calls_not_empty(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, message) in array_field(body, "messages").iter().enumerate() {
        if message
            .get("tool_calls")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            return Err(empty_array_problem(&format!("messages[{at}].tool_calls")));
        }
    }
    Ok(())
}

pub(super) fn check_call_type(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, call, value) in iter_calls(body) {
        let param = || format!("messages[{message}].tool_calls[{call}].type");
        match string_field(value, "type") {
            Some("function" | "custom") => {}
            Some(other) => {
                return Err(unsupported_value_problem(
                    &param(),
                    other,
                    &["function", "custom"],
                ));
            }
            None => return Err(missing_parameter_problem(&param())),
        }
    }
    Ok(())
}

pub(super) fn check_call_arguments(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, call, value) in
        iter_calls(body).filter(|(_, _, value)| type_field(value) == "function")
    {
        let param = || format!("messages[{message}].tool_calls[{call}].function");
        let Some(function) = non_null_field(value, "function") else {
            return Err(missing_parameter_problem(&param()));
        };
        match function.get("arguments") {
            Some(Value::String(_)) => {}
            Some(other) => {
                return Err(wrong_type_problem(
                    &format!("{}.arguments", param()),
                    "a string",
                    other,
                ));
            }
            None => return Err(missing_parameter_problem(&format!("{}.arguments", param()))),
        }
    }
    Ok(())
}

pub(super) fn check_result_id(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, message) in array_field(body, "messages").iter().enumerate() {
        if string_field(message, "role") == Some("tool")
            && string_field(message, "tool_call_id").is_none()
        {
            return Err(missing_parameter_problem(&format!(
                "messages[{at}].tool_call_id"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_every_call_answered(body: &Value, _: &RequestInfo) -> Verdict {
    let messages = array_field(body, "messages");
    for (at, message) in messages.iter().enumerate() {
        let called = array_field(message, "tool_calls");
        if called.is_empty() {
            continue;
        }
        let answers = messages[at + 1..]
            .iter()
            .take_while(|next| string_field(next, "role") == Some("tool"));
        let answered: HashSet<&str> = answers
            .filter_map(|answer| string_field(answer, "tool_call_id"))
            .collect();
        let open: Vec<&str> = called
            .iter()
            .filter_map(|call| string_field(call, "id"))
            .filter(|id| !answered.contains(id))
            .collect();
        if !open.is_empty() {
            let message = format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
                 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                open.join(", ")
            );
            let answers = messages[at + 1..]
                .iter()
                .take_while(|next| string_field(next, "role") == Some("tool"))
                .count();
            return Err(
                Problem::new(message).param(format!("messages.[{}].role", at + 1 + answers))
            );
        }
    }
    Ok(())
}

pub(super) fn check_every_result_has_call(body: &Value, _: &RequestInfo) -> Verdict {
    let mut open: HashSet<&str> = HashSet::new();
    for (at, message) in array_field(body, "messages").iter().enumerate() {
        if string_field(message, "role") == Some("tool") {
            if string_field(message, "tool_call_id").is_some_and(|id| !open.remove(id)) {
                let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message \
                               with 'tool_calls'.";
                return Err(Problem::new(message).param(format!("messages.[{at}].role")));
            }
        } else {
            open = array_field(message, "tool_calls")
                .iter()
                .filter_map(|call| string_field(call, "id"))
                .collect();
        }
    }
    Ok(())
}

pub(super) fn check_not_empty(body: &Value, _: &RequestInfo) -> Verdict {
    match body.get("tools").and_then(Value::as_array) {
        Some(tools) if tools.is_empty() => Err(empty_array_problem("tools")),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn check_max_tools(body: &Value, _: &RequestInfo) -> Verdict {
    let found = array_field(body, "tools").len();
    if found > MAX_TOOLS {
        let message = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {MAX_TOOLS}, but got an array with \
             length {found} instead."
        );
        return Err(Problem::new(message)
            .param("tools")
            .code("array_above_max_length"));
    }
    Ok(())
}

pub(super) fn check_function_nested(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, tool) in array_field(body, "tools").iter().enumerate() {
        match type_field(tool) {
            "function" if non_null_field(tool, "function").is_none() => {
                return Err(missing_parameter_problem(&format!("tools[{at}].function")));
            }
            "function" | "custom" => {}
            "" => return Err(missing_parameter_problem(&format!("tools[{at}].type"))),
            other => {
                return Err(unsupported_value_problem(
                    &format!("tools[{at}].type"),
                    other,
                    &["function", "custom"],
                ));
            }
        }
    }
    Ok(())
}

/// Iterates over the definitions of function tools, each with its index.
fn iter_functions(body: &Value) -> impl Iterator<Item = (usize, &Value)> {
    array_field(body, "tools")
        .iter()
        .enumerate()
        .filter_map(|(at, tool)| Some((at, non_null_field(tool, "function")?)))
}

pub(super) fn check_name(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, function) in iter_functions(body) {
        let param = format!("tools[{at}].function.name");
        match string_field(function, "name") {
            Some(name) => check_function_name(name, &param)?,
            None => return Err(missing_parameter_problem(&param)),
        }
    }
    Ok(())
}

pub(super) fn check_schemas(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, function) in iter_functions(body) {
        if let Some(parameters) = non_null_field(function, "parameters") {
            let name = string_field(function, "name").unwrap_or_default();
            check_function_schema(
                name,
                parameters,
                &format!("tools[{at}].function.parameters"),
            )?;
        }
    }
    Ok(())
}

pub(super) fn check_strict_functions(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, function) in iter_functions(body) {
        let strict = function.get("strict") == Some(&Value::Bool(true));
        if let Some(parameters) = non_null_field(function, "parameters").filter(|_| strict) {
            let name = string_field(function, "name").unwrap_or_default();
            check_strict_schema(
                name,
                parameters,
                &format!("tools[{at}].function.parameters"),
            )?;
        }
    }
    Ok(())
}

pub(super) fn check_choice_has_tools(body: &Value, _: &RequestInfo) -> Verdict {
    check_tools_given(body, "tool_choice")
}

pub(super) fn check_parallel_has_tools(body: &Value, _: &RequestInfo) -> Verdict {
    check_tools_given(body, "parallel_tool_calls")
}

fn check_tools_given(body: &Value, param: &str) -> Verdict {
    if non_null_field(body, param).is_some() && non_null_field(body, "tools").is_none() {
        let message = format!(
            "Invalid value for '{param}': '{param}' is only allowed when 'tools' are specified."
        );
        return Err(Problem::new(message).param(param));
    }
    Ok(())
}
