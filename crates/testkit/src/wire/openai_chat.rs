//! OpenAI Chat Completions: one object, or chunks of deltas up to `[DONE]`.

use haft_types::Usage;
use serde_json::{Value, json};

use super::{Answer, CREATED, Frame, data_event, split_into_pieces};
use crate::script::{ReplyPart, Stop};

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn => "stop",
        Stop::ToolUse => "tool_calls",
        Stop::Length => "length",
        Stop::Refusal => "content_filter",
    }
}

/// Encodes the token counts of a reply. Cached tokens are included in the prompt's count, and
/// reasoning in the completion's.
fn usage_json(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.all_input(),
        "completion_tokens": usage.output,
        "total_tokens": usage.total(),
        "prompt_tokens_details": {
            "cached_tokens": usage.cached_input,
            "cache_write_tokens": usage.cache_write,
            "audio_tokens": 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    })
}

pub(super) fn build_completion(answer: &Answer<'_>) -> Value {
    let mut text = None::<String>;
    let mut thinking = None::<String>;
    let mut calls = Vec::new();
    for part in &answer.parts {
        match part {
            ReplyPart::Text { text: words, .. } => text.get_or_insert_default().push_str(words),
            ReplyPart::Thinking { text: words, .. } => {
                thinking.get_or_insert_default().push_str(words);
            }
            ReplyPart::ToolCall(call) => calls.push(json!({
                "id": answer.call_id("call", calls.len(), call),
                "type": "function",
                "function": { "name": call.name, "arguments": call.arguments_text() },
            })),
        }
    }
    let mut message =
        json!({ "role": "assistant", "content": text, "refusal": null, "annotations": [] });
    if let Some(thinking) = thinking {
        message["reasoning_content"] = thinking.into();
    }
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    json!({
        "id": format!("chatcmpl-{}", answer.tag),
        "object": "chat.completion",
        "created": CREATED,
        "model": answer.model,
        "choices": [{
            "index": 0,
            "message": message,
            "logprobs": null,
            "finish_reason": finish_reason(answer.stop),
        }],
        "usage": usage_json(answer.usage),
        "service_tier": "default",
        "system_fingerprint": "fp_scripted",
    })
}

pub(super) fn stream_frames(answer: &Answer<'_>) -> Vec<Frame> {
    let chunk = |choices: Value, with_usage: Option<Value>| {
        let mut chunk = json!({
            "id": format!("chatcmpl-{}", answer.tag),
            "object": "chat.completion.chunk",
            "created": CREATED,
            "model": answer.model,
            "service_tier": "default",
            "system_fingerprint": "fp_scripted",
            "choices": choices,
        });
        if answer.wants.usage_chunk {
            chunk["usage"] = with_usage.unwrap_or_default();
        }
        data_event(&chunk)
    };
    let delta = |delta: Value| Frame {
        bytes: chunk(
            json!([{ "index": 0, "delta": delta, "logprobs": null, "finish_reason": null }]),
            None,
        ),
        ends: false,
    };
    let mut frames = vec![delta(
        json!({ "role": "assistant", "content": "", "refusal": null }),
    )];
    let mut calls = 0;
    for part in &answer.parts {
        match part {
            ReplyPart::Text { text, .. } => {
                frames.extend(
                    split_into_pieces(text, answer.delta_chars)
                        .map(|piece| delta(json!({ "content": piece }))),
                );
            }
            ReplyPart::Thinking { text, .. } => {
                let piece = |piece| delta(json!({ "reasoning_content": piece }));
                frames.extend(split_into_pieces(text, answer.delta_chars).map(piece));
            }
            ReplyPart::ToolCall(call) => {
                frames.push(delta(json!({ "tool_calls": [{
                    "index": calls,
                    "id": answer.call_id("call", calls, call),
                    "type": "function",
                    "function": { "name": call.name, "arguments": "" },
                }] })));
                let arguments = call.arguments_text();
                frames.extend(split_into_pieces(&arguments, answer.delta_chars).map(|piece| {
                    delta(json!({ "tool_calls": [{ "index": calls, "function": { "arguments": piece } }] }))
                }));
                calls += 1;
            }
        }
    }
    let end = json!([{ "index": 0, "delta": {}, "logprobs": null, "finish_reason": finish_reason(answer.stop) }]);
    frames.push(Frame {
        bytes: chunk(end, None),
        ends: true,
    });
    if answer.wants.usage_chunk {
        frames.push(Frame {
            bytes: chunk(json!([]), Some(usage_json(answer.usage))),
            ends: true,
        });
    }
    frames.push(Frame {
        bytes: b"data: [DONE]\n\n".to_vec(),
        ends: true,
    });
    frames
}
