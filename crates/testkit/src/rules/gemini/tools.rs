//! Rules about function declarations and the function-calling mode.

use std::collections::HashSet;

use serde_json::Value;

use super::{field, items, refused};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict},
};

const LONGEST_NAME: usize = 128;

/// Iterates over every function declaration, with the index of its tool and its own.
pub(super) fn declarations(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    items(body, "tools")
        .iter()
        .enumerate()
        .flat_map(|(tool, value)| {
            items(value, "functionDeclarations")
                .iter()
                .enumerate()
                .map(move |(at, function)| (tool, at, function))
        })
}

fn function_name(function: &Value) -> &str {
    field(function, "name")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn name(body: &Value, _: &RequestInfo) -> Verdict {
    for (tool, at, function) in declarations(body) {
        let name = function_name(function);
        let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let plain = name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte));
        if !begins || !plain || name.len() > LONGEST_NAME {
            let place = format!("tools[{tool}].function_declarations[{at}].name");
            let what = format!(
                "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, \
                 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of {LONGEST_NAME}."
            );
            return Err(refused(&place, &what));
        }
    }
    Ok(())
}

pub(super) fn names_differ(body: &Value, _: &RequestInfo) -> Verdict {
    let mut seen = HashSet::new();
    match declarations(body)
        .map(|(_, _, function)| function_name(function))
        .find(|name| !seen.insert(*name))
    {
        Some(name) => Err(Problem::new(format!(
            "Duplicate function declaration found: {name}"
        ))),
        None => Ok(()),
    }
}

pub(super) fn one_schema(body: &Value, _: &RequestInfo) -> Verdict {
    for (tool, at, function) in declarations(body) {
        if field(function, "parameters").is_some()
            && field(function, "parametersJsonSchema").is_some()
        {
            let place = format!("tools[{tool}].function_declarations[{at}]");
            return Err(refused(
                &place,
                "only one of parameters and parameters_json_schema can be set.",
            ));
        }
    }
    Ok(())
}

fn calling_config(body: &Value) -> Option<&Value> {
    field(body, "toolConfig").and_then(|config| field(config, "functionCallingConfig"))
}

fn mode(config: &Value) -> &str {
    field(config, "mode")
        .and_then(Value::as_str)
        .unwrap_or_default()
}

pub(super) fn config_needs_functions(body: &Value, _: &RequestInfo) -> Verdict {
    let forced = calling_config(body).is_some_and(|config| mode(config) == "ANY");
    if forced && declarations(body).next().is_none() {
        return Err(Problem::new(
            "Function calling config is set without function_declarations.",
        ));
    }
    Ok(())
}

pub(super) fn allowed_names(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(config) = calling_config(body) else {
        return Ok(());
    };
    if !items(config, "allowedFunctionNames").is_empty()
        && !matches!(mode(config), "ANY" | "VALIDATED")
    {
        return Err(Problem::new(
            "Allowed function names should only be set when function calling mode is ANY or VALIDATED.",
        ));
    }
    Ok(())
}
