//! Rules about function tools and the tool choice.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, array_field, non_null_field, string_field, type_field},
    openai::{
        check_function_name, check_function_schema, check_strict_schema, missing_parameter_problem,
    },
};

/// Iterates over the definitions of function tools, each with its index.
fn iter_functions(body: &Value) -> impl Iterator<Item = (usize, &Value)> {
    array_field(body, "tools")
        .iter()
        .enumerate()
        .filter(|(_, tool)| type_field(tool) == "function")
}

pub(super) fn check_function_not_nested(body: &Value, _: &RequestInfo) -> Verdict {
    match iter_functions(body).find(|(_, tool)| string_field(tool, "name").is_none()) {
        Some((at, _)) => Err(missing_parameter_problem(&format!("tools[{at}].name"))),
        None => Ok(()),
    }
}

pub(super) fn check_name(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, tool) in iter_functions(body) {
        if let Some(name) = string_field(tool, "name") {
            check_function_name(name, &format!("tools[{at}].name"))?;
        }
    }
    Ok(())
}

pub(super) fn check_schemas(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, tool) in iter_functions(body) {
        if let Some(parameters) = non_null_field(tool, "parameters") {
            check_function_schema(
                string_field(tool, "name").unwrap_or_default(),
                parameters,
                &format!("tools[{at}].parameters"),
            )?;
        }
    }
    Ok(())
}

/// Checks the schemas of strict functions. In Responses, unlike in Chat Completions, a function is
/// strict by default.
pub(super) fn check_strict_functions(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, tool) in
        iter_functions(body).filter(|(_, tool)| tool.get("strict") != Some(&Value::Bool(false)))
    {
        if let Some(parameters) = non_null_field(tool, "parameters") {
            check_strict_schema(
                string_field(tool, "name").unwrap_or_default(),
                parameters,
                &format!("tools[{at}].parameters"),
            )?;
        }
    }
    Ok(())
}

pub(super) fn check_choice_has_tools(body: &Value, _: &RequestInfo) -> Verdict {
    let choice = match non_null_field(body, "tool_choice") {
        Some(Value::String(choice)) if choice == "required" => choice,
        _ => return Ok(()),
    };
    if array_field(body, "tools").is_empty() && non_null_field(body, "prompt").is_none() {
        let message = format!("Tool choice '{choice}' must be specified with 'tools' parameter.");
        return Err(Problem::new(message).param("tool_choice"));
    }
    Ok(())
}

pub(super) fn check_choice_known(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(choice) =
        non_null_field(body, "tool_choice").filter(|choice| type_field(choice) == "function")
    else {
        return Ok(());
    };
    // Tools of other types may define functions that the request doesn't list.
    let known = |tool: &Value| {
        type_field(tool) != "function" || string_field(tool, "name") == string_field(choice, "name")
    };
    let known = array_field(body, "tools").iter().any(known);
    if !known && non_null_field(body, "prompt").is_none() {
        return Err(
            Problem::new("Tool choice 'function' not found in 'tools' parameter.")
                .param("tool_choice"),
        );
    }
    Ok(())
}
