//! Rules about a single turn or part.

use serde_json::Value;

use super::{
    array_field, field_problem, get_field, invalid_value_violation, iter_parts, reject_violations,
};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, is_base64},
};

const STRUCT_TYPE: &str = "type.googleapis.com/google.protobuf.Struct";

/// The fields of a part that contain data. A part must have at least one of them.
const DATA_FIELDS: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

pub(super) fn check_role(body: &Value, _: &RequestInfo) -> Verdict {
    for content in array_field(body, "contents") {
        // A turn without a role is a user turn.
        let role = get_field(content, "role")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !matches!(role, "user" | "model" | "") {
            return Err(Problem::new("Please use a valid role: user, model."));
        }
    }
    Ok(())
}

pub(super) fn check_parts_not_empty(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, content) in array_field(body, "contents").iter().enumerate() {
        if array_field(content, "parts").is_empty() {
            return Err(field_problem(
                &format!("contents[{at}].parts"),
                "contents.parts must not be empty.",
            ));
        }
    }
    Ok(())
}

pub(super) fn check_part_has_data(body: &Value, _: &RequestInfo) -> Verdict {
    for (turn, part, value) in iter_parts(body) {
        if !DATA_FIELDS
            .iter()
            .any(|name| get_field(value, name).is_some())
        {
            let place = format!("contents[{turn}].parts[{part}].data");
            return Err(field_problem(
                &place,
                "required oneof field 'data' must have one initialized field",
            ));
        }
    }
    Ok(())
}

pub(super) fn check_call_args(body: &Value, _: &RequestInfo) -> Verdict {
    check_is_object(body, "functionCall", "function_call", "args")
}

pub(super) fn check_response_is_object(body: &Value, _: &RequestInfo) -> Verdict {
    check_is_object(body, "functionResponse", "function_response", "response")
}

fn check_is_object(body: &Value, camel: &str, snake: &str, inner: &str) -> Verdict {
    for (turn, part, value) in iter_parts(body) {
        let found = get_field(value, camel).and_then(|holder| get_field(holder, inner));
        if let Some(found) = found.filter(|found| !found.is_object()) {
            let place = format!("contents[{turn}].parts[{part}].{snake}.{inner}");
            return reject_violations(vec![invalid_value_violation(place, STRUCT_TYPE, found)]);
        }
    }
    Ok(())
}

pub(super) fn check_response_name(body: &Value, _: &RequestInfo) -> Verdict {
    for (turn, part, value) in iter_parts(body) {
        let response = get_field(value, "functionResponse");
        let unnamed = |response: &Value| {
            get_field(response, "name")
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
        };
        if response.is_some_and(unnamed) {
            let place = format!("contents[{turn}].parts[{part}].function_response.name");
            return Err(field_problem(&place, "Name cannot be empty."));
        }
    }
    Ok(())
}

pub(super) fn check_inline_data(body: &Value, _: &RequestInfo) -> Verdict {
    for (turn, part, value) in iter_parts(body) {
        let Some(data) = get_field(value, "inlineData").and_then(|blob| get_field(blob, "data"))
        else {
            continue;
        };
        // The service accepts both alphabets of base64.
        let readable = data
            .as_str()
            .is_some_and(|data| is_base64(&data.replace('-', "+").replace('_', "/")));
        if !readable {
            let place = format!("contents[{turn}].parts[{part}].inline_data.data");
            let mut violation = invalid_value_violation(place, "TYPE_BYTES", data);
            violation.description =
                violation
                    .description
                    .replacen("), ", "), Base64 decoding failed for ", 1);
            return reject_violations(vec![violation]);
        }
    }
    Ok(())
}

pub(super) fn check_mime_type(body: &Value, _: &RequestInfo) -> Verdict {
    for (_, _, value) in iter_parts(body) {
        let Some(blob) = get_field(value, "inlineData") else {
            continue;
        };
        let found = get_field(blob, "mimeType")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !found
            .split_once('/')
            .is_some_and(|(kind, name)| !kind.is_empty() && !name.is_empty())
        {
            return Err(Problem::new(format!("Unsupported MIME type: {found}")));
        }
    }
    Ok(())
}
