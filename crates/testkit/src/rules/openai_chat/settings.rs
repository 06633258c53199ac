//! Rules about the request's top-level fields: required fields, limits, formats.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, given, kind, list, text},
    openai::{
        check_stream_options, check_temperature_range, empty_array, fixes_temperature,
        is_reasoning, missing, not_among, says_json, wrong_type,
    },
};

const KNOWN: &[&str] = &[
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

pub(super) fn model(body: &Value, _: &RequestInfo) -> Verdict {
    match text(body, "model") {
        Some(_) => Ok(()),
        None => Err(Problem::new("you must provide a model parameter")),
    }
}

pub(super) fn known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    let keys = body
        .as_object()
        .into_iter()
        .flat_map(serde_json::Map::keys)
        .map(String::as_str);
    let unknown: Vec<&str> = keys.filter(|key| !KNOWN.contains(key)).collect();
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

pub(super) fn messages(body: &Value, _: &RequestInfo) -> Verdict {
    match body.get("messages") {
        None => Err(missing("messages")),
        Some(Value::Array(messages)) if messages.is_empty() => Err(empty_array("messages")),
        Some(Value::Array(_)) => Ok(()),
        Some(other) => Err(wrong_type("messages", "an array of objects", other)),
    }
}

pub(super) fn max_tokens(body: &Value, _: &RequestInfo) -> Verdict {
    if given(body, "max_tokens").is_some() && text(body, "model").is_some_and(is_reasoning) {
        let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
                       'max_completion_tokens' instead.";
        return Err(Problem::new(message)
            .param("max_tokens")
            .code("unsupported_parameter"));
    }
    Ok(())
}

pub(super) fn temperature(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(found) = body.get("temperature").and_then(Value::as_f64) else {
        return Ok(());
    };
    let fixed = text(body, "model")
        .is_some_and(|model| fixes_temperature(model, text(body, "reasoning_effort")));
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

pub(super) fn temperature_range(body: &Value, _: &RequestInfo) -> Verdict {
    check_temperature_range(body)
}

pub(super) fn stream_options(body: &Value, _: &RequestInfo) -> Verdict {
    check_stream_options(body)
}

pub(super) fn format(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(format) = given(body, "response_format") else {
        return Ok(());
    };
    match kind(format) {
        "text" | "json_object" => Ok(()),
        "json_schema" => {
            let Some(schema) = given(format, "json_schema") else {
                return Err(missing("response_format.json_schema"));
            };
            match text(schema, "name") {
                Some(_) => Ok(()),
                None => Err(missing("response_format.json_schema.name")),
            }
        }
        "" => Err(missing("response_format.type")),
        other => Err(not_among(
            "response_format.type",
            other,
            &["json_object", "json_schema", "text"],
        )),
    }
}

pub(super) fn json_word(body: &Value, _: &RequestInfo) -> Verdict {
    let json_mode =
        given(body, "response_format").is_some_and(|format| kind(format) == "json_object");
    if json_mode && !says_json(list(body, "messages")) {
        let message = "'messages' must contain the word 'json' in some form, to use 'response_format' of type \
                       'json_object'.";
        return Err(Problem::new(message).param("messages"));
    }
    Ok(())
}
