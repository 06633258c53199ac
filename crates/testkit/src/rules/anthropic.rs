//! Rules of Anthropic Messages.
//!
//! The service joins consecutive messages of one role into one turn. Rules about the relation of
//! calls and results therefore check joined turns (`turns`); rules about one block check block by
//! block.

use haft_types::Api;
use serde_json::{Value, json};

use super::{
    RequestInfo, Rule,
    common::{Problem, Verdict},
};

mod blocks;
mod caching;
mod fields;
mod settings;
mod tools;
mod turns;

const MESSAGES: &str = "platform.claude.com/docs: Messages API reference";
const ERRORS: &str = "platform.claude.com/docs: Errors";
const VERSIONING: &str = "platform.claude.com/docs: API versioning";
const TOOL_USE: &str = "platform.claude.com/docs: Handle tool calls";
const DEFINE_TOOLS: &str = "platform.claude.com/docs: Define tools";
const CACHING: &str = "platform.claude.com/docs: Prompt caching";
const THINKING: &str = "platform.claude.com/docs: Extended thinking";
const SYSTEM: &str = "platform.claude.com/docs: Mid-conversation system messages";
const VISION: &str = "platform.claude.com/docs: Vision";

const fn rule(
    id: &'static str,
    source: &'static str,
    statement: &'static str,
    check: fn(&Value, &RequestInfo) -> Verdict,
) -> Rule {
    Rule {
        id,
        api: Api::Anthropic,
        statement,
        source,
        check,
    }
}

pub(super) static RULES: &[Rule] = &[
    rule(
        "version-header",
        VERSIONING,
        "Every request carries the header `anthropic-version`.",
        settings::check_version_header,
    ),
    rule(
        "unknown-field",
        MESSAGES,
        "The request contains only fields that the reference lists.",
        fields::check_request_fields,
    ),
    rule(
        "beta-field",
        MESSAGES,
        "Fields in beta need the header `anthropic-beta`.",
        fields::check_beta_fields,
    ),
    rule(
        "model-missing",
        MESSAGES,
        "`model` is required.",
        settings::check_model,
    ),
    rule(
        "max-tokens",
        MESSAGES,
        "`max_tokens` is required and a number of 0 (fill the cache only) or more.",
        settings::check_max_tokens,
    ),
    rule(
        "messages-empty",
        MESSAGES,
        "`messages` contains at least one message.",
        settings::check_messages,
    ),
    rule(
        "message-role",
        MESSAGES,
        "A message's role is `user`, `assistant` or `system`.",
        fields::check_role,
    ),
    rule(
        "system-role",
        SYSTEM,
        "Older models take no `system` role inside `messages`; the system prompt is a field of the request.",
        turns::check_system_role,
    ),
    rule(
        "system-placement",
        SYSTEM,
        "A `system` message comes directly after a user turn.",
        turns::check_system_placement,
    ),
    rule(
        "first-message-role",
        MESSAGES,
        "The first message is a user message.",
        turns::check_first_role,
    ),
    rule(
        "message-field",
        MESSAGES,
        "A message contains only its role and content.",
        fields::check_message_fields,
    ),
    rule(
        "message-content-empty",
        ERRORS,
        "Only a final assistant message may have empty content.",
        blocks::check_content_not_empty,
    ),
    rule(
        "block-type",
        MESSAGES,
        "A content block's type is one that the reference lists.",
        blocks::check_known_type,
    ),
    rule(
        "block-field",
        MESSAGES,
        "A content block contains only fields that its type allows.",
        blocks::check_known_fields,
    ),
    rule(
        "block-role",
        TOOL_USE,
        "Calls and thinking are in assistant messages, tool results in user messages.",
        blocks::check_role,
    ),
    rule(
        "text-empty",
        ERRORS,
        "A text block is not empty.",
        blocks::check_text_not_empty,
    ),
    rule(
        "text-blank",
        ERRORS,
        "A text block contains more than white space.",
        blocks::check_text_not_blank,
    ),
    rule(
        "image-source",
        VISION,
        "An image in the request is base64 of type JPEG, PNG, GIF or WebP.",
        blocks::check_image_sources,
    ),
    rule(
        "cache-control-count",
        CACHING,
        "At most four cache marks in tools, system and messages together.",
        caching::check_mark_count,
    ),
    rule(
        "cache-control-on-thinking",
        CACHING,
        "Thinking blocks take no cache mark.",
        caching::check_no_mark_on_thinking,
    ),
    rule(
        "cache-control-ttl-order",
        CACHING,
        "Marks with a lifetime of an hour come before those with a lifetime of five minutes.",
        caching::check_ttl_order,
    ),
    rule(
        "tool-use-id",
        TOOL_USE,
        "A call's id is letters, digits, `_` and `-`.",
        tools::check_call_id,
    ),
    rule(
        "tool-use-input",
        TOOL_USE,
        "A call's input is an object.",
        tools::check_call_input,
    ),
    rule(
        "tool-use-repeated",
        TOOL_USE,
        "No two calls have the same id.",
        tools::check_call_ids_unique,
    ),
    rule(
        "tool-use-unanswered",
        TOOL_USE,
        "Every call of an assistant turn has its result in the user turn that follows.",
        turns::check_every_call_answered,
    ),
    rule(
        "tool-result-unmatched",
        TOOL_USE,
        "Every result answers a call of the turn before.",
        turns::check_every_result_has_call,
    ),
    rule(
        "tool-result-not-first",
        TOOL_USE,
        "Results come before everything else in their user turn.",
        turns::check_results_first,
    ),
    rule(
        "tool-result-repeated",
        TOOL_USE,
        "A call has one result.",
        turns::check_result_ids_unique,
    ),
    rule(
        "tool-result-error-empty",
        TOOL_USE,
        "The result of a failed call has content.",
        tools::check_error_has_content,
    ),
    rule(
        "tool-field",
        DEFINE_TOOLS,
        "A tool contains only fields that the reference lists.",
        tools::check_known_fields,
    ),
    rule(
        "tool-name",
        DEFINE_TOOLS,
        "A tool's name is 1 to 128 letters, digits, `_` and `-`.",
        tools::check_name,
    ),
    rule(
        "tool-name-repeated",
        DEFINE_TOOLS,
        "No two tools have the same name.",
        tools::check_names_unique,
    ),
    rule(
        "tool-schema",
        DEFINE_TOOLS,
        "`input_schema` is required and of type `object`.",
        tools::check_schema,
    ),
    rule(
        "tool-choice-alone",
        DEFINE_TOOLS,
        "`tool_choice` needs `tools`.",
        tools::check_choice_has_tools,
    ),
    rule(
        "thinking-budget",
        THINKING,
        "`thinking.budget_tokens` is 1,024 or more.",
        settings::check_thinking_budget,
    ),
    rule(
        "thinking-budget-above-max",
        THINKING,
        "`max_tokens` is above the thinking budget, unless thinking is interleaved with calls.",
        settings::check_budget_below_max_tokens,
    ),
    rule(
        "thinking-temperature",
        THINKING,
        "With thinking enabled the temperature is 1.",
        settings::check_thinking_temperature,
    ),
    rule(
        "thinking-tool-choice",
        THINKING,
        "With thinking enabled no tool use can be forced.",
        settings::check_thinking_tool_choice,
    ),
    rule(
        "thinking-signature",
        THINKING,
        "A thinking block is sent back with its signature.",
        blocks::check_signature,
    ),
    rule(
        "final-whitespace",
        ERRORS,
        "A final assistant message does not end in white space.",
        turns::check_no_trailing_space,
    ),
];

/// Builds the error body of the Messages API.
pub(super) fn error_body(problem: &Problem) -> Value {
    json!({
        "type": "error",
        "error": {"type": "invalid_request_error", "message": problem.message},
        "request_id": "req_scripted",
    })
}

/// Iterates over the blocks of all messages, each with the index of its message and its own index.
fn iter_blocks(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    use super::common::array_field;
    array_field(body, "messages")
        .iter()
        .enumerate()
        .flat_map(|(message, value)| {
            array_field(value, "content")
                .iter()
                .enumerate()
                .map(move |(block, value)| (message, block, value))
        })
}
