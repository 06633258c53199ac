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
        "No object holds a field its type does not have.",
        fields::known,
    ),
    rule(
        "schema-field",
        SCHEMA,
        "`parameters` is the named subset of OpenAPI: no `$ref`, `$defs`, `additionalProperties`, `const`.",
        schema::known_fields,
    ),
    rule(
        "schema-type",
        SCHEMA,
        "A schema's type is one of the names of the reference, never a list.",
        schema::types,
    ),
    rule(
        "system-instruction",
        REFERENCE,
        "`systemInstruction` is content with parts.",
        settings::system_instruction,
    ),
    rule(
        "function-args",
        CONTENT,
        "A call's arguments are an object.",
        contents::call_args,
    ),
    rule(
        "function-response-object",
        CONTENT,
        "A call's response is an object.",
        contents::response_object,
    ),
    rule(
        "inline-data",
        CONTENT,
        "Inline data is base64.",
        contents::inline_data,
    ),
    rule(
        "contents-missing",
        REFERENCE,
        "`contents` holds at least one turn.",
        settings::contents,
    ),
    rule(
        "role",
        CONTENT,
        "A turn's role is `user` or `model`.",
        contents::role,
    ),
    rule(
        "parts-empty",
        CONTENT,
        "A turn has at least one part.",
        contents::parts_not_empty,
    ),
    rule(
        "part-empty",
        CONTENT,
        "A part holds text, data, a call or a response.",
        contents::part_has_data,
    ),
    rule(
        "inline-data-type",
        CONTENT,
        "Inline data names its MIME type.",
        contents::mime_type,
    ),
    rule(
        "function-response-name",
        CONTENT,
        "A response names its function.",
        contents::response_name,
    ),
    rule(
        "function-call-turn",
        FUNCTIONS,
        "A turn with calls comes directly after a user turn or a turn of responses.",
        turns::calls_after_user,
    ),
    rule(
        "function-response-turn",
        FUNCTIONS,
        "A turn of responses comes directly after the turn with the calls.",
        turns::responses_after_calls,
    ),
    rule(
        "function-response-count",
        FUNCTIONS,
        "A turn of responses has as many as the turn before has calls.",
        turns::as_many_responses,
    ),
    rule(
        "last-turn",
        FUNCTIONS,
        "The last turn is the user's or one of responses.",
        turns::ends_with_user,
    ),
    rule(
        "thought-signature",
        SIGNATURES,
        "Gemini 3: the first call of every step since the user last spoke has its thought signature.",
        turns::signatures,
    ),
    rule(
        "function-name",
        TOOL,
        "A function's name begins with a letter or `_` and is at most 128 long.",
        tools::name,
    ),
    rule(
        "function-repeated",
        TOOL,
        "No two functions have the same name.",
        tools::names_differ,
    ),
    rule(
        "function-parameters",
        TOOL,
        "A function has `parameters` or `parametersJsonSchema`, not both.",
        tools::one_schema,
    ),
    rule(
        "schema-items",
        SCHEMA,
        "An array's schema has `items`.",
        schema::items,
    ),
    rule(
        "schema-enum",
        SCHEMA,
        "Only text has an enumeration of values.",
        schema::enums,
    ),
    rule(
        "schema-required",
        SCHEMA,
        "A required property is defined.",
        schema::required,
    ),
    rule(
        "function-calling-config",
        TOOL,
        "Forced calling needs function declarations.",
        tools::config_needs_functions,
    ),
    rule(
        "allowed-functions",
        TOOL,
        "Allowed functions are named only where calling is forced.",
        tools::allowed_names,
    ),
    rule(
        "max-output-tokens",
        REFERENCE,
        "`maxOutputTokens` is above zero.",
        settings::max_output_tokens,
    ),
    rule(
        "temperature-range",
        REFERENCE,
        "The temperature is from 0 to 2.",
        settings::temperature,
    ),
    rule(
        "thinking-both",
        THINKING,
        "A thinking budget or a thinking level, not both.",
        settings::thinking,
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

/// Rejects a body that doesn't fit the request type; accepts it if there are no violations.
fn unreadable(violations: Vec<Violation>) -> Verdict {
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

/// A value that doesn't fit the type of its field.
fn invalid_value(field: String, kind: &str, found: &Value) -> Violation {
    let description = format!("Invalid value at '{field}' ({kind}), {found}");
    Violation { field, description }
}

/// The problem of a field with a valid type but a value that is not allowed.
fn refused(field: &str, what: &str) -> Problem {
    Problem::new(format!("* GenerateContentRequest.{field}: {what}\n"))
}

/// Returns a field by its camelCase or snake_case name, unless it is null.
fn field<'a>(value: &'a Value, camel: &str) -> Option<&'a Value> {
    let found = value.get(camel).or_else(|| {
        let fields = value.as_object()?;
        fields
            .iter()
            .find(|(key, _)| fields::same_name(key, camel))
            .map(|(_, found)| found)
    });
    found.filter(|found| !found.is_null())
}

/// Returns an array field by its camelCase or snake_case name; empty if absent or not an array.
fn items<'a>(value: &'a Value, camel: &str) -> &'a [Value] {
    field(value, camel)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// Iterates over every part of every turn, with the indexes of both.
fn each_part(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    items(body, "contents")
        .iter()
        .enumerate()
        .flat_map(|(turn, content)| {
            items(content, "parts")
                .iter()
                .enumerate()
                .map(move |(part, value)| (turn, part, value))
        })
}
