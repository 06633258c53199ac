//! Rules about a single content block.

use serde_json::Value;

use super::{fields::field_not_permitted_problem, iter_blocks};
use crate::rules::{
    RequestInfo,
    common::{
        Problem, Verdict, array_field, find_unknown_key, format_quoted_list, is_base64,
        string_field, type_field,
    },
};

/// The types of blocks, each with its fields. The fields are `None` if not all of them are known.
const TYPES: &[(&str, Option<&[&str]>)] = &[
    (
        "text",
        Some(&["type", "text", "cache_control", "citations"]),
    ),
    (
        "image",
        Some(&["type", "source", "cache_control", "transformations"]),
    ),
    (
        "document",
        Some(&[
            "type",
            "source",
            "cache_control",
            "citations",
            "context",
            "title",
        ]),
    ),
    (
        "search_result",
        Some(&[
            "type",
            "content",
            "source",
            "title",
            "cache_control",
            "citations",
        ]),
    ),
    ("thinking", Some(&["type", "thinking", "signature"])),
    ("redacted_thinking", Some(&["type", "data"])),
    (
        "tool_use",
        Some(&[
            "type",
            "id",
            "name",
            "input",
            "cache_control",
            "caller",
            "toolset_name",
        ]),
    ),
    (
        "tool_result",
        Some(&[
            "type",
            "tool_use_id",
            "content",
            "is_error",
            "cache_control",
            "toolset_name",
        ]),
    ),
    (
        "server_tool_use",
        Some(&["type", "id", "name", "input", "cache_control", "caller"]),
    ),
    ("web_search_tool_result", None),
    ("web_fetch_tool_result", None),
    ("advisor_tool_result", None),
    ("code_execution_tool_result", None),
    ("bash_code_execution_tool_result", None),
    ("text_editor_code_execution_tool_result", None),
    ("tool_search_tool_result", None),
    ("mcp_tool_use", None),
    ("mcp_tool_result", None),
    ("mcp_tool_listing", None),
    ("container_upload", None),
    ("compaction", None),
    ("mid_conv_system", None),
    ("tool_addition", None),
    ("tool_removal", None),
    ("fallback", None),
];

const IMAGE_TYPES: &[&str] = &["image/jpeg", "image/png", "image/gif", "image/webp"];

pub(super) fn check_content_not_empty(body: &Value, _: &RequestInfo) -> Verdict {
    let messages = array_field(body, "messages");
    for (index, message) in messages.iter().enumerate() {
        let empty = match message.get("content") {
            None => {
                return Err(Problem::new(format!(
                    "messages.{index}.content: Field required"
                )));
            }
            Some(Value::String(content)) => content.is_empty(),
            Some(Value::Array(content)) => content.is_empty(),
            Some(_) => {
                return Err(Problem::new(format!(
                    "messages.{index}.content: Input should be a valid list"
                )));
            }
        };
        let may_be_empty =
            index + 1 == messages.len() && string_field(message, "role") == Some("assistant");
        if empty && !may_be_empty {
            let message = "all messages must have non-empty content except for the optional final assistant message";
            return Err(Problem::new(format!("messages.{index}: {message}")));
        }
    }
    Ok(())
}

pub(super) fn check_known_type(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, value) in iter_blocks(body) {
        let found = type_field(value);
        if !TYPES.iter().any(|(name, _)| *name == found) {
            let names: Vec<String> = TYPES.iter().map(|(name, _)| format!("'{name}'")).collect();
            return Err(Problem::new(format!(
                "messages.{message}.content.{block}: Input tag '{found}' found using 'type' does not match any of the \
                 expected tags: {}",
                names.join(", ")
            )));
        }
    }
    Ok(())
}

pub(super) fn check_known_fields(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, value) in iter_blocks(body) {
        if let Some(key) = find_unknown_field(value) {
            return Err(field_not_permitted_problem(&format!(
                "messages.{message}.content.{block}.{}.{key}",
                type_field(value)
            )));
        }
        for (inner, value) in array_field(value, "content").iter().enumerate() {
            if let Some(key) = find_unknown_field(value) {
                let path =
                    format!("messages.{message}.content.{block}.tool_result.content.{inner}");
                return Err(field_not_permitted_problem(&format!(
                    "{path}.{}.{key}",
                    type_field(value)
                )));
            }
        }
    }
    for (block, value) in array_field(body, "system").iter().enumerate() {
        if let Some(key) = find_unknown_field(value) {
            return Err(field_not_permitted_problem(&format!(
                "system.{block}.{key}"
            )));
        }
    }
    Ok(())
}

/// Returns the first unknown field of a block. A cache mark on thinking is ignored, because another
/// rule covers it.
fn find_unknown_field(block: &Value) -> Option<&str> {
    let known = TYPES
        .iter()
        .find(|(name, _)| *name == type_field(block))
        .and_then(|(_, fields)| *fields)?;
    let thinking = matches!(type_field(block), "thinking" | "redacted_thinking");
    find_unknown_key(block, known).filter(|key| !(thinking && *key == "cache_control"))
}

pub(super) fn check_role(body: &Value, _: &RequestInfo) -> Verdict {
    let messages = array_field(body, "messages");
    for (message, _, value) in iter_blocks(body) {
        let found = type_field(value);
        let needed = match found {
            "tool_use" | "thinking" | "redacted_thinking" => "assistant",
            "tool_result" => "user",
            _ => continue,
        };
        if string_field(&messages[message], "role").is_some_and(|role| role != needed) {
            let message =
                format!("messages.{message}: `{found}` blocks can only be in `{needed}` messages");
            return Err(Problem::new(message));
        }
    }
    Ok(())
}

pub(super) fn check_text_not_empty(body: &Value, _: &RequestInfo) -> Verdict {
    if iter_texts(body).any(str::is_empty) {
        return Err(Problem::new(
            "messages: text content blocks must be non-empty",
        ));
    }
    if array_field(body, "system")
        .iter()
        .any(|block| string_field(block, "text") == Some(""))
    {
        return Err(Problem::new(
            "system: text content blocks must be non-empty",
        ));
    }
    Ok(())
}

pub(super) fn check_text_not_blank(body: &Value, _: &RequestInfo) -> Verdict {
    // Text in a tool result may be blank, as the output of a command often is.
    let own = iter_blocks(body)
        .filter(|(_, _, block)| type_field(block) == "text")
        .filter_map(|(_, _, b)| string_field(b, "text"));
    let whole = array_field(body, "messages")
        .iter()
        .filter_map(|message| string_field(message, "content"));
    if own
        .chain(whole)
        .any(|text| !text.is_empty() && text.trim().is_empty())
    {
        return Err(Problem::new(
            "messages: text content blocks must contain non-whitespace text",
        ));
    }
    Ok(())
}

/// Iterates over the texts of all text blocks in messages, including those in tool results.
fn iter_texts(body: &Value) -> impl Iterator<Item = &str> {
    iter_blocks(body)
        .flat_map(|(_, _, block)| std::iter::once(block).chain(array_field(block, "content")))
        .filter(|block| type_field(block) == "text")
        .filter_map(|block| string_field(block, "text"))
}

pub(super) fn check_image_sources(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, value) in iter_blocks(body) {
        if type_field(value) == "image" {
            check_image(
                value,
                &format!("messages.{message}.content.{block}.image.source"),
            )?;
        }
        for (inner, part) in array_field(value, "content")
            .iter()
            .enumerate()
            .filter(|(_, part)| type_field(part) == "image")
        {
            let path = format!(
                "messages.{message}.content.{block}.tool_result.content.{inner}.image.source"
            );
            check_image(part, &path)?;
        }
    }
    Ok(())
}

fn check_image(image: &Value, path: &str) -> Verdict {
    let Some(source) = image.get("source") else {
        return Err(Problem::new(format!("{path}: Field required")));
    };
    if type_field(source) != "base64" {
        return Ok(());
    }
    if !string_field(source, "media_type").is_some_and(|found| IMAGE_TYPES.contains(&found)) {
        let expected = format_quoted_list(IMAGE_TYPES, "or", "");
        return Err(Problem::new(format!(
            "{path}.base64.media_type: Input should be {expected}"
        )));
    }
    if !string_field(source, "data").is_some_and(is_base64) {
        return Err(Problem::new(format!("{path}.base64: invalid base64 data")));
    }
    Ok(())
}

pub(super) fn check_signature(body: &Value, _: &RequestInfo) -> Verdict {
    for (message, block, value) in iter_blocks(body) {
        let missing = match type_field(value) {
            "thinking" if string_field(value, "signature").is_none() => "thinking.signature",
            "redacted_thinking" if string_field(value, "data").is_none() => {
                "redacted_thinking.data"
            }
            _ => continue,
        };
        return Err(Problem::new(format!(
            "messages.{message}.content.{block}.{missing}: Field required"
        )));
    }
    Ok(())
}
