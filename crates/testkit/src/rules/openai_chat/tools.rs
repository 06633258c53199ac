//! Rules about tools, calls and their results.

use std::collections::HashSet;

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, given, kind, list, text},
    openai::{
        check_function_name, check_schema, check_strict, empty_array, missing, not_among,
        wrong_type,
    },
};

const MOST_TOOLS: usize = 128;

/// Iterates over every call in the history, with the index of its message and its own.
fn calls(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    list(body, "messages")
        .iter()
        .enumerate()
        .flat_map(|(message, value)| {
            list(value, "tool_calls")
                .iter()
                .enumerate()
                .map(move |(call, value)| (message, call, value))
        })
}

pub(super) fn calls_not_empty(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, message) in list(body, "messages").iter().enumerate() {
        if message
            .get("tool_calls")
            .and_then(Value::as_array)
            .is_some_and(Vec::is_empty)
        {
            return Err(empty_array(&format!("messages[{at}].tool_calls")));
        }
    }
    Ok(())
}

pub(super) fn call_type(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, call, value) in calls(body) {
        let param = || format!("messages[{message}].tool_calls[{call}].type");
        match text(value, "type") {
            Some("function" | "custom") => {}
            Some(other) => return Err(not_among(&param(), other, &["function", "custom"])),
            None => return Err(missing(&param())),
        }
    }
    Ok(())
}

pub(super) fn call_arguments(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, call, value) in calls(body).filter(|(_, _, value)| kind(value) == "function") {
        let param = || format!("messages[{message}].tool_calls[{call}].function");
        let Some(function) = given(value, "function") else {
            return Err(missing(&param()));
        };
        match function.get("arguments") {
            Some(Value::String(_)) => {}
            Some(other) => {
                return Err(wrong_type(
                    &format!("{}.arguments", param()),
                    "a string",
                    other,
                ));
            }
            None => return Err(missing(&format!("{}.arguments", param()))),
        }
    }
    Ok(())
}

pub(super) fn result_id(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, message) in list(body, "messages").iter().enumerate() {
        if text(message, "role") == Some("tool") && text(message, "tool_call_id").is_none() {
            return Err(missing(&format!("messages[{at}].tool_call_id")));
        }
    }
    Ok(())
}

pub(super) fn every_call_answered(body: &Value, _: &RequestInfo) -> Verdict {
    let messages = list(body, "messages");
    for (at, message) in messages.iter().enumerate() {
        let called = list(message, "tool_calls");
        if called.is_empty() {
            continue;
        }
        let answers = messages[at + 1..]
            .iter()
            .take_while(|next| text(next, "role") == Some("tool"));
        let answered: HashSet<&str> = answers
            .filter_map(|answer| text(answer, "tool_call_id"))
            .collect();
        let open: Vec<&str> = called
            .iter()
            .filter_map(|call| text(call, "id"))
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
                .take_while(|next| text(next, "role") == Some("tool"))
                .count();
            return Err(
                Problem::new(message).param(format!("messages.[{}].role", at + 1 + answers))
            );
        }
    }
    Ok(())
}

pub(super) fn every_result_called(body: &Value, _: &RequestInfo) -> Verdict {
    let mut open: HashSet<&str> = HashSet::new();
    for (at, message) in list(body, "messages").iter().enumerate() {
        if text(message, "role") == Some("tool") {
            if text(message, "tool_call_id").is_some_and(|id| !open.remove(id)) {
                let message = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message \
                               with 'tool_calls'.";
                return Err(Problem::new(message).param(format!("messages.[{at}].role")));
            }
        } else {
            open = list(message, "tool_calls")
                .iter()
                .filter_map(|call| text(call, "id"))
                .collect();
        }
    }
    Ok(())
}

pub(super) fn not_empty(body: &Value, _: &RequestInfo) -> Verdict {
    match body.get("tools").and_then(Value::as_array) {
        Some(tools) if tools.is_empty() => Err(empty_array("tools")),
        Some(_) | None => Ok(()),
    }
}

pub(super) fn not_too_many(body: &Value, _: &RequestInfo) -> Verdict {
    let found = list(body, "tools").len();
    if found > MOST_TOOLS {
        let message = format!(
            "Invalid 'tools': array too long. Expected an array with maximum length {MOST_TOOLS}, but got an array with \
             length {found} instead."
        );
        return Err(Problem::new(message)
            .param("tools")
            .code("array_above_max_length"));
    }
    Ok(())
}

pub(super) fn nested(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, tool) in list(body, "tools").iter().enumerate() {
        match kind(tool) {
            "function" if given(tool, "function").is_none() => {
                return Err(missing(&format!("tools[{at}].function")));
            }
            "function" | "custom" => {}
            "" => return Err(missing(&format!("tools[{at}].type"))),
            other => {
                return Err(not_among(
                    &format!("tools[{at}].type"),
                    other,
                    &["function", "custom"],
                ));
            }
        }
    }
    Ok(())
}

/// Iterates over the definitions of function tools, with their indexes.
fn functions(body: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list(body, "tools")
        .iter()
        .enumerate()
        .filter_map(|(at, tool)| Some((at, given(tool, "function")?)))
}

pub(super) fn name(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, function) in functions(body) {
        let param = format!("tools[{at}].function.name");
        match text(function, "name") {
            Some(name) => check_function_name(name, &param)?,
            None => return Err(missing(&param)),
        }
    }
    Ok(())
}

pub(super) fn schema(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, function) in functions(body) {
        if let Some(parameters) = given(function, "parameters") {
            let name = text(function, "name").unwrap_or_default();
            check_schema(
                name,
                parameters,
                &format!("tools[{at}].function.parameters"),
            )?;
        }
    }
    Ok(())
}

pub(super) fn strict(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, function) in functions(body) {
        let strict = function.get("strict") == Some(&Value::Bool(true));
        if let Some(parameters) = given(function, "parameters").filter(|_| strict) {
            let name = text(function, "name").unwrap_or_default();
            check_strict(
                name,
                parameters,
                &format!("tools[{at}].function.parameters"),
            )?;
        }
    }
    Ok(())
}

pub(super) fn choice_needs_tools(body: &Value, _: &RequestInfo) -> Verdict {
    needs_tools(body, "tool_choice")
}

pub(super) fn parallel_needs_tools(body: &Value, _: &RequestInfo) -> Verdict {
    needs_tools(body, "parallel_tool_calls")
}

fn needs_tools(body: &Value, param: &str) -> Verdict {
    if given(body, param).is_some() && given(body, "tools").is_none() {
        let message = format!(
            "Invalid value for '{param}': '{param}' is only allowed when 'tools' are specified."
        );
        return Err(Problem::new(message).param(param));
    }
    Ok(())
}
