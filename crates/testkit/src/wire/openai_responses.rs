//! OpenAI Responses: output items, each added, filled and done, between `response.created` and
//! `response.completed`.

use haft_types::Usage;
use serde_json::{Value, json};

use super::{Answer, CREATED, Frame, named_event, split_into_pieces};
use crate::script::{ReplyPart, Stop, signature_or_generated};

/// Encodes the token counts of a reply. Cached tokens are included in the input's count, and
/// reasoning in the output's.
fn usage_json(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.all_input(),
        "input_tokens_details": { "cached_tokens": usage.cached_input, "cache_write_tokens": usage.cache_write },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": usage.reasoning },
        "total_tokens": usage.total(),
    })
}

/// Returns the status of a finished response, the name of its last event and, if the response is
/// incomplete, the reason.
fn final_status(stop: Stop) -> (&'static str, &'static str, Option<&'static str>) {
    match stop {
        Stop::EndTurn | Stop::ToolUse => ("completed", "response.completed", None),
        Stop::Length => (
            "incomplete",
            "response.incomplete",
            Some("max_output_tokens"),
        ),
        Stop::Refusal => ("incomplete", "response.incomplete", Some("content_filter")),
    }
}

fn build_response(
    answer: &Answer<'_>,
    status: &str,
    output: &[Value],
    tokens: Option<Usage>,
) -> Value {
    let reason = match status {
        "incomplete" => final_status(answer.stop)
            .2
            .map(|reason| json!({ "reason": reason })),
        _ => None,
    };
    json!({
        "id": format!("resp_{}", answer.tag),
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "background": false,
        "error": null,
        "incomplete_details": reason,
        "instructions": null,
        "max_output_tokens": null,
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": { "effort": null, "summary": null },
        "service_tier": "default",
        "store": false,
        "temperature": 1.0,
        "text": { "format": { "type": "text" } },
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": tokens.map(usage_json),
        "user": null,
        "metadata": {},
    })
}

/// Builds the output items of a finished response, in order.
fn build_output_items(answer: &Answer<'_>) -> Vec<Value> {
    let mut calls = 0;
    // Only a message that was cut off is incomplete; the items before it are complete.
    let last = answer.parts.len().saturating_sub(1);
    let mut items = Vec::with_capacity(answer.parts.len());
    for (index, part) in answer.parts.iter().enumerate() {
        let status = if index == last {
            final_status(answer.stop).0
        } else {
            "completed"
        };
        items.push(match part {
            ReplyPart::Text { text, .. } => json!({
                "id": format!("msg_{}_{index}", answer.tag),
                "type": "message",
                "status": status,
                "role": "assistant",
                "content": [text_part(text)],
            }),
            ReplyPart::Thinking { text, signature } => {
                let summary = if text.is_empty() {
                    json!([])
                } else {
                    json!([summary_part(text)])
                };
                let mut item = json!({
                    "id": format!("rs_{}_{index}", answer.tag),
                    "type": "reasoning",
                    "summary": summary,
                });
                if let Some(proof) = signature_or_generated(signature.as_deref(), text)
                    && answer.wants.encrypted_reasoning
                {
                    item["encrypted_content"] = proof.into();
                }
                item
            }
            ReplyPart::ToolCall(call) => {
                calls += 1;
                json!({
                    "id": format!("fc_{}_{index}", answer.tag),
                    "type": "function_call",
                    "status": status,
                    "arguments": call.arguments_text(),
                    "call_id": answer.call_id("call", calls - 1, call),
                    "name": call.name,
                })
            }
        });
    }
    items
}

fn text_part(text: &str) -> Value {
    json!({ "type": "output_text", "text": text, "annotations": [], "logprobs": [] })
}

fn summary_part(text: &str) -> Value {
    json!({ "type": "summary_text", "text": text })
}

pub(super) fn build_final_response(answer: &Answer<'_>) -> Value {
    build_response(
        answer,
        final_status(answer.stop).0,
        &build_output_items(answer),
        Some(answer.usage),
    )
}

/// Stream events, numbered in the order in which they are added.
struct NumberedEvents {
    frames: Vec<Frame>,
}

impl NumberedEvents {
    fn push(&mut self, name: &str, mut fields: Value) {
        let mut event = json!({ "type": name, "sequence_number": self.frames.len() });
        if let (Some(event), Some(fields)) = (event.as_object_mut(), fields.as_object_mut()) {
            event.append(fields);
        }
        let ends = matches!(name, "response.completed" | "response.incomplete");
        self.frames.push(Frame {
            bytes: named_event(name, &event),
            ends,
        });
    }
}

pub(super) fn stream_frames(answer: &Answer<'_>) -> Vec<Frame> {
    let mut events = NumberedEvents { frames: Vec::new() };
    let begun = build_response(answer, "in_progress", &[], None);
    events.push("response.created", json!({ "response": begun }));
    events.push("response.in_progress", json!({ "response": begun }));
    let items = build_output_items(answer);
    for (index, (part, item)) in answer.parts.iter().zip(&items).enumerate() {
        let added = announced_item(item);
        events.push(
            "response.output_item.added",
            json!({ "output_index": index, "item": added }),
        );
        let at = |mut fields: Value| {
            fields["item_id"] = item["id"].clone();
            fields["output_index"] = index.into();
            fields
        };
        match part {
            ReplyPart::Text { text, .. } => {
                let inner = |mut fields: Value| {
                    fields["content_index"] = 0.into();
                    at(fields)
                };
                events.push(
                    "response.content_part.added",
                    inner(json!({ "part": text_part("") })),
                );
                for piece in split_into_pieces(text, answer.delta_chars) {
                    events.push(
                        "response.output_text.delta",
                        inner(json!({ "delta": piece, "logprobs": [] })),
                    );
                }
                events.push(
                    "response.output_text.done",
                    inner(json!({ "text": text, "logprobs": [] })),
                );
                events.push(
                    "response.content_part.done",
                    inner(json!({ "part": text_part(text) })),
                );
            }
            ReplyPart::Thinking { text, .. } if text.is_empty() => {}
            ReplyPart::Thinking { text, .. } => {
                let inner = |mut fields: Value| {
                    fields["summary_index"] = 0.into();
                    at(fields)
                };
                events.push(
                    "response.reasoning_summary_part.added",
                    inner(json!({ "part": summary_part("") })),
                );
                for piece in split_into_pieces(text, answer.delta_chars) {
                    events.push(
                        "response.reasoning_summary_text.delta",
                        inner(json!({ "delta": piece })),
                    );
                }
                events.push(
                    "response.reasoning_summary_text.done",
                    inner(json!({ "text": text })),
                );
                events.push(
                    "response.reasoning_summary_part.done",
                    inner(json!({ "part": summary_part(text) })),
                );
            }
            ReplyPart::ToolCall(call) => {
                let arguments = call.arguments_text();
                for piece in split_into_pieces(&arguments, answer.delta_chars) {
                    events.push(
                        "response.function_call_arguments.delta",
                        at(json!({ "delta": piece })),
                    );
                }
                let done = json!({ "name": call.name, "arguments": arguments });
                events.push("response.function_call_arguments.done", at(done));
            }
        }
        events.push(
            "response.output_item.done",
            json!({ "output_index": index, "item": item }),
        );
    }
    let (status, name, _) = final_status(answer.stop);
    events.push(
        name,
        json!({ "response": build_response(answer, status, &items, Some(answer.usage)) }),
    );
    events.frames
}

/// Returns an output item in the form in which the stream first announces it, with empty content.
fn announced_item(item: &Value) -> Value {
    let mut item = item.clone();
    match item["type"].as_str() {
        Some("message") => {
            item["content"] = json!([]);
            item["status"] = "in_progress".into();
        }
        Some("function_call") => {
            item["arguments"] = "".into();
            item["status"] = "in_progress".into();
        }
        _ => item["summary"] = json!([]),
    }
    item
}
