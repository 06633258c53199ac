//! Rules about the request's top-level fields: required fields, limits, formats.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, array_field, non_null_field, string_field, type_field},
    openai::{
        check_stream_options, check_temperature_range, empty_array_problem, has_fixed_temperature,
        is_reasoning_model, mentions_json, missing_parameter_problem, unsupported_value_problem,
        wrong_type_problem,
    },
};

const KNOWN_FIELDS: &[&str] = &[
    "messages",
    "model",
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "modalities",
    "moderation",
    "n",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "response_format",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "user",
    "verbosity",
    "web_search_options",
];

pub(super) fn check_model(body: &Value, _: &RequestInfo) -> Verdict {
    match string_field(body, "model") {
        Some(_) => Ok(()),
        None => Err(Problem::new("you must provide a model parameter")),
    }
}

pub(super) fn check_known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    let keys = body
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(String::as_str);
    let unknown: Vec<&str> = keys.filter(|key| !KNOWN_FIELDS.contains(key)).collect();
    match unknown.as_slice() {
        [] => Ok(()),
        [one] => Err(Problem::new(format!(
            "Unrecognized request argument supplied: {one}"
        ))),
        several => Err(Problem::new(format!(
            "Unrecognized request arguments supplied: {}",
            several.join(", ")
        ))),
    }
}

pub(super) fn check_messages(body: &Value, _: &RequestInfo) -> Verdict {
    match body.get("messages") {
        None => Err(missing_parameter_problem("messages")),
        Some(Value::Array(messages)) if messages.is_empty() => Err(empty_array_problem("messages")),
        Some(Value::Array(_)) => Ok(()),
        Some(other) => Err(wrong_type_problem("messages", "an array of objects", other)),
    }
}

pub(super) fn check_max_tokens(body: &Value, _: &RequestInfo) -> Verdict {
    if non_null_field(body, "max_tokens").is_some()
        && string_field(body, "model").is_some_and(is_reasoning_model)
    {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                       'max_completion_tokens' instead.";
        return Err(Problem::new(message)
            .param("max_tokens")
            .code("unsupported_parameter"));
    }
    Ok(())
}

pub(super) fn check_temperature(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(found) = body.get("temperature").and_then(Value::as_f64) else {
        return Ok(());
    };
    let fixed = string_field(body, "model")
        .is_some_and(|model| has_fixed_temperature(model, string_field(body, "reasoning_effort")));
    if fixed && (found - 1.0).abs() > f64::EPSILON {
        let message = format!(
            "Unsupported value: 'temperature' does not support {found} with this model. Only the default (1) value is \
             supported."
        );
        return Err(Problem::new(message)
            .param("temperature")
            .code("unsupported_value"));
    }
    Ok(())
}

pub(super) fn check_temperature_bounds(body: &Value, _: &RequestInfo) -> Verdict {
    check_temperature_range(body)
}

pub(super) fn check_stream_options_allowed(body: &Value, _: &RequestInfo) -> Verdict {
    check_stream_options(body)
}

pub(super) fn check_response_format(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(format) = non_null_field(body, "response_format") else {
        return Ok(());
    };
    match type_field(format) {
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            let Some(schema) = non_null_field(format, "json_schema") else {
                return Err(missing_parameter_problem("response_format.json_schema"));
            };
            match string_field(schema, "name") {
                Some(_) => Ok(()),
                None => Err(missing_parameter_problem(
                    "response_format.json_schema.name",
                )),
            }
        }
        "" => Err(missing_parameter_problem("response_format.type")),
        other => Err(unsupported_value_problem(
            "response_format.type",
            other,
            &["json_object", "json_schema", "text"],
        )),
    }
}

pub(super) fn check_json_mentioned(body: &Value, _: &RequestInfo) -> Verdict {
    let json_mode = non_null_field(body, "response_format")
        .is_some_and(|format| type_field(format) == "json_object");
    if json_mode && !mentions_json(array_field(body, "messages")) {
        let message = "'messages' must contain the word 'json' in some form, to use 'response_format' of type \
                       'json_object'.";
        return Err(Problem::new(message).param("messages"));
    }
    Ok(())
}
