//! Rules about function tools and the tool choice.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, given, kind, list, text},
    openai::{check_function_name, check_schema, check_strict, missing},
};

/// Iterates over function tools, with their indexes.
fn functions(body: &Value) -> impl Iterator<Item = (usize, &Value)> {
    list(body, "tools")
        .iter()
        .enumerate()
        .filter(|(_, tool)| kind(tool) == "function")
}

pub(super) fn flat(body: &Value, _: &RequestInfo) -> Verdict {
    match functions(body).find(|(_, tool)| text(tool, "name").is_none()) {
        Some((at, _)) => Err(missing(&format!("tools[{at}].name"))),
        None => Ok(()),
    }
}

pub(super) fn name(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, tool) in functions(body) {
        if let Some(name) = text(tool, "name") {
            check_function_name(name, &format!("tools[{at}].name"))?;
        }
    }
    Ok(())
}

pub(super) fn schema(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, tool) in functions(body) {
        if let Some(parameters) = given(tool, "parameters") {
            check_schema(
                text(tool, "name").unwrap_or_default(),
                parameters,
                &format!("tools[{at}].parameters"),
            )?;
        }
    }
    Ok(())
}

/// Checks strict functions. Unlike in Chat Completions, a function is strict by default.
pub(super) fn strict(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, tool) in
        functions(body).filter(|(_, tool)| tool.get("strict") != Some(&Value::Bool(false)))
    {
        if let Some(parameters) = given(tool, "parameters") {
            check_strict(
                text(tool, "name").unwrap_or_default(),
                parameters,
                &format!("tools[{at}].parameters"),
            )?;
        }
    }
    Ok(())
}

pub(super) fn choice_needs_tools(body: &Value, _: &RequestInfo) -> Verdict {
    let choice = match given(body, "tool_choice") {
        Some(Value::String(choice)) if choice == "required" => choice,
        _ => return Ok(()),
    };
    if list(body, "tools").is_empty() && given(body, "prompt").is_none() {
        let message = format!("Tool choice '{choice}' must be specified with 'tools' parameter.");
        return Err(Problem::new(message).param("tool_choice"));
    }
    Ok(())
}

pub(super) fn choice_is_known(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(choice) = given(body, "tool_choice").filter(|choice| kind(choice) == "function")
    else {
        return Ok(());
    };
    // Tools of other types may define functions that the request doesn't list.
    let known =
        |tool: &Value| kind(tool) != "function" || text(tool, "name") == text(choice, "name");
    let known = list(body, "tools").iter().any(known);
    if !known && given(body, "prompt").is_none() {
        return Err(
            Problem::new("Tool choice 'function' not found in 'tools' parameter.")
                .param("tool_choice"),
        );
    }
    Ok(())
}
