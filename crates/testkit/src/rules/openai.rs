//! Helpers shared by the rules of Chat Completions and Responses: the error shape, the model
//! families, and the checks of function schemas.

use serde_json::{Value, json};

use super::common::{Problem, Verdict, array_field, is_plain_name, string_field};

mod schema;

pub(super) use schema::{check_function_schema, check_strict_schema};

/// Builds the error body of both OpenAI APIs.
pub(super) fn error_body(problem: &Problem) -> Value {
    json!({
        "error": {
            "message": problem.message,
            "type": "invalid_request_error",
            "param": problem.param,
            "code": problem.code,
        }
    })
}

/// True for a model that always reasons (`o1`, `o3`, `o4`, `gpt-5` and later). Such a model rejects
/// `max_tokens`.
pub(super) fn is_reasoning_model(model: &str) -> bool {
    let letter_o = ["o1", "o3", "o4"]
        .iter()
        .any(|family| is_in_family(model, family));
    letter_o || (model.starts_with("gpt-5") && !model.contains("-chat"))
}

/// True for a model that rejects a temperature. GPT models from 5.1 on accept one if the effort is
/// `none` or absent.
pub(super) fn has_fixed_temperature(model: &str, effort: Option<&str>) -> bool {
    let may_not_reason =
        model.starts_with("gpt-5.") && effort.is_none_or(|effort| effort == "none");
    is_reasoning_model(model) && !may_not_reason
}

/// True for a model that is known never to reason.
pub(super) fn is_non_reasoning_model(model: &str) -> bool {
    ["gpt-3.5", "gpt-4"]
        .iter()
        .any(|family| model.starts_with(family))
}

fn is_in_family(model: &str, family: &str) -> bool {
    model
        .strip_prefix(family)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Returns the name of a value's JSON type, as the service writes it.
pub(super) fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

pub(super) fn missing_parameter_problem(param: &str) -> Problem {
    Problem::new(format!("Missing required parameter: '{param}'."))
        .param(param)
        .code("missing_required_parameter")
}

pub(super) fn unknown_parameter_problem(param: &str) -> Problem {
    Problem::new(format!("Unknown parameter: '{param}'."))
        .param(param)
        .code("unknown_parameter")
}

pub(super) fn wrong_type_problem(param: &str, expected: &str, found: &Value) -> Problem {
    let message = format!(
        "Invalid type for '{param}': expected {expected}, but got {} instead.",
        json_type(found)
    );
    Problem::new(message).param(param).code("invalid_type")
}

pub(super) fn empty_array_problem(param: &str) -> Problem {
    let message =
        "empty array. Expected an array with minimum length 1, but got an empty array instead.";
    Problem::new(format!("Invalid '{param}': {message}"))
        .param(param)
        .code("empty_array")
}

pub(super) fn string_too_long_problem(param: &str, max_len: usize, found: usize) -> Problem {
    let message = format!(
        "Invalid '{param}': string too long. Expected a string with maximum length {max_len}, but got a string with \
         length {found} instead."
    );
    Problem::new(message)
        .param(param)
        .code("string_above_max_length")
}

/// Returns the service's error for a value that is not one of `supported`.
pub(super) fn unsupported_value_problem(param: &str, found: &str, supported: &[&str]) -> Problem {
    let supported = super::common::format_quoted_list(supported, "and", ",");
    let message = format!("Invalid value: '{found}'. Supported values are: {supported}.");
    Problem::new(message).param(param).code("invalid_value")
}

/// Checks that a function's name consists of 1 to 64 letters, digits, `_` and `-`.
pub(super) fn check_function_name(name: &str, param: &str) -> Verdict {
    const MAX_LEN: usize = 64;
    if name.chars().count() > MAX_LEN {
        return Err(string_too_long_problem(
            param,
            MAX_LEN,
            name.chars().count(),
        ));
    }
    if !is_plain_name(name, MAX_LEN) {
        let message = format!(
            "Invalid '{param}': string does not match pattern. Expected a string that matches the pattern \
             '^[a-zA-Z0-9_-]+$'."
        );
        return Err(Problem::new(message).param(param).code("invalid_value"));
    }
    Ok(())
}

/// Checks that the temperature is a number from 0 to 2.
pub(super) fn check_temperature_range(body: &Value) -> Verdict {
    let Some(found) = body.get("temperature").and_then(Value::as_f64) else {
        return Ok(());
    };
    let (edge, sign, bound, code) = match found {
        found if found > 2.0 => ("above maximum", "<=", 2, "decimal_above_max_value"),
        found if found < 0.0 => ("below minimum", ">=", 0, "decimal_below_min_value"),
        _ => return Ok(()),
    };
    let message = format!(
        "Invalid 'temperature': decimal {edge} value. Expected a value {sign} {bound}, but got {found} instead."
    );
    Err(Problem::new(message).param("temperature").code(code))
}

/// Checks that `stream_options` is given only if `stream` is true.
pub(super) fn check_stream_options(body: &Value) -> Verdict {
    let streaming = body.get("stream") == Some(&Value::Bool(true));
    if super::common::non_null_field(body, "stream_options").is_some() && !streaming {
        let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
        return Err(Problem::new(message).param("stream_options"));
    }
    Ok(())
}

/// True if any text in the messages contains the word JSON.
pub(super) fn mentions_json(messages: &[Value]) -> bool {
    let has = |text: &str| {
        text.as_bytes()
            .windows(4)
            .any(|word| word.eq_ignore_ascii_case(b"json"))
    };
    messages.iter().any(|message| {
        string_field(message, "content").is_some_and(has)
            || array_field(message, "content")
                .iter()
                .filter_map(|part| string_field(part, "text"))
                .any(has)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_of_models_are_told_apart() {
        for model in [
            "o1",
            "o3-mini",
            "o4-mini-2025-04-16",
            "gpt-5",
            "gpt-5-mini",
            "gpt-5.2",
        ] {
            assert!(is_reasoning_model(model), "{model}");
        }
        for model in [
            "gpt-4o",
            "gpt-4.1",
            "o100",
            "test-model",
            "gpt-5-chat-latest",
        ] {
            assert!(!is_reasoning_model(model), "{model}");
        }
        assert!(has_fixed_temperature("gpt-5", None));
        assert!(!has_fixed_temperature("gpt-5.2", None));
        assert!(!has_fixed_temperature("gpt-5.2", Some("none")));
        assert!(has_fixed_temperature("gpt-5.2", Some("high")));
    }
}
