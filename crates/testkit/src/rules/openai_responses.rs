//! Rules of `OpenAI` Responses.

use haft_types::Api;
use serde_json::Value;

use super::{RequestInfo, Rule, common::Verdict};

mod calls;
mod items;
mod settings;
mod tools;

const REFERENCE: &str = "platform.openai.com/docs: API reference, Create a model response";
const FUNCTIONS: &str = "platform.openai.com/docs: Function calling";
const REASONING: &str = "platform.openai.com/docs: Reasoning models";
const STATE: &str = "platform.openai.com/docs: Conversation state";
const STRUCTURED: &str = "platform.openai.com/docs: Structured outputs";
const MIGRATION: &str = "platform.openai.com/docs: Migrate to the Responses API";

const fn rule(
    id: &'static str,
    source: &'static str,
    statement: &'static str,
    check: fn(&Value, &RequestInfo) -> Verdict,
) -> Rule {
    Rule {
        id,
        api: Api::OpenaiResponses,
        statement,
        source,
        check,
    }
}

pub(super) static RULES: &[Rule] = &[
    rule(
        "model-missing",
        REFERENCE,
        "`model` is required, unless a stored prompt names it.",
        settings::check_model,
    ),
    rule(
        "moved-field",
        MIGRATION,
        "Fields of Chat Completions have their new names.",
        settings::check_moved_fields,
    ),
    rule(
        "unknown-field",
        REFERENCE,
        "The request contains only fields that the reference lists.",
        settings::check_known_fields,
    ),
    rule(
        "input-missing",
        REFERENCE,
        "There is input, or a stored prompt, response or conversation to continue from.",
        settings::check_input,
    ),
    rule(
        "include",
        REFERENCE,
        "`include` contains only values that the reference lists.",
        settings::check_include,
    ),
    rule(
        "max-output-tokens",
        REFERENCE,
        "`max_output_tokens` is 16 or more.",
        settings::check_max_output_tokens,
    ),
    rule(
        "temperature-range",
        REFERENCE,
        "The temperature is from 0 to 2.",
        settings::check_temperature_bounds,
    ),
    rule(
        "temperature-reasoning",
        REASONING,
        "Reasoning models take no temperature.",
        settings::check_temperature,
    ),
    rule(
        "reasoning-plain",
        REASONING,
        "Models that do not reason take no reasoning effort.",
        settings::check_effort,
    ),
    rule(
        "stream-options-alone",
        REFERENCE,
        "`stream_options` needs `stream`.",
        settings::check_stream_options_allowed,
    ),
    rule(
        "previous-id",
        STATE,
        "The id of a previous response begins with `resp`.",
        settings::check_previous_id,
    ),
    rule(
        "text-format",
        STRUCTURED,
        "A text format of type `json_schema` has a name and a schema.",
        settings::check_text_format,
    ),
    rule(
        "json-mode-word",
        STRUCTURED,
        "With a text format of type `json_object`, some input message contains the word JSON.",
        settings::check_json_mentioned,
    ),
    rule(
        "item-type",
        REFERENCE,
        "An input item's type is one that the reference lists.",
        items::check_known_type,
    ),
    rule(
        "item-field",
        REFERENCE,
        "An input item contains only fields that its type allows.",
        items::check_known_fields,
    ),
    rule(
        "item-id",
        REFERENCE,
        "An item's id begins with the prefix of its type.",
        items::check_id_prefix,
    ),
    rule(
        "item-repeated",
        STATE,
        "No item is sent twice.",
        items::check_ids_unique,
    ),
    rule(
        "message-role",
        REFERENCE,
        "A message's role is one that the reference lists.",
        items::check_role,
    ),
    rule(
        "content-type",
        REFERENCE,
        "An assistant message contains output parts, every other message input parts.",
        items::check_content_type,
    ),
    rule(
        "call-arguments",
        FUNCTIONS,
        "A call's arguments are text, not an object.",
        calls::check_arguments,
    ),
    rule(
        "call-id-length",
        REFERENCE,
        "A call's id is at most 64 characters.",
        calls::check_id_length,
    ),
    rule(
        "call-id-repeated",
        FUNCTIONS,
        "A call has one id and one output.",
        calls::check_ids_unique,
    ),
    rule(
        "call-unanswered",
        FUNCTIONS,
        "Every call in the input has its output in the input.",
        calls::check_every_call_answered,
    ),
    rule(
        "output-unmatched",
        FUNCTIONS,
        "Every output answers a call of the input or of the stored response before it.",
        calls::check_every_output_has_call,
    ),
    rule(
        "reasoning-unencrypted",
        REASONING,
        "With `store` false a reasoning item is sent back with its encrypted content.",
        items::check_reasoning_encrypted,
    ),
    rule(
        "reasoning-alone",
        REASONING,
        "A reasoning item is followed by the output item it led to.",
        items::check_reasoning_followed,
    ),
    rule(
        "tool-flat",
        MIGRATION,
        "A function's definition is in the tool itself, not under `function`.",
        tools::check_function_not_nested,
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
        "Functions are strict unless they set `\"strict\": false`: every object is closed and requires every property.",
        tools::check_strict_functions,
    ),
    rule(
        "tool-choice-alone",
        REFERENCE,
        "A forced tool choice needs `tools`.",
        tools::check_choice_has_tools,
    ),
    rule(
        "tool-choice-unknown",
        REFERENCE,
        "A forced function is among the tools.",
        tools::check_choice_known,
    ),
];
