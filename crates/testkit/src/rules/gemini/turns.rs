//! Rules about turns: calls, their responses and their signatures.

use serde_json::Value;

use super::{array_field, get_field};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict},
};

fn count_parts(content: &Value, camel: &str) -> usize {
    array_field(content, "parts")
        .iter()
        .filter(|part| get_field(part, camel).is_some())
        .count()
}

fn count_calls(content: &Value) -> usize {
    count_parts(content, "functionCall")
}

fn count_responses(content: &Value) -> usize {
    count_parts(content, "functionResponse")
}

fn is_model_turn(content: &Value) -> bool {
    get_field(content, "role").and_then(Value::as_str) == Some("model")
}

/// Iterates over the turns, each preceded by the previous turn, if there is one.
fn turns_with_previous(body: &Value) -> impl Iterator<Item = (Option<&Value>, &Value)> {
    let contents = array_field(body, "contents");
    std::iter::once(None)
        .chain(contents.iter().map(Some))
        .zip(contents)
}

pub(super) fn check_calls_after_user(body: &Value, _: &RequestInfo) -> Verdict {
    for (before, content) in turns_with_previous(body) {
        if count_calls(content) > 0 && before.is_none_or(is_model_turn) {
            return Err(Problem::new(
                "Please ensure that function call turn comes immediately after a user turn or after a function response \
                 turn.",
            ));
        }
    }
    Ok(())
}

pub(super) fn check_responses_after_calls(body: &Value, _: &RequestInfo) -> Verdict {
    for (before, content) in turns_with_previous(body) {
        if count_responses(content) > 0 && before.is_none_or(|before| count_calls(before) == 0) {
            return Err(Problem::new(
                "Please ensure that function response turn comes immediately after a function call turn.",
            ));
        }
    }
    Ok(())
}

pub(super) fn check_response_count(body: &Value, _: &RequestInfo) -> Verdict {
    for (before, content) in turns_with_previous(body) {
        let asked = before.map_or(0, count_calls);
        if asked > 0 && count_responses(content) != asked {
            return Err(Problem::new(
                "Please ensure that the number of function response parts is equal to the number of function call parts \
                 of the function call turn.",
            ));
        }
    }
    Ok(())
}

pub(super) fn check_ends_with_user(body: &Value, _: &RequestInfo) -> Verdict {
    let contents = array_field(body, "contents");
    match contents {
        [only] if is_model_turn(only) => Err(Problem::new(
            "Please ensure that single turn requests end with a user role or the role field is empty.",
        )),
        [.., last] if is_model_turn(last) => Err(Problem::new(
            "Please ensure that multiturn requests ends with a user role or a function response.",
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_signatures(body: &Value, info: &RequestInfo) -> Verdict {
    if !info
        .model_from_path
        .as_deref()
        .is_some_and(|model| model.starts_with("gemini-3"))
    {
        return Ok(());
    }
    let contents = array_field(body, "contents");
    // A user message begins a turn; function responses continue it.
    let start = contents
        .iter()
        .rposition(|content| !is_model_turn(content) && count_responses(content) == 0)
        .unwrap_or(0);
    for (at, content) in contents.iter().enumerate().skip(start) {
        let Some(first) = array_field(content, "parts")
            .iter()
            .find(|part| get_field(part, "functionCall").is_some())
        else {
            continue;
        };
        if get_field(first, "thoughtSignature")
            .and_then(Value::as_str)
            .is_none_or(str::is_empty)
        {
            let name = get_field(first, "functionCall")
                .and_then(|call| get_field(call, "name"))
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
