//! Rules about the request's top-level fields: required fields, limits, formats.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, given, kind, list, text, unknown_key},
    openai::{
        check_stream_options, check_temperature_range, fixes_temperature, is_plain, missing,
        not_among, says_json, unknown, wrong_type,
    },
};

const KNOWN: &[&str] = &[
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

/// Fields of Chat Completions and their equivalents in Responses.
const MOVED: &[(&str, &str)] = &[
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

const LEAST_OUTPUT: i64 = 16;

pub(super) fn model(body: &Value, _: &RequestInfo) -> Verdict {
    if text(body, "model").is_none() && given(body, "prompt").is_none() {
        return Err(missing("model"));
    }
    Ok(())
}

pub(super) fn moved_fields(body: &Value, _: &RequestInfo) -> Verdict {
    match MOVED.iter().find(|(old, _)| body.get(old).is_some()) {
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

pub(super) fn known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    match unknown_key(body, KNOWN).filter(|key| !MOVED.iter().any(|(old, _)| old == key)) {
        Some(key) => Err(unknown(key)),
        None => Ok(()),
    }
}

pub(super) fn input(body: &Value, _: &RequestInfo) -> Verdict {
    match given(body, "input") {
        Some(Value::String(_) | Value::Array(_)) => Ok(()),
        Some(other) => Err(wrong_type(
            "input",
            "one of a string or array of input items",
            other,
        )),
        None if ["previous_response_id", "prompt", "conversation"]
            .iter()
            .any(|key| given(body, key).is_some()) =>
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

pub(super) fn include(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, value) in list(body, "include").iter().enumerate() {
        let found = value.as_str().unwrap_or_default();
        if !INCLUDABLE.contains(&found) {
            return Err(not_among(&format!("include[{at}]"), found, INCLUDABLE));
        }
    }
    Ok(())
}

pub(super) fn max_output_tokens(body: &Value, _: &RequestInfo) -> Verdict {
    match given(body, "max_output_tokens") {
        None => Ok(()),
        Some(limit) => match limit.as_i64() {
            Some(found) if found < LEAST_OUTPUT => {
                let message = format!(
                    "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}, but \
                     got {found} instead."
                );
                Err(Problem::new(message)
                    .param("max_output_tokens")
                    .code("integer_below_min_value"))
            }
            Some(_) => Ok(()),
            None => Err(wrong_type("max_output_tokens", "an integer", limit)),
        },
    }
}

pub(super) fn temperature_range(body: &Value, _: &RequestInfo) -> Verdict {
    check_temperature_range(body)
}

pub(super) fn temperature(body: &Value, _: &RequestInfo) -> Verdict {
    let effort = given(body, "reasoning").and_then(|reasoning| text(reasoning, "effort"));
    let fixed = text(body, "model").is_some_and(|model| fixes_temperature(model, effort));
    if fixed && given(body, "temperature").is_some() {
        let message = "Unsupported parameter: 'temperature' is not supported with this model.";
        return Err(Problem::new(message).param("temperature"));
    }
    Ok(())
}

pub(super) fn effort(body: &Value, _: &RequestInfo) -> Verdict {
    let effort = given(body, "reasoning").and_then(|reasoning| given(reasoning, "effort"));
    if effort.is_some() && text(body, "model").is_some_and(is_plain) {
        let message = "Unsupported parameter: 'reasoning.effort' is not supported with this model.";
        return Err(Problem::new(message)
            .param("reasoning.effort")
            .code("unsupported_parameter"));
    }
    Ok(())
}

pub(super) fn stream_options(body: &Value, _: &RequestInfo) -> Verdict {
    check_stream_options(body)
}

pub(super) fn previous_id(body: &Value, _: &RequestInfo) -> Verdict {
    match text(body, "previous_response_id") {
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

pub(super) fn format(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(format) = given(body, "text").and_then(|text| given(text, "format")) else {
        return Ok(());
    };
    match kind(format) {
        "text" | "json_object" => Ok(()),
        "json_schema" => match ["name", "schema"]
            .iter()
            .find(|key| given(format, key).is_none())
        {
            Some(key) => Err(missing(&format!("text.format.{key}"))),
            None => Ok(()),
        },
        "" => Err(missing("text.format.type")),
        other => Err(not_among(
            "text.format.type",
            other,
            &["json_object", "json_schema", "text"],
        )),
    }
}

pub(super) fn json_word(body: &Value, _: &RequestInfo) -> Verdict {
    let format = given(body, "text").and_then(|text| given(text, "format"));
    let json_mode = format.is_some_and(|format| kind(format) == "json_object");
    let in_text =
        text(body, "input").is_some_and(|input| input.to_ascii_lowercase().contains("json"));
    // A stored conversation may contain the word.
    let stored =
        given(body, "previous_response_id").is_some() || given(body, "conversation").is_some();
    if json_mode && !in_text && !stored && !says_json(list(body, "input")) {
        let message = "Response input messages must contain the word 'json' in some form to use 'text.format' of type \
                       'json_object'.";
        return Err(Problem::new(message).param("input"));
    }
    Ok(())
}
