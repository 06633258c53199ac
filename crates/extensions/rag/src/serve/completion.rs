//! The JSON of chat completions, whole and in chunks.

use haft_types::Usage;
use serde_json::{Value, json};

/// The fields that a chat completion and all its chunks have in common.
pub(super) struct Completion {
    pub(super) id: String,
    /// The time of the answer, in seconds since 1970.
    pub(super) created: i64,
    /// The name of the collection.
    pub(super) model: String,
}

impl Completion {
    /// Returns the whole completion, for a client that does not want a stream.
    pub(super) fn build_whole(
        &self,
        text: &str,
        finish_reason: &str,
        usage: Value,
        citations: &[String],
    ) -> Value {
        let message = json!({"role": "assistant", "content": text});
        let mut whole = self.build_json(
            "chat.completion",
            &json!({"index": 0, "message": message, "finish_reason": finish_reason}),
        );
        whole["usage"] = usage;
        whole["citations"] = json!(citations);
        whole
    }

    /// Returns the first chunk of a stream, which names the role.
    pub(super) fn build_first_chunk(&self, text: &str) -> Value {
        self.build_chunk(&json!({"role": "assistant", "content": text}), None)
    }

    /// Returns a chunk with more text.
    pub(super) fn build_text_chunk(&self, text: &str) -> Value {
        self.build_chunk(&json!({"content": text}), None)
    }

    /// Returns the last chunk of a stream.
    pub(super) fn build_last_chunk(&self, finish_reason: &str, citations: &[String]) -> Value {
        let mut last = self.build_chunk(&json!({}), Some(finish_reason));
        last["citations"] = json!(citations);
        last
    }

    fn build_chunk(&self, delta: &Value, finish_reason: Option<&str>) -> Value {
        self.build_json(
            "chat.completion.chunk",
            &json!({"index": 0, "delta": delta, "finish_reason": finish_reason}),
        )
    }

    fn build_json(&self, object: &str, choice: &Value) -> Value {
        json!({"id": self.id, "object": object, "created": self.created, "model": self.model, "choices": [choice]})
    }
}

/// Returns the `usage` of an answer that no model wrote.
pub(super) fn build_empty_usage() -> Value {
    json!({"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0})
}

/// Returns the `usage` of an answer that a model wrote. The cost in USD is left out if it is
/// unknown.
pub(super) fn build_usage(usage: &Usage, cost: Option<f64>) -> Value {
    let mut told = json!({
        "prompt_tokens": usage.all_input(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {"cached_tokens": usage.cached_input},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    });
    if let Some(cost) = cost {
        told["cost"] = json!(cost);
    }
    told
}

/// Returns the `error` object of a response.
pub(super) fn build_error(status: u16, message: &str) -> Value {
    let kind = if status == 502 {
        "api_error"
    } else {
        "invalid_request_error"
    };
    json!({"error": {"message": message, "type": kind, "code": status}})
}

/// Returns a line of an event stream.
pub(super) fn format_event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
