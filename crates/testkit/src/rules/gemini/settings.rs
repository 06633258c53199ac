//! Rules about the request's top-level fields: contents, system instruction, generation settings.

use serde_json::Value;

use super::{field, invalid_value, items, refused, unreadable};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict},
};

const CONTENT_TYPE: &str = "type.googleapis.com/google.ai.generativelanguage.v1beta.Content";

pub(super) fn contents(body: &Value, _: &RequestInfo) -> Verdict {
    if items(body, "contents").is_empty() {
        return Err(refused("contents", "contents is not specified"));
    }
    Ok(())
}

pub(super) fn system_instruction(body: &Value, _: &RequestInfo) -> Verdict {
    match field(body, "systemInstruction") {
        None | Some(Value::Object(_)) => Ok(()),
        Some(other) => unreadable(vec![invalid_value(
            "system_instruction".to_owned(),
            CONTENT_TYPE,
            other,
        )]),
    }
}

fn generation<'a>(body: &'a Value, camel: &str) -> Option<&'a Value> {
    field(body, "generationConfig").and_then(|config| field(config, camel))
}

pub(super) fn max_output_tokens(body: &Value, _: &RequestInfo) -> Verdict {
    if generation(body, "maxOutputTokens")
        .and_then(Value::as_i64)
        .is_some_and(|limit| limit <= 0)
    {
        return Err(refused(
            "generation_config.max_output_tokens",
            "max_output_tokens must be positive.",
        ));
    }
    Ok(())
}

pub(super) fn temperature(body: &Value, _: &RequestInfo) -> Verdict {
    let found = generation(body, "temperature").and_then(Value::as_f64);
    if found.is_some_and(|found| !(0.0..=2.0).contains(&found)) {
        return Err(refused(
            "generation_config.temperature",
            "temperature must be in the range [0.0, 2.0].",
        ));
    }
    Ok(())
}

pub(super) fn thinking(body: &Value, _: &RequestInfo) -> Verdict {
    let Some(config) = generation(body, "thinkingConfig") else {
        return Ok(());
    };
    if field(config, "thinkingBudget").is_some() && field(config, "thinkingLevel").is_some() {
        return Err(Problem::new(
            "You can only set only one of thinking budget and thinking level.",
        ));
    }
    Ok(())
}
