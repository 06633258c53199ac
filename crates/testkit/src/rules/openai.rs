//! What Chat Completions and Responses share.
use serde_json::{Value, json};

use super::common::Problem;

/// The error body of both OpenAI APIs.
pub(super) fn error_body(problem: &Problem) -> Value {
    json!({"error": {"message": problem.message, "type": "invalid_request_error", "param": null, "code": null}})
}
