//! Rules about calls in the input and their outputs.

use std::collections::HashSet;

use serde_json::Value;

use super::items::item_type;
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, array_field, non_null_field, string_field},
    openai::{missing_parameter_problem, string_too_long_problem, wrong_type_problem},
};

const MAX_ID_LEN: usize = 64;

pub(super) fn check_arguments(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, item) in array_field(body, "input")
        .iter()
        .enumerate()
        .filter(|(_, item)| item_type(item) == "function_call")
    {
        let param = || format!("input[{at}].arguments");
        match item.get("arguments") {
            Some(Value::String(_)) => {}
            Some(other) => return Err(wrong_type_problem(&param(), "a string", other)),
            None => return Err(missing_parameter_problem(&param())),
        }
    }
    Ok(())
}

pub(super) fn check_id_length(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, item) in array_field(body, "input").iter().enumerate() {
        let length = string_field(item, "call_id").map_or(0, |id| id.chars().count());
        if length > MAX_ID_LEN {
            return Err(string_too_long_problem(
                &format!("input[{at}].call_id"),
                MAX_ID_LEN,
                length,
            ));
        }
    }
    Ok(())
}

pub(super) fn check_ids_unique(body: &Value, _: &RequestInfo) -> Verdict {
    let mut seen = HashSet::new();
    for item in array_field(body, "input") {
        let found = item_type(item);
        if !matches!(found, "function_call" | "function_call_output") {
            continue;
        }
        if let Some(id) = string_field(item, "call_id").filter(|id| !seen.insert((found, *id))) {
            let message = format!(
                "Duplicate {found} for call_id '{id}'. Each function_call must have exactly one matching \
                 function_call_output."
            );
            return Err(Problem::new(message).param("input"));
        }
    }
    Ok(())
}

/// Returns the call ids of all items of the type `wanted`.
fn collect_call_ids<'a>(body: &'a Value, wanted: &str) -> HashSet<&'a str> {
    array_field(body, "input")
        .iter()
        .filter(|item| item_type(item) == wanted)
        .filter_map(|item| string_field(item, "call_id"))
        .collect()
}

pub(super) fn check_every_call_answered(body: &Value, _: &RequestInfo) -> Verdict {
    for (call, output, name) in [
        ("function_call", "function_call_output", "function call"),
        (
            "custom_tool_call",
            "custom_tool_call_output",
            "custom tool call",
        ),
    ] {
        let answered = collect_call_ids(body, output);
        let calls = array_field(body, "input")
            .iter()
            .filter(|item| item_type(item) == call);
        if let Some(id) = calls
            .filter_map(|item| string_field(item, "call_id"))
            .find(|id| !answered.contains(id))
        {
            return Err(
                Problem::new(format!("No tool output found for {name} {id}.")).param("input"),
            );
        }
    }
    Ok(())
}

pub(super) fn check_every_output_has_call(body: &Value, _: &RequestInfo) -> Verdict {
    let stored = ["previous_response_id", "conversation"]
        .iter()
        .any(|key| non_null_field(body, key).is_some());
    let referred = array_field(body, "input")
        .iter()
        .any(|item| item_type(item) == "item_reference");
    if stored || referred {
        return Ok(());
    }
    let mut called = HashSet::new();
    for item in array_field(body, "input") {
        let Some(id) = string_field(item, "call_id") else {
            continue;
        };
        match item_type(item) {
            "function_call" => {
                called.insert(id);
            }
            "function_call_output" if !called.contains(id) => {
                let message =
                    format!("No tool call found for function call output with call_id {id}.");
                return Err(Problem::new(message).param("input"));
            }
            _ => {}
        }
    }
    Ok(())
}
