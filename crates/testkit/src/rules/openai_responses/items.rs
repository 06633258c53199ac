//! Rules about input items, and about the item that must follow a reasoning item.

use std::collections::HashSet;

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{
        Problem, Verdict, array_field, find_unknown_key, non_null_field, string_field, type_field,
    },
    openai::{unknown_parameter_problem, unsupported_value_problem},
};

/// A type of item: its name, the prefix of its ids, and its fields. The prefix or the fields are
/// `None` if they aren't checked.
struct ItemType(
    &'static str,
    Option<&'static str>,
    Option<&'static [&'static str]>,
);

const TYPES: &[ItemType] = &[
    ItemType(
        "message",
        Some("msg"),
        Some(&["type", "id", "role", "content", "status", "phase"]),
    ),
    ItemType(
        "function_call",
        Some("fc"),
        Some(&[
            "type",
            "id",
            "call_id",
            "name",
            "arguments",
            "status",
            "namespace",
            "caller",
        ]),
    ),
    ItemType(
        "function_call_output",
        Some("fc"),
        Some(&[
            "type",
            "id",
            "call_id",
            "output",
            "status",
            "name",
            "namespace",
            "caller",
        ]),
    ),
    ItemType(
        "reasoning",
        Some("rs"),
        Some(&[
            "type",
            "id",
            "summary",
            "content",
            "encrypted_content",
            "status",
        ]),
    ),
    ItemType("item_reference", None, Some(&["type", "id"])),
    ItemType("additional_tools", None, None),
    ItemType("apply_patch_call", None, None),
    ItemType("apply_patch_call_output", None, None),
    ItemType("code_interpreter_call", None, None),
    ItemType("compaction", None, None),
    ItemType("compaction_trigger", None, None),
    ItemType("computer_call", None, None),
    ItemType("computer_call_output", None, None),
    ItemType("configuration_update", None, None),
    ItemType("custom_tool_call", None, None),
    ItemType("custom_tool_call_output", None, None),
    ItemType("file_search_call", None, None),
    ItemType("image_generation_call", None, None),
    ItemType("local_shell_call", None, None),
    ItemType("local_shell_call_output", None, None),
    ItemType("mcp_approval_request", None, None),
    ItemType("mcp_approval_response", None, None),
    ItemType("mcp_call", None, None),
    ItemType("mcp_list_tools", None, None),
    ItemType("program", None, None),
    ItemType("program_output", None, None),
    ItemType("shell_call", None, None),
    ItemType("shell_call_output", None, None),
    ItemType("tool_search_call", None, None),
    ItemType("tool_search_output", None, None),
    ItemType("web_search_call", None, None),
];

const ROLES: &[&str] = &["assistant", "system", "developer", "user"];
const INPUT_PARTS: &[&str] = &["input_text", "input_image", "input_file"];
const OUTPUT_PARTS: &[&str] = &["output_text", "refusal"];

/// Returns the type of an item. Messages and item references may omit it, so their type is
/// inferred.
pub(super) fn item_type(item: &Value) -> &str {
    match string_field(item, "type") {
        Some(found) => found,
        None if item.get("role").is_some() => "message",
        None if item.get("id").is_some() => "item_reference",
        None => "",
    }
}

pub(super) fn check_known_type(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, item) in array_field(body, "input").iter().enumerate() {
        let found = item_type(item);
        if !TYPES.iter().any(|ItemType(name, ..)| *name == found) {
            let names: Vec<&str> = TYPES.iter().map(|ItemType(name, ..)| *name).collect();
            return Err(unsupported_value_problem(
                &format!("input[{at}]"),
                found,
                &names,
            ));
        }
    }
    Ok(())
}

pub(super) fn check_known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, item) in array_field(body, "input").iter().enumerate() {
        let found = TYPES
            .iter()
            .find(|ItemType(name, ..)| *name == item_type(item));
        if let Some(key) = found.and_then(|ItemType(_, _, known)| find_unknown_key(item, (*known)?))
        {
            return Err(unknown_parameter_problem(&format!("input[{at}].{key}")));
        }
        if item_type(item) != "message" {
            continue;
        }
        for (part, value) in array_field(item, "content").iter().enumerate() {
            let known: &[&str] = match type_field(value) {
                "input_text" => &["type", "text", "prompt_cache_breakpoint"],
                "input_image" => &[
                    "type",
                    "detail",
                    "file_id",
                    "image_url",
                    "prompt_cache_breakpoint",
                ],
                "output_text" => &["type", "text", "annotations", "logprobs"],
                "refusal" => &["type", "refusal"],
                _ => continue,
            };
            if let Some(key) = find_unknown_key(value, known) {
                return Err(unknown_parameter_problem(&format!(
                    "input[{at}].content[{part}].{key}"
                )));
            }
        }
    }
    Ok(())
}

pub(super) fn check_id_prefix(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, item) in array_field(body, "input").iter().enumerate() {
        let found = TYPES
            .iter()
            .find(|ItemType(name, ..)| *name == item_type(item));
        let (Some(id), Some(prefix)) = (
            string_field(item, "id"),
            found.and_then(|ItemType(_, prefix, _)| *prefix),
        ) else {
            continue;
        };
        if !id.starts_with(prefix) {
            let param = format!("input[{at}].id");
            let message =
                format!("Invalid '{param}': '{id}'. Expected an ID that begins with '{prefix}'.");
            return Err(Problem::new(message).param(param).code("invalid_value"));
        }
    }
    Ok(())
}

pub(super) fn check_ids_unique(body: &Value, _: &RequestInfo) -> Verdict {
    let mut seen = HashSet::new();
    for id in array_field(body, "input")
        .iter()
        .filter_map(|item| string_field(item, "id"))
    {
        if !seen.insert(id) {
            let message = format!(
                "Duplicate item found with id {id}. Remove duplicate items from your input and try again."
            );
            return Err(Problem::new(message).param("input"));
        }
    }
    Ok(())
}

pub(super) fn check_role(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, item) in array_field(body, "input").iter().enumerate() {
        let role = string_field(item, "role").unwrap_or_default();
        if item_type(item) == "message" && !ROLES.contains(&role) {
            return Err(unsupported_value_problem(
                &format!("input[{at}]"),
                role,
                ROLES,
            ));
        }
    }
    Ok(())
}

pub(super) fn check_content_type(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, item) in array_field(body, "input").iter().enumerate() {
        let supported = match (item_type(item), string_field(item, "role")) {
            ("message", Some("assistant")) => OUTPUT_PARTS,
            ("message", Some(_)) => INPUT_PARTS,
            _ => continue,
        };
        for (part, value) in array_field(item, "content").iter().enumerate() {
            if !supported.contains(&type_field(value)) {
                return Err(unsupported_value_problem(
                    &format!("input[{at}].content[{part}]"),
                    type_field(value),
                    supported,
                ));
            }
        }
    }
    Ok(())
}

pub(super) fn check_reasoning_encrypted(body: &Value, _: &RequestInfo) -> Verdict {
    if body.get("store") != Some(&Value::Bool(false)) {
        return Ok(());
    }
    for item in array_field(body, "input") {
        let lost = match item_type(item) {
            "reasoning" => non_null_field(item, "encrypted_content").is_none(),
            "item_reference" => true,
            _ => false,
        };
        if let Some(id) = string_field(item, "id").filter(|_| lost) {
            let message = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with \
                 `store` set to true, or remove this item from your input."
            );
            return Err(Problem::new(message).param("input").status(404));
        }
    }
    Ok(())
}

pub(super) fn check_reasoning_followed(body: &Value, _: &RequestInfo) -> Verdict {
    let alone = |id: &str| {
        let message = format!(
            "Item '{id}' of type 'reasoning' was provided without its required following item."
        );
        Err(Problem::new(message).param("input"))
    };
    let mut waiting: Option<&str> = None;
    for item in array_field(body, "input") {
        let by_client = match item_type(item) {
            "reasoning" => {
                waiting = waiting.or(string_field(item, "id"));
                continue;
            }
            "message" => string_field(item, "role") != Some("assistant"),
            other => other.ends_with("_output"),
        };
        // An item written by the client can't be the one that the reasoning led to.
        if let Some(id) = waiting.take().filter(|_| by_client) {
            return alone(id);
        }
    }
    waiting.map_or(Ok(()), alone)
}
