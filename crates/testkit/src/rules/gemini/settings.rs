//! Rules about the request's top-level fields: contents, system instruction, generation settings.

use serde_json::Value;

use super::{array_field, field_problem, get_field, invalid_value_violation, reject_violations};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict},
};

const CONTENT_TYPE: &str = "type.googleapis.com/google.ai.generativelanguage.v1beta.Content";

pub(super) fn check_contents(body: &Value, _: &RequestInfo) -> Verdict {
    if array_field(body, "contents").is_empty() {
        return Err(field_problem("contents", "contents is not specified"));
    }
    Ok(())
}

pub(super) fn check_system_instruction(body: &Value, _: &RequestInfo) -> Verdict {
    match get_field(body, "systemInstruction") {
        None | Some(Value::Object(_)) => Ok(()),
        Some(other) => reject_violations(vec![invalid_value_violation(
            "system_instruction".to_owned(),
            CONTENT_TYPE,
            other,
        )]),
    }
}

fn generation_setting<'a>(body: &'a Value, camel: &str) -> Option<&'a Value> {
    get_field(body, "generationConfig").and_then(|config| get_field(config, camel))
}

pub(super) fn check_max_output_tokens(body: &Value, _: &RequestInfo) -> Verdict {
    if generation_setting(body, "maxOutputTokens")
        .and_then(Value::as_i64)
        .is_some_and(|limit| limit <= 0)
    {
        return Err(field_problem(
            "generation_config.max_output_tokens",
            "max_output_tokens must be positive.",
        ));
    }
    Ok(())
}

pub(super) fn check_temperature(body: &Value, _: &RequestInfo) -> Verdict {
    let found = generation_setting(body, "temperature").and_then(Value::as_f64);
    if found.is_some_and(|found| !(0.0..=2.0).contains(&found)) {
        return Err(field_problem(
            "generation_config.temperature",
            "temperature must be in the range [0.0, 2.0].",
        ));
    }
    Ok(())
}

pub(super) fn check_thinking(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(config) = generation_setting(body, "thinkingConfig") else {
        return Ok(());
    };
    if get_field(config, "thinkingBudget").is_some() && get_field(config, "thinkingLevel").is_some()
    {
        return Err(Problem::new(
            "You can only set only one of thinking budget and thinking level.",
        ));
    }
    Ok(())
}
