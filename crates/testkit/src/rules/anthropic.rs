//! Rules of Anthropic Messages.
use serde_json::{Value, json};

use super::{Rule, common::Problem};

pub(super) static RULES: &[Rule] = &[];

/// The error body of the Messages API.
pub(super) fn error_body(problem: &Problem) -> Value {
    json!({"type": "error", "error": {"type": "invalid_request_error", "message": problem.message}})
}
