//! Rules of Gemini generateContent.
//!
//! The service parses JSON into a typed message. Every field may therefore be written in camel case
//! or snake case, and a field that its type doesn't have is rejected anywhere in the request.
//! Errors name fields in snake case.

use haft_types::Api;
use serde_json::{Value, json};

use super::{
    RequestInfo, Rule,
    common::{Problem, Verdict, Violation},
};

mod contents;
mod fields;
mod schema;
mod settings;
mod tools;
mod turns;

const REFERENCE: &str = "ai.google.dev/api: generateContent";
const CONTENT: &str = "ai.google.dev/api/caching: Content";
const TOOL: &str = "ai.google.dev/api/caching: Tool";
const SCHEMA: &str = "ai.google.dev/api/caching: Schema";
const FUNCTIONS: &str = "ai.google.dev/gemini-api/docs: Function calling";
const SIGNATURES: &str = "ai.google.dev/gemini-api/docs: Thought signatures";
const THINKING: &str = "ai.google.dev/gemini-api/docs: Thinking";

const fn rule(
    id: &'static str,
    source: &'static str,
    statement: &'static str,
    check: fn(&Value, &RequestInfo) -> Verdict,
) -> Rule {
    Rule {
        id,
        api: Api::Gemini,
        statement,
        source,
        check,
    }
}

pub(super) static RULES: &[Rule] = &[
    rule(
        "unknown-field",
        REFERENCE,
        "An object contains only fields that its type allows.",
        fields::check_known_fields,
    ),
    rule(
        "schema-field",
        SCHEMA,
        "`parameters` uses only the supported subset of OpenAPI: no `$ref`, `$defs`, `additionalProperties`, `const`.",
        schema::check_known_fields,
    ),
    rule(
        "schema-type",
        SCHEMA,
        "A schema's type is one of the names in the reference, never a list.",
        schema::check_types,
    ),
    rule(
        "system-instruction",
        REFERENCE,
        "`systemInstruction` is content with parts.",
        settings::check_system_instruction,
    ),
    rule(
        "function-args",
        CONTENT,
        "A call's arguments are an object.",
        contents::check_call_args,
    ),
    rule(
        "function-response-object",
        CONTENT,
        "A call's response is an object.",
        contents::check_response_is_object,
    ),
    rule(
        "inline-data",
        CONTENT,
        "Inline data is base64.",
        contents::check_inline_data,
    ),
    rule(
        "contents-missing",
        REFERENCE,
        "`contents` contains at least one turn.",
        settings::check_contents,
    ),
    rule(
        "role",
        CONTENT,
        "A turn's role is `user` or `model`.",
        contents::check_role,
    ),
    rule(
        "parts-empty",
        CONTENT,
        "A turn has at least one part.",
        contents::check_parts_not_empty,
    ),
    rule(
        "part-empty",
        CONTENT,
        "A part contains text, data, a call or a response.",
        contents::check_part_has_data,
    ),
    rule(
        "inline-data-type",
        CONTENT,
        "Inline data names its MIME type.",
        contents::check_mime_type,
    ),
    rule(
        "function-response-name",
        CONTENT,
        "A response names its function.",
        contents::check_response_name,
    ),
    rule(
        "function-call-turn",
        FUNCTIONS,
        "A turn with calls comes directly after a user turn or a turn of responses.",
        turns::check_calls_after_user,
    ),
    rule(
        "function-response-turn",
        FUNCTIONS,
        "A turn of responses comes directly after the turn with the calls.",
        turns::check_responses_after_calls,
    ),
    rule(
        "function-response-count",
        FUNCTIONS,
        "A turn of responses has one response for each call of the previous turn.",
        turns::check_response_count,
    ),
    rule(
        "last-turn",
        FUNCTIONS,
        "The last turn is a user turn or a turn of responses.",
        turns::check_ends_with_user,
    ),
    rule(
        "thought-signature",
        SIGNATURES,
        "Gemini 3: the first call of every step since the last user message has its thought signature.",
        turns::check_signatures,
    ),
    rule(
        "function-name",
        TOOL,
        "A function's name begins with a letter or `_` and is at most 128 characters long.",
        tools::check_name,
    ),
    rule(
        "function-repeated",
        TOOL,
        "No two functions have the same name.",
        tools::check_names_unique,
    ),
    rule(
        "function-parameters",
        TOOL,
        "A function has `parameters` or `parametersJsonSchema`, not both.",
        tools::check_single_schema,
    ),
    rule(
        "schema-items",
        SCHEMA,
        "An array's schema has `items`.",
        schema::check_items,
    ),
    rule(
        "schema-enum",
        SCHEMA,
        "Only text has an enumeration of values.",
        schema::check_enums,
    ),
    rule(
        "schema-required",
        SCHEMA,
        "A required property is defined.",
        schema::check_required,
    ),
    rule(
        "function-calling-config",
        TOOL,
        "Forced calling needs function declarations.",
        tools::check_config_has_functions,
    ),
    rule(
        "allowed-functions",
        TOOL,
        "Allowed functions are listed only if calling is forced.",
        tools::check_allowed_names,
    ),
    rule(
        "max-output-tokens",
        REFERENCE,
        "`maxOutputTokens` is above zero.",
        settings::check_max_output_tokens,
    ),
    rule(
        "temperature-range",
        REFERENCE,
        "The temperature is from 0 to 2.",
        settings::check_temperature,
    ),
    rule(
        "thinking-both",
        THINKING,
        "A thinking budget or a thinking level, not both.",
        settings::check_thinking,
    ),
];

/// Builds the error body of Google's APIs.
pub(super) fn error_body(problem: &Problem) -> Value {
    let mut error =
        json!({"code": problem.status, "message": problem.message, "status": "INVALID_ARGUMENT"});
    if !problem.violations.is_empty() {
        let violations: Vec<Value> = problem.violations.iter().map(violation_body).collect();
        let kind = "type.googleapis.com/google.rpc.BadRequest";
        error["details"] = json!([{"@type": kind, "fieldViolations": violations}]);
    }
    json!({ "error": error })
}

fn violation_body(violation: &Violation) -> Value {
    if violation.field.is_empty() {
        return json!({"description": violation.description});
    }
    json!({"field": violation.field, "description": violation.description})
}

/// Returns an error if there are any violations.
fn reject_violations(violations: Vec<Violation>) -> Verdict {
    if violations.is_empty() {
        return Ok(());
    }
    let lines: Vec<&str> = violations
        .iter()
        .map(|violation| violation.description.as_str())
        .collect();
    let message = lines.join("\n");
    Err(Problem {
        violations,
        ..Problem::new(message)
    })
}

/// Returns the violation for a value that doesn't fit the type of its field.
fn invalid_value_violation(field: String, kind: &str, found: &Value) -> Violation {
    let description = format!("Invalid value at '{field}' ({kind}), {found}");
    Violation { field, description }
}

/// Returns the error for a field whose value has the right type but is not allowed.
fn field_problem(field: &str, what: &str) -> Problem {
    Problem::new(format!("* GenerateContentRequest.{field}: {what}\n"))
}

/// Returns the field with this camelCase name, which may also be written in `snake_case`; `None` if
/// it is absent or null.
fn get_field<'a>(value: &'a Value, camel: &str) -> Option<&'a Value> {
    let found = value.get(camel).or_else(|| {
        let fields = value.as_object()?;
        fields
            .iter()
            .find(|(key, _)| fields::is_same_field(key, camel))
            .map(|(_, found)| found)
    });
    found.filter(|found| !found.is_null())
}

/// Returns the array in the field with this camelCase name, which may also be written in
/// `snake_case`. An absent field and a field of another type count as an empty array.
fn array_field<'a>(value: &'a Value, camel: &str) -> &'a [Value] {
    get_field(value, camel)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Iterates over the parts of all turns, each with the index of its turn and its own index.
fn iter_parts(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    array_field(body, "contents")
        .iter()
        .enumerate()
        .flat_map(|(turn, content)| {
            array_field(content, "parts")
                .iter()
                .enumerate()
                .map(move |(part, value)| (turn, part, value))
        })
}
