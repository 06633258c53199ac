//! Gemini generateContent: candidates whose parts carry text, thoughts or calls; the last chunk has
//! the finish reason.

use haft_types::Usage;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{Answer, Frame, data_event, json_bytes, split_into_pieces};
use crate::script::{ReplyPart, Stop, signature_or_generated};

fn finish_reason(stop: Stop) -> &'static str {
    match stop {
        Stop::EndTurn | Stop::ToolUse => "STOP",
        Stop::Length => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
    }
}

/// Encodes the token counts of a reply. Cached tokens are included in the prompt's count; thoughts
/// are not included in the candidates' count.
fn usage_json(usage: Usage) -> Value {
    let mut counts = json!({
        "promptTokenCount": usage.all_input(),
        "candidatesTokenCount": usage.output.saturating_sub(usage.reasoning),
        "totalTokenCount": usage.total(),
        "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": usage.all_input() }],
    });
    // The service omits counts that are zero.
    if usage.cached_input > 0 {
        counts["cachedContentTokenCount"] = usage.cached_input.into();
    }
    if usage.reasoning > 0 {
        counts["thoughtsTokenCount"] = usage.reasoning.into();
    }
    counts
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Chunk<'a> {
    candidates: [Candidate<'a>; 1],
    usage_metadata: Value,
    model_version: &'a str,
    response_id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'static str>,
    index: u32,
}

#[derive(Serialize)]
struct Content<'a> {
    parts: Vec<Part<'a>>,
    role: &'static str,
}

#[derive(Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<Call<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Clone, Serialize)]
struct Call<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    name: &'a str,
    args: Args,
}

/// The arguments of a call, verbatim if they are JSON. Text that isn't JSON can only be sent as a
/// string.
#[derive(Clone, Serialize)]
#[serde(untagged)]
enum Args {
    Json(Box<RawValue>),
    Text(String),
}

/// Builds the parts of a reply, with signatures at the places where the service puts them. The
/// signature of reasoning is on the part after it. For models that require one, there is a
/// signature on the first call.
fn build_parts<'a>(answer: &'a Answer<'_>) -> Vec<Part<'a>> {
    let mut waiting = None::<String>;
    let mut first_call = true;
    let mut found = Vec::with_capacity(answer.parts.len());
    for part in &answer.parts {
        found.push(match part {
            ReplyPart::Thinking { text, signature } => {
                waiting = signature_or_generated(signature.as_deref(), text);
                Part {
                    text: Some(text),
                    thought: Some(true),
                    ..Part::default()
                }
            }
            ReplyPart::Text { text, signature } => {
                let thought_signature = signature.clone().or_else(|| waiting.take());
                Part {
                    text: Some(text),
                    thought_signature,
                    ..Part::default()
                }
            }
            ReplyPart::ToolCall(call) => {
                let args = match RawValue::from_string(call.arguments_text()) {
                    Ok(json) => Args::Json(json),
                    Err(_) => Args::Text(call.arguments_text()),
                };
                let made = (first_call && answer.model.starts_with("gemini-3"))
                    .then(|| signature_or_generated(None, &call.name))
                    .flatten();
                first_call = false;
                let scripted = call
                    .signature
                    .clone()
                    .filter(|signature| !signature.is_empty());
                let thought_signature = match call.signature {
                    Some(_) => scripted,
                    None => waiting.take().or(made),
                };
                let function_call = Some(Call {
                    id: call.id.as_deref(),
                    name: &call.name,
                    args,
                });
                Part {
                    function_call,
                    thought_signature,
                    ..Part::default()
                }
            }
        });
    }
    found
}

fn build_chunk<'a>(
    answer: &'a Answer<'_>,
    parts: Vec<Part<'a>>,
    finish_reason: Option<&'static str>,
    usage_metadata: Value,
) -> Chunk<'a> {
    Chunk {
        candidates: [Candidate {
            content: Content {
                parts,
                role: "model",
            },
            finish_reason,
            index: 0,
        }],
        usage_metadata,
        model_version: answer.model,
        response_id: format!("gen-{}", answer.tag),
    }
}

pub(super) fn build_final_chunk<'a>(answer: &'a Answer<'_>) -> Chunk<'a> {
    build_chunk(
        answer,
        build_parts(answer),
        Some(finish_reason(answer.stop)),
        usage_json(answer.usage),
    )
}

pub(super) fn stream_frames(answer: &Answer<'_>) -> Vec<Frame> {
    let input = answer.usage.all_input();
    let so_far = || json!({ "promptTokenCount": input, "totalTokenCount": input });
    let mut chunks = Vec::new();
    for part in build_parts(answer) {
        match part.text {
            None => chunks.push(build_chunk(answer, vec![part], None, so_far())),
            Some(text) => {
                let count = split_into_pieces(text, answer.delta_chars).count();
                for (index, piece) in split_into_pieces(text, answer.delta_chars).enumerate() {
                    // Only the last piece carries the signature.
                    let thought_signature = part
                        .thought_signature
                        .clone()
                        .filter(|_| index + 1 == count);
                    let piece = Part {
                        text: Some(piece),
                        thought_signature,
                        ..part.clone()
                    };
                    chunks.push(build_chunk(answer, vec![piece], None, so_far()));
                }
            }
        }
    }
    let empty = Part {
        text: Some(""),
        ..Part::default()
    };
    chunks.push(build_chunk(
        answer,
        vec![empty],
        Some(finish_reason(answer.stop)),
        usage_json(answer.usage),
    ));

    let last = chunks.len() - 1;
    let frame = |(index, chunk): (usize, &Chunk<'_>)| {
        let bytes = if answer.wants.events {
            data_event(chunk)
        } else {
            // Without `alt=sse` the service streams one JSON list.
            let mut bytes = if index == 0 {
                b"[".to_vec()
            } else {
                b",\r\n".to_vec()
            };
            bytes.extend(json_bytes(chunk));
            if index == last {
                bytes.extend(b"]");
            }
            bytes
        };
        Frame {
            bytes,
            ends: index == last,
        }
    };
    chunks.iter().enumerate().map(frame).collect()
}
