//! Rules about headers and top-level fields: required fields, limits, thinking.

use serde_json::Value;

use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, non_null_field, type_field},
};

const MIN_BUDGET: i64 = 1024;

pub(super) fn check_version_header(_: &Value, info: &RequestInfo) -> Verdict {
    match info.header("anthropic-version") {
        Some(_) => Ok(()),
        None => Err(Problem::new("anthropic-version: header is required")),
    }
}

pub(super) fn check_model(body: &Value, _: &RequestInfo) -> Verdict {
    match body.get("model") {
        Some(Value::String(_)) => Ok(()),
        Some(_) => Err(Problem::new("model: Input should be a valid string")),
        None => Err(Problem::new("model: Field required")),
    }
}

pub(super) fn check_max_tokens(body: &Value, _: &RequestInfo) -> Verdict {
    match body.get("max_tokens") {
        None => Err(Problem::new("max_tokens: Field required")),
        Some(limit) if limit.is_u64() => Ok(()),
        Some(limit) if limit.is_i64() => Err(Problem::new(
            "max_tokens: Input should be greater than or equal to 0",
        )),
        Some(_) => Err(Problem::new("max_tokens: Input should be a valid integer")),
    }
}

pub(super) fn check_messages(body: &Value, _: &RequestInfo) -> Verdict {
    match body.get("messages") {
        None => Err(Problem::new("messages: Field required")),
        Some(Value::Array(messages)) if messages.is_empty() => {
            Err(Problem::new("messages: at least one message is required"))
        }
        Some(Value::Array(_)) => Ok(()),
        Some(_) => Err(Problem::new("messages: Input should be a valid list")),
    }
}

pub(super) fn check_thinking_budget(body: &Value, _: &RequestInfo) -> Verdict {
    match enabled_thinking(body).map(|thinking| thinking.get("budget_tokens")) {
        Some(None) => Err(Problem::new(
            "thinking.enabled.budget_tokens: Field required",
        )),
        Some(Some(budget)) if budget.as_i64().is_some_and(|budget| budget < MIN_BUDGET) => {
            let message = format!(
                "thinking.enabled.budget_tokens: Input should be greater than or equal to {MIN_BUDGET}"
            );
            Err(Problem::new(message))
        }
        Some(Some(_)) | None => Ok(()),
    }
}

pub(super) fn check_budget_below_max_tokens(body: &Value, info: &RequestInfo) -> Verdict {
    let interleaved = info
        .header("anthropic-beta")
        .is_some_and(|betas| betas.contains("interleaved-thinking"));
    let budget = enabled_thinking(body)
        .and_then(|thinking| thinking.get("budget_tokens"))
        .and_then(Value::as_u64);
    match (budget, body.get("max_tokens").and_then(Value::as_u64)) {
        (Some(budget), Some(limit)) if budget >= limit && !interleaved => Err(Problem::new(
            "`max_tokens` must be greater than `thinking.budget_tokens`.",
        )),
        _ => Ok(()),
    }
}

pub(super) fn check_thinking_temperature(body: &Value, _: &RequestInfo) -> Verdict {
    let temperature = non_null_field(body, "temperature").and_then(Value::as_f64);
    let changed = temperature.is_some_and(|temperature| (temperature - 1.0).abs() > f64::EPSILON);
    if changed && enabled_thinking(body).is_some() {
        return Err(Problem::new(
            "`temperature` may only be set to 1 when thinking is enabled.",
        ));
    }
    Ok(())
}

pub(super) fn check_thinking_tool_choice(body: &Value, _: &RequestInfo) -> Verdict {
    let forced = non_null_field(body, "tool_choice")
        .is_some_and(|choice| matches!(type_field(choice), "any" | "tool"));
    if forced && enabled_thinking(body).is_some() {
        return Err(Problem::new(
            "Thinking may not be enabled when tool_choice forces tool use.",
        ));
    }
    Ok(())
}

fn enabled_thinking(body: &Value) -> Option<&Value> {
    non_null_field(body, "thinking").filter(|thinking| type_field(thinking) == "enabled")
}
