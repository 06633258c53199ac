//! Rules about the request's top-level fields: required fields, limits, formats.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{
        Problem, Verdict, array_field, find_unknown_key, non_null_field, string_field, type_field,
    },
    openai::{
        check_stream_options, check_temperature_range, has_fixed_temperature,
        is_non_reasoning_model, mentions_json, missing_parameter_problem,
        unknown_parameter_problem, unsupported_value_problem, wrong_type_problem,
    },
};

const KNOWN_FIELDS: &[&str] = &[
    "access_programs",
    "background",
    "context_management",
    "conversation",
    "image",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "model",
    "moderation",
    "parallel_tool_calls",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "stream",
    "stream_options",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

/// The fields of Chat Completions that are named differently in Responses, each with its new name.
const MOVED_FIELDS: &[(&str, &str)] = &[
    ("messages", "input"),
    ("response_format", "text.format"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("reasoning_effort", "reasoning.effort"),
    ("verbosity", "text.verbosity"),
];

const INCLUDABLE: &[&str] = &[
    "file_search_call.results",
    "web_search_call.results",
    "web_search_call.action.sources",
    "message.input_image.image_url",
    "computer_call_output.output.image_url",
    "code_interpreter_call.outputs",
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
];

const MIN_OUTPUT_TOKENS: i64 = 16;

pub(super) fn check_model(body: &Value, _: &RequestInfo) -> Verdict {
    if string_field(body, "model").is_none() && non_null_field(body, "prompt").is_none() {
        return Err(missing_parameter_problem("model"));
    }
    Ok(())
}

pub(super) fn check_moved_fields(body: &Value, _: &RequestInfo) -> Verdict {
    match MOVED_FIELDS.iter().find(|(old, _)| body.get(old).is_some()) {
        Some((old, new)) => {
            let message = format!(
                "Unsupported parameter: '{old}'. In the Responses API, this parameter has moved to '{new}'. Try again \
                 with the new parameter. See the API documentation for more information: \
                 https://platform.openai.com/docs/api-reference/responses/create."
            );
            Err(Problem::new(message)
                .param(*old)
                .code("unsupported_parameter"))
        }
        None => Ok(()),
    }
}

pub(super) fn check_known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    match find_unknown_key(body, KNOWN_FIELDS)
        .filter(|key| !MOVED_FIELDS.iter().any(|(old, _)| old == key))
    {
        Some(key) => Err(unknown_parameter_problem(key)),
        None => Ok(()),
    }
}

pub(super) fn check_input(body: &Value, _: &RequestInfo) -> Verdict {
    match non_null_field(body, "input") {
        Some(Value::String(_) | Value::Array(_)) => Ok(()),
        Some(other) => Err(wrong_type_problem(
            "input",
            "one of a string or array of input items",
            other,
        )),
        None if ["previous_response_id", "prompt", "conversation"]
            .iter()
            .any(|key| non_null_field(body, key).is_some()) =>
        {
            Ok(())
        }
        None => {
            let message = "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' must be provided.";
            Err(Problem::new(message)
                .param("input")
                .code("missing_required_parameter"))
        }
    }
}

pub(super) fn check_include(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, value) in array_field(body, "include").iter().enumerate() {
        let found = value.as_str().unwrap_or_default();
        if !INCLUDABLE.contains(&found) {
            return Err(unsupported_value_problem(
                &format!("include[{at}]"),
                found,
                INCLUDABLE,
            ));
        }
    }
    Ok(())
}

pub(super) fn check_max_output_tokens(body: &Value, _: &RequestInfo) -> Verdict {
    match non_null_field(body, "max_output_tokens") {
        None => Ok(()),
        Some(limit) => match limit.as_i64() {
            Some(found) if found < MIN_OUTPUT_TOKENS => {
                let message = format!(
                    "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {MIN_OUTPUT_TOKENS}, but \
                     got {found} instead."
                );
                Err(Problem::new(message)
                    .param("max_output_tokens")
                    .code("integer_below_min_value"))
            }
            Some(_) => Ok(()),
            None => Err(wrong_type_problem("max_output_tokens", "an integer", limit)),
        },
    }
}

pub(super) fn check_temperature_bounds(body: &Value, _: &RequestInfo) -> Verdict {
    check_temperature_range(body)
}

pub(super) fn check_temperature(body: &Value, _: &RequestInfo) -> Verdict {
    let effort =
        non_null_field(body, "reasoning").and_then(|reasoning| string_field(reasoning, "effort"));
    let fixed =
        string_field(body, "model").is_some_and(|model| has_fixed_temperature(model, effort));
    if fixed && non_null_field(body, "temperature").is_some() {
        let message = "Unsupported parameter: 'temperature' is not supported with this model.";
        return Err(Problem::new(message).param("temperature"));
    }
    Ok(())
}

pub(super) fn check_effort(body: &Value, _: &RequestInfo) -> Verdict {
    let effort =
        non_null_field(body, "reasoning").and_then(|reasoning| non_null_field(reasoning, "effort"));
    if effort.is_some() && string_field(body, "model").is_some_and(is_non_reasoning_model) {
        let message = "Unsupported parameter: 'reasoning.effort' is not supported with this model.";
        return Err(Problem::new(message)
            .param("reasoning.effort")
            .code("unsupported_parameter"));
    }
    Ok(())
}

pub(super) fn check_stream_options_allowed(body: &Value, _: &RequestInfo) -> Verdict {
    check_stream_options(body)
}

pub(super) fn check_previous_id(body: &Value, _: &RequestInfo) -> Verdict {
    match string_field(body, "previous_response_id") {
        Some(id) if !id.starts_with("resp") => {
            let message = format!(
                "Invalid 'previous_response_id': '{id}'. Expected an ID that begins with 'resp'."
            );
            Err(Problem::new(message)
                .param("previous_response_id")
                .code("invalid_value"))
        }
        Some(_) | None => Ok(()),
    }
}

pub(super) fn check_text_format(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(format) = non_null_field(body, "text").and_then(|text| non_null_field(text, "format"))
    else {
        return Ok(());
    };
    match type_field(format) {
        "text" | "json_object" => Ok(()),
        "json_schema" => match ["name", "schema"]
            .iter()
            .find(|key| non_null_field(format, key).is_none())
        {
            Some(key) => Err(missing_parameter_problem(&format!("text.format.{key}"))),
            None => Ok(()),
        },
        "" => Err(missing_parameter_problem("text.format.type")),
        other => Err(unsupported_value_problem(
            "text.format.type",
            other,
            &["json_object", "json_schema", "text"],
        )),
    }
}

pub(super) fn check_json_mentioned(body: &Value, _: &RequestInfo) -> Verdict {
    let format = non_null_field(body, "text").and_then(|text| non_null_field(text, "format"));
    let json_mode = format.is_some_and(|format| type_field(format) == "json_object");
    let in_text = string_field(body, "input")
        .is_some_and(|input| input.to_ascii_lowercase().contains("json"));
    // A stored conversation may contain the word.
    let stored = non_null_field(body, "previous_response_id").is_some()
        || non_null_field(body, "conversation").is_some();
    if json_mode && !in_text && !stored && !mentions_json(array_field(body, "input")) {
        let message = "Response input messages must contain the word 'json' in some form to use 'text.format' of type \
                       'json_object'.";
        return Err(Problem::new(message).param("input"));
    }
    Ok(())
}
