//! Errors in the shape of each service, as an HTTP body or as an event in the middle of a stream.

use haft_types::Api;
use serde_json::{Value, json};

use super::{data_event, named_event};
use crate::script::ScriptedError;

/// Builds the body of an HTTP error in the form of `api`.
pub(crate) fn error_body(
    api: Api,
    status: u16,
    error: &ScriptedError,
    retry_after: Option<f64>,
) -> Value {
    let kind = error
        .kind
        .clone()
        .unwrap_or_else(|| error_type(api, status).to_owned());
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => {
            let code = error.code.as_deref().or_else(|| openai_error_code(status));
            json!({ "error": { "message": error.message, "type": kind, "param": null, "code": code } })
        }
        Api::Anthropic => json!({
            "type": "error",
            "error": { "type": kind, "message": error.message },
            "request_id": "req_scripted",
        }),
        Api::Gemini => {
            let mut inner = json!({ "code": status, "message": error.message, "status": kind });
            if let Some(seconds) = retry_after {
                inner["details"] = json!([{
                    "@type": "type.googleapis.com/google.rpc.RetryInfo",
                    "retryDelay": format!("{seconds}s"),
                }]);
            }
            json!({ "error": inner })
        }
    }
}

/// Builds the error event that ends a stream after `position` events.
pub(crate) fn error_event(
    api: Api,
    status: u16,
    error: &ScriptedError,
    position: usize,
) -> Vec<u8> {
    match api {
        Api::OpenaiChat | Api::Gemini => data_event(&error_body(api, status, error, None)),
        Api::OpenaiResponses => {
            let code = error
                .code
                .as_deref()
                .or_else(|| openai_error_code(status))
                .unwrap_or("server_error");
            named_event(
                "error",
                &json!({
                    "type": "error",
                    "sequence_number": position,
                    "code": code,
                    "message": error.message,
                    "param": null,
                }),
            )
        }
        Api::Anthropic => named_event("error", &error_body(api, status, error, None)),
    }
}

/// Returns the error type that the service uses for an HTTP status.
fn error_type(api: Api, status: u16) -> &'static str {
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => match status {
            401 => "authentication_error",
            403 => "permission_error",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            503 => "service_unavailable_error",
            _ => "server_error",
        },
        Api::Anthropic => match status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            400..=499 => "invalid_request_error",
            529 => "overloaded_error",
            _ => "api_error",
        },
        Api::Gemini => match status {
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            400..=499 => "INVALID_ARGUMENT",
            503 => "UNAVAILABLE",
            504 => "DEADLINE_EXCEEDED",
            _ => "INTERNAL",
        },
    }
}

/// Returns the error code that OpenAI uses for an HTTP status.
fn openai_error_code(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("invalid_api_key"),
        404 => Some("not_found"),
        429 => Some("rate_limit_exceeded"),
        500..=599 => Some("server_error"),
        _ => None,
    }
}
