//! Rules about a single message.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{
        Problem, Verdict, array_field, find_unknown_key, non_null_field, string_field, type_field,
    },
    openai::{
        missing_parameter_problem, unknown_parameter_problem, unsupported_value_problem,
        wrong_type_problem,
    },
};

const ROLES: &[&str] = &[
    "system",
    "assistant",
    "user",
    "function",
    "tool",
    "developer",
];

/// The fields that an assistant message may have. Every reply has `annotations`, and clients send
/// replies back unchanged. `reasoning_content` is not in the reference; compatible servers that
/// show their reasoning send it and expect it back, and so does this server.
const ASSISTANT_FIELDS: &[&str] = &[
    "role",
    "content",
    "name",
    "audio",
    "annotations",
    "function_call",
    "refusal",
    "tool_calls",
    "reasoning_content",
];

/// The types of content parts, each with its fields.
const PARTS: &[(&str, &[&str])] = &[
    ("text", &["type", "text", "prompt_cache_breakpoint"]),
    (
        "image_url",
        &["type", "image_url", "prompt_cache_breakpoint"],
    ),
    (
        "input_audio",
        &["type", "input_audio", "prompt_cache_breakpoint"],
    ),
    ("refusal", &["type", "refusal"]),
    ("file", &["type", "file", "prompt_cache_breakpoint"]),
];

pub(super) fn check_role(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, message) in array_field(body, "messages").iter().enumerate() {
        match string_field(message, "role") {
            Some(role) if ROLES.contains(&role) => {}
            Some(role) => {
                return Err(unsupported_value_problem(
                    &format!("messages[{at}].role"),
                    role,
                    ROLES,
                ));
            }
            None => return Err(missing_parameter_problem(&format!("messages[{at}].role"))),
        }
    }
    Ok(())
}

pub(super) fn check_known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, message) in array_field(body, "messages").iter().enumerate() {
        let known: &[&str] = match string_field(message, "role") {
            Some("assistant") => ASSISTANT_FIELDS,
            Some("tool") => &["role", "content", "tool_call_id", "name"],
            _ => &["role", "content", "name"],
        };
        if let Some(key) = find_unknown_key(message, known) {
            return Err(unknown_parameter_problem(&format!("messages[{at}].{key}")));
        }
    }
    Ok(())
}

pub(super) fn check_name(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, message) in array_field(body, "messages").iter().enumerate() {
        let bad = |name: &str| {
            name.is_empty() || name.contains(|c: char| c.is_whitespace() || "<|\\/>".contains(c))
        };
        if string_field(message, "name").is_some_and(bad) {
            let param = format!("messages[{at}].name");
            let message = format!(
                "Invalid '{param}': string does not match pattern. Expected a string that matches the pattern \
                 '^[^\\s<|\\\\/>]+$'."
            );
            return Err(Problem::new(message).param(param).code("invalid_value"));
        }
    }
    Ok(())
}

pub(super) fn check_content(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, message) in array_field(body, "messages").iter().enumerate() {
        match message.get("content") {
            Some(Value::String(_) | Value::Array(_)) => {}
            Some(Value::Null) | None => {
                let assistant = string_field(message, "role") == Some("assistant");
                let instead = ["tool_calls", "function_call", "refusal", "audio"];
                if !(assistant
                    && instead
                        .iter()
                        .any(|key| non_null_field(message, key).is_some()))
                {
                    let message = "Invalid value for 'content': expected a string, got null.";
                    return Err(Problem::new(message).param(format!("messages.[{at}].content")));
                }
            }
            Some(other) => {
                let param = format!("messages[{at}].content");
                return Err(wrong_type_problem(
                    &param,
                    "one of a string or array of objects",
                    other,
                ));
            }
        }
    }
    Ok(())
}

/// Iterates over the content parts of all messages, each with the index of its message and its own
/// index.
fn iter_parts(body: &Value) -> impl Iterator<Item = (usize, usize, &Value)> {
    array_field(body, "messages")
        .iter()
        .enumerate()
        .flat_map(|(message, value)| {
            array_field(value, "content")
                .iter()
                .enumerate()
                .map(move |(part, value)| (message, part, value))
        })
}

pub(super) fn check_part_type(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, part, value) in iter_parts(body) {
        let found = type_field(value);
        if !PARTS.iter().any(|(name, _)| *name == found) {
            let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
            return Err(unsupported_value_problem(
                &format!("messages[{message}].content[{part}].type"),
                found,
                &names,
            ));
        }
    }
    Ok(())
}

pub(super) fn check_part_fields(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, part, value) in iter_parts(body) {
        let known = PARTS.iter().find(|(name, _)| *name == type_field(value));
        if let Some(key) = known.and_then(|(_, known)| find_unknown_key(value, known)) {
            return Err(unknown_parameter_problem(&format!(
                "messages[{message}].content[{part}].{key}"
            )));
        }
    }
    Ok(())
}

pub(super) fn check_image_role(body: &Value, _: &RequestInfo) -> Verdict {
    let messages = array_field(body, "messages");
    for (message, _, value) in iter_parts(body) {
        let role = string_field(&messages[message], "role").unwrap_or_default();
        if type_field(value) == "image_url" && role != "user" {
            let param = format!("messages[{message}]");
            let message = format!(
                "Invalid '{param}'. Image URLs are only allowed for messages with role 'user', but this message with \
                 role '{role}' contains an image URL."
            );
            return Err(Problem::new(message).param(param).code("invalid_value"));
        }
    }
    Ok(())
}
