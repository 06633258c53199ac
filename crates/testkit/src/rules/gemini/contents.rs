//! Rules about a single turn or part.

use serde_json::Value;

use super::{each_part, field, invalid_value, items, refused, unreadable};
use crate::rules::{
    RequestInfo,
    common::{Problem, Verdict, is_base64},
};

const STRUCT: &str = "type.googleapis.com/google.protobuf.Struct";

/// The content fields of a part, of which one is required.
const DATA: &[&str] = &[
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

pub(super) fn role(body: &Value, _: &RequestInfo) -> Verdict {
    for content in items(body, "contents") {
        // A turn without a role is a user turn.
        let role = field(content, "role")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if !matches!(role, "user" | "model" | "") {
            return Err(Problem::new("Please use a valid role: user, model."));
        }
    }
    Ok(())
}

pub(super) fn parts_not_empty(body: &Value, _: &RequestInfo) -> Verdict {
    for (at, content) in items(body, "contents").iter().enumerate() {
        if items(content, "parts").is_empty() {
            return Err(refused(
                &format!("contents[{at}].parts"),
                "contents.parts must not be empty.",
            ));
        }
    }
    Ok(())
}

pub(super) fn part_has_data(body: &Value, _: &RequestInfo) -> Verdict {
    for (turn, part, value) in each_part(body) {
        if !DATA.iter().any(|name| field(value, name).is_some()) {
            let place = format!("contents[{turn}].parts[{part}].data");
            return Err(refused(
                &place,
                "required oneof field 'data' must have one initialized field",
            ));
        }
    }
    Ok(())
}

pub(super) fn call_args(body: &Value, _: &RequestInfo) -> Verdict {
    is_struct(body, "functionCall", "function_call", "args")
}

pub(super) fn response_object(body: &Value, _: &RequestInfo) -> Verdict {
    is_struct(body, "functionResponse", "function_response", "response")
}

fn is_struct(body: &Value, camel: &str, snake: &str, inner: &str) -> Verdict {
    for (turn, part, value) in each_part(body) {
        let found = field(value, camel).and_then(|holder| field(holder, inner));
        if let Some(found) = found.filter(|found| !found.is_object()) {
            let place = format!("contents[{turn}].parts[{part}].{snake}.{inner}");
            return unreadable(vec![invalid_value(place, STRUCT, found)]);
        }
    }
    Ok(())
}

pub(super) fn response_name(body: &Value, _: &RequestInfo) -> Verdict {
    for (turn, part, value) in each_part(body) {
        let response = field(value, "functionResponse");
        let unnamed = |response: &Value| {
            field(response, "name")
                .and_then(Value::as_str)
                .is_none_or(str::is_empty)
        };
        if response.is_some_and(unnamed) {
            let place = format!("contents[{turn}].parts[{part}].function_response.name");
            return Err(refused(&place, "Name cannot be empty."));
        }
    }
    Ok(())
}

pub(super) fn inline_data(body: &Value, _: &RequestInfo) -> Verdict {
    for (turn, part, value) in each_part(body) {
        let Some(data) = field(value, "inlineData").and_then(|blob| field(blob, "data")) else {
            continue;
        };
        // The service accepts both alphabets of base64.
        let readable = data
            .as_str()
            .is_some_and(|data| is_base64(&data.replace('-', "+").replace('_', "/")));
        if !readable {
            let place = format!("contents[{turn}].parts[{part}].inline_data.data");
            let mut violation = invalid_value(place, "TYPE_BYTES", data);
            violation.description =
                violation
                    .description
                    .replacen("), ", "), Base64 decoding failed for ", 1);
            return unreadable(vec![violation]);
        }
    }
    Ok(())
}

pub(super) fn mime_type(body: &Value, _: &RequestInfo) -> Verdict {
    for (_, _, value) in each_part(body) {
        let Some(blob) = field(value, "inlineData") else {
            continue;
        };
        let found = field(blob, "mimeType")
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
