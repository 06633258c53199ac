//! Rules of `OpenAI` Chat Completions.

use haft_types::Api;
use serde_json::Value;

use super::{RequestInfo, Rule, common::Verdict};

mod messages;
mod settings;
mod tools;

const REFERENCE: &str = "platform.openai.com/docs: API reference, Create chat completion";
const FUNCTIONS: &str = "platform.openai.com/docs: Function calling";
const REASONING: &str = "platform.openai.com/docs: Reasoning models";
const STRUCTURED: &str = "platform.openai.com/docs: Structured outputs";
const VISION: &str = "platform.openai.com/docs: Images and vision";

const fn rule(
    id: &'static str,
    source: &'static str,
    statement: &'static str,
    check: fn(&Value, &RequestInfo) -> Verdict,
) -> Rule {
    Rule {
        id,
        api: Api::OpenaiChat,
        statement,
        source,
        check,
    }
}

pub(super) static RULES: &[Rule] = &[
    rule(
        "model-missing",
        REFERENCE,
        "`model` is required.",
        settings::check_model,
    ),
    rule(
        "unknown-field",
        REFERENCE,
        "The request contains only fields that the reference lists.",
        settings::check_known_fields,
    ),
    rule(
        "messages-empty",
        REFERENCE,
        "`messages` contains at least one message.",
        settings::check_messages,
    ),
    rule(
        "message-role",
        REFERENCE,
        "A message's role is one that the reference lists.",
        messages::check_role,
    ),
    rule(
        "message-field",
        REFERENCE,
        "A message contains only fields that its role allows.",
        messages::check_known_fields,
    ),
    rule(
        "message-name",
        REFERENCE,
        "A participant's name has no spaces or special characters.",
        messages::check_name,
    ),
    rule(
        "content-missing",
        REFERENCE,
        "Every message has content, except an assistant message with calls or a refusal.",
        messages::check_content,
    ),
    rule(
        "content-part-type",
        REFERENCE,
        "A content part's type is one that the reference lists.",
        messages::check_part_type,
    ),
    rule(
        "content-part-field",
        REFERENCE,
        "A content part contains only fields that its type allows.",
        messages::check_part_fields,
    ),
    rule(
        "image-role",
        VISION,
        "Only user messages contain images.",
        messages::check_image_role,
    ),
    rule(
        "tool-calls-empty",
        REFERENCE,
        "`tool_calls` is not empty if it is present.",
        tools::check_calls_not_empty,
    ),
    rule(
        "tool-call-type",
        REFERENCE,
        "A call names its type: `function` or `custom`.",
        tools::check_call_type,
    ),
    rule(
        "tool-call-arguments",
        FUNCTIONS,
        "A call's arguments are text, not an object.",
        tools::check_call_arguments,
    ),
    rule(
        "tool-message-id",
        REFERENCE,
        "A tool message names the call it answers.",
        tools::check_result_id,
    ),
    rule(
        "tool-calls-unanswered",
        FUNCTIONS,
        "Every call is answered by a tool message before any other message follows.",
        tools::check_every_call_answered,
    ),
    rule(
        "tool-message-unmatched",
        FUNCTIONS,
        "A tool message answers a call of the assistant message before it.",
        tools::check_every_result_has_call,
    ),
    rule(
        "tools-empty",
        REFERENCE,
        "`tools` is not empty if it is present.",
        tools::check_not_empty,
    ),
    rule(
        "tools-too-many",
        REFERENCE,
        "At most 128 tools.",
        tools::check_max_tools,
    ),
    rule(
        "tool-nested",
        REFERENCE,
        "A function's definition is under `function`.",
        tools::check_function_nested,
    ),
    rule(
        "tool-name",
        REFERENCE,
        "A function's name is 1 to 64 letters, digits, `_` and `-`.",
        tools::check_name,
    ),
    rule(
        "tool-schema",
        FUNCTIONS,
        "Parameters are a schema of type `object` with `properties`, and arrays in it have `items`.",
        tools::check_schemas,
    ),
    rule(
        "tool-strict",
        STRUCTURED,
        "In a strict function every object is closed and requires every property.",
        tools::check_strict_functions,
    ),
    rule(
        "tool-choice-alone",
        REFERENCE,
        "`tool_choice` needs `tools`.",
        tools::check_choice_has_tools,
    ),
    rule(
        "parallel-alone",
        REFERENCE,
        "`parallel_tool_calls` needs `tools`.",
        tools::check_parallel_has_tools,
    ),
    rule(
        "max-tokens-reasoning",
        REASONING,
        "Reasoning models take `max_completion_tokens`, not `max_tokens`.",
        settings::check_max_tokens,
    ),
    rule(
        "temperature-reasoning",
        REASONING,
        "Reasoning models take only temperature 1.",
        settings::check_temperature,
    ),
    rule(
        "temperature-range",
        REFERENCE,
        "The temperature is from 0 to 2.",
        settings::check_temperature_bounds,
    ),
    rule(
        "stream-options-alone",
        REFERENCE,
        "`stream_options` needs `stream`.",
        settings::check_stream_options_allowed,
    ),
    rule(
        "response-format",
        STRUCTURED,
        "A response format of type `json_schema` contains its schema.",
        settings::check_response_format,
    ),
    rule(
        "json-mode-word",
        STRUCTURED,
        "With a response format of type `json_object`, some message contains the word JSON.",
        settings::check_json_mentioned,
    ),
];
