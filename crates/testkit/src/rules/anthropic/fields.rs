//! Rules about the fields of a request and of its messages.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, given, list, quoted_list, text, unknown_key},
};

const KNOWN: &[&str] = &[
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

const BETA: &[&str] = &[
    "compaction",
    "context_management",
    "fallback_credit_token",
    "fallbacks",
    "mcp_servers",
    "output_format",
    "thread",
];

const ROLES: &[&str] = &["user", "assistant", "system"];

pub(super) fn request(body: &Value, _: &RequestInfo) -> Verdict {
    let unknown = body.as_object().and_then(|fields| {
        fields
            .keys()
            .find(|key| !KNOWN.contains(&key.as_str()) && !BETA.contains(&key.as_str()))
    });
    unknown.map_or(Ok(()), |key| Err(not_permitted(key)))
}

pub(super) fn beta(body: &Value, info: &RequestInfo) -> Verdict {
    if info.header("anthropic-beta").is_some() {
        return Ok(());
    }
    match BETA.iter().find(|key| given(body, key).is_some()) {
        Some(key) => Err(not_permitted(key)),
        None => Ok(()),
    }
}

pub(super) fn role(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, message) in list(body, "messages").iter().enumerate() {
        match text(message, "role") {
            Some(role) if ROLES.contains(&role) => {}
            Some(_) => {
                let expected = quoted_list(ROLES, "or", "");
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

pub(super) fn message(body: &Value, _: &RequestInfo) -> Verdict {
    for (index, message) in list(body, "messages").iter().enumerate() {
        let known: &[&str] = match text(message, "role") {
            Some("system") => &["role", "content", "clear_at", "output_config"],
            _ => &["role", "content"],
        };
        if let Some(key) = unknown_key(message, known) {
            return Err(not_permitted(&format!("messages.{index}.{key}")));
        }
    }
    Ok(())
}

/// The service's error for a field that is not allowed.
pub(super) fn not_permitted(path: &str) -> Problem {
    Problem::new(format!("{path}: Extra inputs are not permitted"))
}
