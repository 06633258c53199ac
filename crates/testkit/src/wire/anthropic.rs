//! Anthropic Messages: content blocks, each started, filled and stopped.

use haft_types::Usage;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Answer, Frame, named_event, split_into_pieces};
use crate::script::{ReplyPart, Stop, signature_or_generated};

fn stop_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "end_turn",
        Stop::ToolUse => "tool_use",
        Stop::Length => "max_tokens",
        Stop::Refusal => "refusal",
    }
}

/// Encodes the token counts of a reply. The three classes of input are disjoint; thinking counts as
/// output.
fn usage_json(usage: Usage, output: u64) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached_input,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": output,
        "service_tier": "standard",
    })
}

/// A complete reply in the Messages API. Arguments that are valid JSON are embedded verbatim,
/// whatever their keys.
#[derive(Serialize)]
pub(super) struct Message<'a> {
    id: String,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block<'a>>,
    stop_reason: &'static str,
    stop_sequence: Option<&'static str>,
    usage: Value,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Thinking {
        thinking: &'a str,
        signature: String,
    },
    ToolUse {
        id: String,
        name: &'a str,
        input: Input,
    },
}

/// The arguments of a call as an object. Text that isn't JSON can only be sent as a string.
#[derive(Serialize)]
#[serde(untagged)]
enum Input {
    Json(Box<RawValue>),
    Text(String),
}

pub(super) fn build_message<'a>(answer: &'a Answer<'_>) -> Message<'a> {
    let mut calls = 0;
    let content = answer.parts.iter().map(|part| match part {
        ReplyPart::Text { text, .. } => Block::Text { text },
        ReplyPart::Thinking { text, signature } => Block::Thinking {
            thinking: text,
            signature: signature_or_generated(signature.as_deref(), text).unwrap_or_default(),
        },
        ReplyPart::ToolCall(call) => {
            calls += 1;
            let input = match RawValue::from_string(call.arguments_text()) {
                Ok(json) => Input::Json(json),
                Err(_) => Input::Text(call.arguments_text()),
            };
            Block::ToolUse {
                id: answer.call_id("toolu", calls - 1, call),
                name: &call.name,
                input,
            }
        }
    });
    Message {
        id: format!("msg_{}", answer.tag),
        r#type: "message",
        role: "assistant",
        model: answer.model,
        content: content.collect(),
        stop_reason: stop_reason(answer.stop),
        stop_sequence: None,
        usage: usage_json(answer.usage, answer.usage.output),
    }
}

pub(super) fn stream_frames(answer: &Answer<'_>) -> Vec<Frame> {
    let event = |value: Value| {
        let name = value["type"].as_str().unwrap_or_default();
        Frame {
            ends: name == "message_stop",
            bytes: named_event(name, &value),
        }
    };
    let mut frames = vec![
        event(json!({ "type": "message_start", "message": {
            "id": format!("msg_{}", answer.tag),
            "type": "message",
            "role": "assistant",
            "model": answer.model,
            "content": [],
            "stop_reason": null,
            "stop_sequence": null,
            // By now the service has written its first token.
            "usage": usage_json(answer.usage, answer.usage.output.min(1)),
        } })),
        event(json!({ "type": "ping" })),
    ];
    let mut calls = 0;
    for (index, part) in answer.parts.iter().enumerate() {
        let start = |block: Value| {
            event(json!({ "type": "content_block_start", "index": index, "content_block": block }))
        };
        let delta = |delta: Value| {
            event(json!({ "type": "content_block_delta", "index": index, "delta": delta }))
        };
        match part {
            ReplyPart::Text { text, .. } => {
                frames.push(start(json!({ "type": "text", "text": "" })));
                let piece = |piece| delta(json!({ "type": "text_delta", "text": piece }));
                frames.extend(split_into_pieces(text, answer.delta_chars).map(piece));
            }
            ReplyPart::Thinking { text, signature } => {
                frames.push(start(
                    json!({ "type": "thinking", "thinking": "", "signature": "" }),
                ));
                let piece = |piece| delta(json!({ "type": "thinking_delta", "thinking": piece }));
                frames.extend(split_into_pieces(text, answer.delta_chars).map(piece));
                if let Some(signature) = signature_or_generated(signature.as_deref(), text) {
                    frames.push(delta(
                        json!({ "type": "signature_delta", "signature": signature }),
                    ));
                }
            }
            ReplyPart::ToolCall(call) => {
                let id = answer.call_id("toolu", calls, call);
                calls += 1;
                frames.push(start(
                    json!({ "type": "tool_use", "id": id, "name": call.name, "input": {} }),
                ));
                let piece =
                    |piece| delta(json!({ "type": "input_json_delta", "partial_json": piece }));
                frames.push(piece(""));
                frames.extend(
                    split_into_pieces(&call.arguments_text(), answer.delta_chars).map(piece),
                );
            }
        }
        frames.push(event(
            json!({ "type": "content_block_stop", "index": index }),
        ));
    }
    frames.push(event(json!({
        "type": "message_delta",
        "delta": { "stop_reason": stop_reason(answer.stop), "stop_sequence": null },
        "usage": {
            "input_tokens": answer.usage.input,
            "cache_creation_input_tokens": answer.usage.cache_write,
            "cache_read_input_tokens": answer.usage.cached_input,
            "output_tokens": answer.usage.output,
        },
    })));
    frames.push(event(json!({ "type": "message_stop" })));
    frames
}
