//! Rules about turns: calls, their responses and their signatures.

use serde_json::Value;

use super::{field, items};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict},
};

fn count(content: &Value, camel: &str) -> usize {
    items(content, "parts")
        .iter()
        .filter(|part| field(part, camel).is_some())
        .count()
}

fn calls(content: &Value) -> usize {
    count(content, "functionCall")
}

fn responses(content: &Value) -> usize {
    count(content, "functionResponse")
}

fn is_model(content: &Value) -> bool {
    field(content, "role").and_then(Value::as_str) == Some("model")
}

/// Iterates over the turns, each with the turn before it.
fn with_previous(body: &Value) -> impl Iterator<Item = (Option<&Value>, &Value)> {
    let contents = items(body, "contents");
    std::iter::once(None)
        .chain(contents.iter().map(Some))
        .zip(contents)
}

pub(super) fn calls_after_user(body: &Value, _: &RequestInfo) -> Verdict {
    for (before, content) in with_previous(body) {
        if calls(content) > 0 && before.is_none_or(is_model) {
            return Err(Problem::new(
                "Please ensure that function call turn comes immediately after a user turn or after a function response \
                 turn.",
            ));
        }
    }
    Ok(())
}

pub(super) fn responses_after_calls(body: &Value, _: &RequestInfo) -> Verdict {
    for (before, content) in with_previous(body) {
        if responses(content) > 0 && before.is_none_or(|before| calls(before) == 0) {
            return Err(Problem::new(
                "Please ensure that function response turn comes immediately after a function call turn.",
            ));
        }
    }
    Ok(())
}

pub(super) fn as_many_responses(body: &Value, _: &RequestInfo) -> Verdict {
    for (before, content) in with_previous(body) {
        let asked = before.map_or(0, calls);
        if asked > 0 && responses(content) != asked {
            return Err(Problem::new(
                "Please ensure that the number of function response parts is equal to the number of function call parts \
                 of the function call turn.",
            ));
        }
    }
    Ok(())
}

pub(super) fn ends_with_user(body: &Value, _: &RequestInfo) -> Verdict {
    let contents = items(body, "contents");
    match contents {
        [only] if is_model(only) => Err(Problem::new(
            "Please ensure that single turn requests end with a user role or the role field is empty.",
        )),
        [.., last] if is_model(last) => Err(Problem::new(
            "Please ensure that multiturn requests ends with a user role or a function response.",
        )),
        _ => Ok(()),
    }
}

pub(super) fn signatures(body: &Value, info: &RequestInfo) -> Verdict {
    if !info
        .model_from_path
        .as_deref()
        .is_some_and(|model| model.starts_with("gemini-3"))
    {
        return Ok(());
    }
    let contents = items(body, "contents");
    // A user message begins a turn; function responses continue it.
    let start = contents
        .iter()
        .rposition(|content| !is_model(content) && responses(content) == 0)
        .unwrap_or(0);
    for (at, content) in contents.iter().enumerate().skip(start) {
        let Some(first) = items(content, "parts")
            .iter()
            .find(|part| field(part, "functionCall").is_some())
        else {
            continue;
        };
        if field(first, "thoughtSignature")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            let name = field(first, "functionCall")
                .and_then(|call| field(call, "name"))
                .and_then(Value::as_str);
            return Err(Problem::new(format!(
                "Function call is missing a thought_signature in functionCall parts. This is required for tools to work \
                 correctly, and missing thought_signature may lead to degraded model performance. Additional data, \
                 function call `default_api:{}` , position {}. Please refer to \
                 https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                name.unwrap_or_default(),
                at + 1
            )));
        }
    }
    Ok(())
}
