//! Rules about the fields of a request and of its messages.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{
        Problem, Verdict, array_field, find_unknown_key, format_quoted_list, non_null_field,
        string_field,
    },
};

const KNOWN_FIELDS: &[&str] = &[
    "model",
    "messages",
    "max_tokens",
    "cache_control",
    "container",
    "diagnostics",
    "inference_geo",
    "metadata",
    "output_config",
    "service_tier",
    "speed",
    "stop_sequences",
    "stream",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
    "user_profile_id",
    "workspace_id",
];

const BETA_FIELDS: &[&str] = &[
    "compaction",
    "context_management",
    "fallback_credit_token",
    "fallbacks",
    "mcp_servers",
    "output_format",
    "thread",
];

const ROLES: &[&str] = &["user", "assistant", "system"];

pub(super) fn check_request_fields(body: &Value, _: &RequestInfo) -> Verdict {
    let unknown = body.as_object().and_then(|fields| {
        fields.keys().find(|key| {
            !KNOWN_FIELDS.contains(&key.as_str()) && !BETA_FIELDS.contains(&key.as_str())
        })
    });
    unknown.map_or(Ok(()), |key| Err(field_not_permitted_problem(key)))
}

pub(super) fn check_beta_fields(body: &Value, info: &RequestInfo) -> Verdict {
    if info.header("anthropic-beta").is_some() {
        return Ok(());
    }
    match BETA_FIELDS
        .iter()
        .find(|key| non_null_field(body, key).is_some())
    {
        Some(key) => Err(field_not_permitted_problem(key)),
        None => Ok(()),
    }
}

pub(super) fn check_role(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, message) in array_field(body, "messages").iter().enumerate() {
        match string_field(message, "role") {
            Some(role) if ROLES.contains(&role) => {}
            Some(_) => {
                let expected = format_quoted_list(ROLES, "or", "");
                return Err(Problem::new(format!(
                    "messages.{index}.role: Input should be {expected}"
                )));
            }
            None => {
                return Err(Problem::new(format!(
                    "messages.{index}.role: Field required"
                )));
            }
        }
    }
    Ok(())
}

pub(super) fn check_message_fields(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, message) in array_field(body, "messages").iter().enumerate() {
        let known: &[&str] = match string_field(message, "role") {
            Some("system") => &["role", "content", "clear_at", "output_config"],
            _ => &["role", "content"],
        };
        if let Some(key) = find_unknown_key(message, known) {
            return Err(field_not_permitted_problem(&format!(
                "messages.{index}.{key}"
            )));
        }
    }
    Ok(())
}

/// Returns the service's error for a field that is not allowed.
pub(super) fn field_not_permitted_problem(path: &str) -> Problem {
    Problem::new(format!("{path}: Extra inputs are not permitted"))
}
