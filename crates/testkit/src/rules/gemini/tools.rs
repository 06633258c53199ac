//! Rules about function declarations and the function-calling mode.

use std::collections::HashSet;

use serde_json::Value;

use super::{array_field, field_problem, get_field};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict},
};

const MAX_NAME_LEN: usize = 128;

/// Iterates over all function declarations, each with the index of its tool and its own index.
pub(super) fn iter_declarations(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    array_field(body, "tools")
        .iter()
        .enumerate()
        .flat_map(|(tool, value)| {
            array_field(value, "functionDeclarations")
                .iter()
                .enumerate()
                .map(move |(at, function)| (tool, at, function))
        })
}

fn function_name(function: &Value) -> &str {
    get_field(function, "name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn check_name(body: &Value, _: &RequestInfo) -> Verdict {
    for (tool, at, function) in iter_declarations(body) {
        let name = function_name(function);
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte));
        if !begins || !plain || name.len() > MAX_NAME_LEN {
            let place = format!("tools[{tool}].function_declarations[{at}].name");
            let what = format!(
                "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, \
                 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of {MAX_NAME_LEN}."
            );
            return Err(field_problem(&place, &what));
        }
    }
    Ok(())
}

pub(super) fn check_names_unique(body: &Value, _: &RequestInfo) -> Verdict {
    let mut seen = HashSet::new();
    match iter_declarations(body)
        .map(|(_, _, function)| function_name(function))
        .find(|name| !seen.insert(*name))
    {
        Some(name) => Err(Problem::new(format!(
            "Duplicate function declaration found: {name}"
        ))),
        None => Ok(()),
    }
}

pub(super) fn check_single_schema(body: &Value, _: &RequestInfo) -> Verdict {
    for (tool, at, function) in iter_declarations(body) {
        if get_field(function, "parameters").is_some()
            && get_field(function, "parametersJsonSchema").is_some()
        {
            let place = format!("tools[{tool}].function_declarations[{at}]");
            return Err(field_problem(
                &place,
                "only one of parameters and parameters_json_schema can be set.",
            ));
        }
    }
    Ok(())
}

fn calling_config(body: &Value) -> Option<&Value> {
    get_field(body, "toolConfig").and_then(|config| get_field(config, "functionCallingConfig"))
}

fn calling_mode(config: &Value) -> &str {
    get_field(config, "mode")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn check_config_has_functions(body: &Value, _: &RequestInfo) -> Verdict {
    let forced = calling_config(body).is_some_and(|config| calling_mode(config) == "ANY");
    if forced && iter_declarations(body).next().is_none() {
        return Err(Problem::new(
            "Function calling config is set without function_declarations.",
        ));
    }
    Ok(())
}

pub(super) fn check_allowed_names(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(config) = calling_config(body) else {
        return Ok(());
    };
    if !array_field(config, "allowedFunctionNames").is_empty()
        && !matches!(calling_mode(config), "ANY" | "VALIDATED")
    {
        return Err(Problem::new(
            "Allowed function names should only be set when function calling mode is ANY or VALIDATED.",
        ));
    }
    Ok(())
}
