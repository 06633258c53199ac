//! Rules of Gemini generateContent.
use serde_json::{Value, json};

use super::{Rule, common::Problem};

pub(super) static RULES: &[Rule] = &[];

/// The error body of Google's APIs.
pub(super) fn error_body(problem: &Problem) -> Value {
    json!({"error": {"code": problem.status, "message": problem.message, "status": "INVALID_ARGUMENT"}})
}
