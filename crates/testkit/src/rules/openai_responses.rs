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
        settings::model,
    ),
    rule(
        "moved-field",
        MIGRATION,
        "Fields of Chat Completions go by their new names.",
        settings::moved_fields,
    ),
    rule(
        "unknown-field",
        REFERENCE,
        "The request holds no field the reference does not name.",
        settings::known_fields,
    ),
    rule(
        "input-missing",
        REFERENCE,
        "There is input, or a stored prompt, response or conversation to go on from.",
        settings::input,
    ),
    rule(
        "include",
        REFERENCE,
        "`include` names only what the reference lists.",
        settings::include,
    ),
    rule(
        "max-output-tokens",
        REFERENCE,
        "`max_output_tokens` is 16 or more.",
        settings::max_output_tokens,
    ),
    rule(
        "temperature-range",
        REFERENCE,
        "The temperature is from 0 to 2.",
        settings::temperature_range,
    ),
    rule(
        "temperature-reasoning",
        REASONING,
        "Reasoning models take no temperature.",
        settings::temperature,
    ),
    rule(
        "reasoning-plain",
        REASONING,
        "Models that do not reason take no reasoning effort.",
        settings::effort,
    ),
    rule(
        "stream-options-alone",
        REFERENCE,
        "`stream_options` needs `stream`.",
        settings::stream_options,
    ),
    rule(
        "previous-id",
        STATE,
        "The id of a previous response begins with `resp`.",
        settings::previous_id,
    ),
    rule(
        "text-format",
        STRUCTURED,
        "A text format of type `json_schema` has a name and a schema.",
        settings::format,
    ),
    rule(
        "json-mode-word",
        STRUCTURED,
        "With a text format of type `json_object` some input message has the word JSON.",
        settings::json_word,
    ),
    rule(
        "item-type",
        REFERENCE,
        "An input item's type is one the reference names.",
        items::known_type,
    ),
    rule(
        "item-field",
        REFERENCE,
        "An input item holds no field its type does not have.",
        items::known_fields,
    ),
    rule(
        "item-id",
        REFERENCE,
        "An item's id begins with the letters of its type.",
        items::id_prefix,
    ),
    rule(
        "item-repeated",
        STATE,
        "No item is sent twice.",
        items::ids_differ,
    ),
    rule(
        "message-role",
        REFERENCE,
        "A message's role is one the reference names.",
        items::role,
    ),
    rule(
        "content-type",
        REFERENCE,
        "An assistant message holds output parts, every other message input parts.",
        items::content_type,
    ),
    rule(
        "call-arguments",
        FUNCTIONS,
        "A call's arguments are text, not an object.",
        calls::arguments,
    ),
    rule(
        "call-id-length",
        REFERENCE,
        "A call's id is at most 64 characters.",
        calls::id_length,
    ),
    rule(
        "call-id-repeated",
        FUNCTIONS,
        "A call has one id and one output.",
        calls::ids_differ,
    ),
    rule(
        "call-unanswered",
        FUNCTIONS,
        "Every call in the input has its output in the input.",
        calls::every_call_answered,
    ),
    rule(
        "output-unmatched",
        FUNCTIONS,
        "Every output answers a call of the input or of the stored response before it.",
        calls::every_output_called,
    ),
    rule(
        "reasoning-unencrypted",
        REASONING,
        "With `store` false a reasoning item is sent back with its encrypted content.",
        items::reasoning_encrypted,
    ),
    rule(
        "reasoning-alone",
        REASONING,
        "A reasoning item is followed by the output item it led to.",
        items::reasoning_followed,
    ),
    rule(
        "tool-flat",
        MIGRATION,
        "A function's definition stands in the tool itself, not under `function`.",
        tools::flat,
    ),
    rule(
        "tool-name",
        REFERENCE,
        "A function's name is 1 to 64 letters, digits, `_` and `-`.",
        tools::name,
    ),
    rule(
        "tool-schema",
        FUNCTIONS,
        "Parameters are a schema of type `object` with `properties`, and arrays in it have `items`.",
        tools::schema,
    ),
    rule(
        "tool-strict",
        STRUCTURED,
        "Functions are strict unless they say `\"strict\": false`: every object is closed and requires every property.",
        tools::strict,
    ),
    rule(
        "tool-choice-alone",
        REFERENCE,
        "A forced tool choice needs `tools`.",
        tools::choice_needs_tools,
    ),
    rule(
        "tool-choice-unknown",
        REFERENCE,
        "A forced function is among the tools.",
        tools::choice_is_known,
    ),
];
