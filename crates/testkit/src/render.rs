//! Builds the HTTP response for a chosen reply, including every scripted fault.

use std::time::Duration;

use bytes::Bytes;
use haft_types::{Api, Usage};
use hyper::Response;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use serde_json::Value;

use crate::body::{End, Length, ScriptBody};
use crate::script::{Hold, Replace, Reply, ReplyPart, ScriptedError, Stop};
use crate::wire::{self, Answer, Wants, json_bytes};

/// The default size of a text delta, in characters. It is so small that even a sentence takes
/// several deltas.
const DEFAULT_DELTA_CHARS: usize = 24;
const JSON_CONTENT_TYPE: &str = "application/json";
const EVENTS_CONTENT_TYPE: &str = "text/event-stream; charset=utf-8";

/// The properties of a request that determine the form of the reply.
pub(crate) struct RequestTraits<'a> {
    pub(crate) api: Api,
    pub(crate) model: &'a str,
    pub(crate) stream: bool,
    pub(crate) wants: Wants,
    /// A text that makes the ids in this reply different from those in other replies of the
    /// conversation.
    pub(crate) tag: String,
    pub(crate) body_bytes: usize,
}

/// Builds the response for a reply of the script.
pub(crate) fn build_response(reply: &Reply, asked: RequestTraits<'_>) -> Response<ScriptBody> {
    let api = asked.api;
    let fault = reply
        .error
        .clone()
        .unwrap_or_else(|| ScriptedError::new("an error as the script says"));
    if let Some(garbage) = &reply.garbage {
        let pieces = vec![garbage.body.clone()];
        let status = reply.status.unwrap_or(200);
        return assemble_response(reply, status, &garbage.content_type, pieces, Length::Known);
    }
    let http_error = match reply.error_event_after {
        None => reply.status,
        // Only a stream can carry an error in its middle.
        Some(_) if !asked.stream => Some(reply.status.unwrap_or(500)),
        Some(_) => None,
    };
    if let Some(status) = http_error {
        let body = wire::error::error_body(api, status, &fault, reply.retry_after);
        return assemble_response(
            reply,
            status,
            JSON_CONTENT_TYPE,
            vec![json_bytes(&body)],
            Length::Known,
        );
    }

    let stream = asked.stream;
    let as_events = asked.wants.events || api != Api::Gemini;
    let answer = build_answer(reply, asked);
    if !stream {
        return assemble_response(
            reply,
            200,
            JSON_CONTENT_TYPE,
            vec![wire::encode_whole_body(api, &answer)],
            Length::Known,
        );
    }
    let mut frames = wire::stream_frames(api, &answer);
    if reply.omit_end {
        let kept = frames
            .iter()
            .position(|frame| frame.ends)
            .unwrap_or(frames.len());
        frames.truncate(kept);
    }
    let mut pieces: Vec<Vec<u8>> = frames.into_iter().map(|frame| frame.bytes).collect();
    if let Some(count) = reply.error_event_after {
        pieces.truncate(count);
        pieces.push(wire::error::error_event(
            api,
            reply.status.unwrap_or(500),
            &fault,
            pieces.len(),
        ));
    }
    assemble_response(
        reply,
        200,
        if as_events {
            EVENTS_CONTENT_TYPE
        } else {
            JSON_CONTENT_TYPE
        },
        pieces,
        Length::Unknown,
    )
}

/// Builds a response with a JSON body, for responses that the script does not contain: errors,
/// lists and token counts.
pub(crate) fn json_response(status: u16, body: &Value) -> Response<ScriptBody> {
    assemble_response(
        &Reply::default(),
        status,
        JSON_CONTENT_TYPE,
        vec![json_bytes(body)],
        Length::Known,
    )
}

fn build_answer<'a>(reply: &Reply, asked: RequestTraits<'a>) -> Answer<'a> {
    let parts = reply.ordered_parts();
    let calls = parts
        .iter()
        .any(|part| matches!(part, ReplyPart::ToolCall(_)));
    Answer {
        tag: asked.tag,
        model: asked.model,
        usage: reply
            .usage
            .unwrap_or_else(|| estimate_usage(asked.body_bytes, &parts)),
        stop: reply
            .stop
            .unwrap_or(if calls { Stop::ToolUse } else { Stop::EndTurn }),
        delta_chars: reply.delta_chars.unwrap_or(DEFAULT_DELTA_CHARS),
        wants: asked.wants,
        parts,
    }
}

/// Estimates the number of tokens in `bytes` bytes, at four bytes per token.
pub(crate) fn estimate_tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}

fn estimate_usage(body_bytes: usize, parts: &[ReplyPart]) -> Usage {
    let mut said = 0;
    let mut thought = 0;
    for part in parts {
        match part {
            ReplyPart::Text { text, .. } => said += text.len(),
            ReplyPart::Thinking { text, .. } => thought += text.len(),
            ReplyPart::ToolCall(call) => said += call.name.len() + call.arguments_text().len(),
        }
    }
    let reasoning = estimate_tokens(thought);
    Usage {
        input: estimate_tokens(body_bytes),
        output: estimate_tokens(said) + reasoning,
        reasoning,
        ..Usage::default()
    }
}

fn assemble_response(
    reply: &Reply,
    status: u16,
    content_type: &str,
    mut pieces: Vec<Vec<u8>>,
    length: Length,
) -> Response<ScriptBody> {
    if let Some(Replace { find, with }) = &reply.replace {
        for piece in &mut pieces {
            let at = piece
                .windows(find.len())
                .position(|window| window == find.as_bytes());
            if let Some(at) = at {
                piece.splice(at..at + find.len(), with.iter().copied());
            }
        }
    }
    let total: usize = pieces.iter().map(Vec::len).sum();
    let mut pieces: Vec<Bytes> = match (reply.drop_after_bytes, reply.chunk_bytes) {
        (None, None) => pieces.into_iter().map(Bytes::from).collect(),
        (None, Some(size)) => split_body(&Bytes::from(pieces.concat()), size),
        (Some(end), size) => {
            let whole = Bytes::from(pieces.concat());
            let kept = whole.slice(..end.min(total));
            split_body(&kept, size.unwrap_or(kept.len().max(1)))
        }
    };
    pieces.retain(|piece| !piece.is_empty());
    let end = if reply.drop_after_bytes.is_some() {
        End::Drop
    } else {
        End::Clean
    };
    // The body of a dropped reply reports no length, since `content-length` is set below to the
    // uncut size.
    let body_length = if end == End::Drop {
        Length::Unknown
    } else {
        length
    };
    let half = pieces.len() / 2;
    let mut body = ScriptBody::new(
        pieces,
        Duration::from_millis(reply.delta_delay_ms),
        end,
        body_length,
    );
    match &reply.hold {
        Some(Hold::Start(gate)) => body = body.held_after(0, gate.clone()),
        Some(Hold::Middle(gate)) => body = body.held_after(half, gate.clone()),
        None => {}
    }
    let mut response = Response::new(body);
    if let Ok(status) = status.try_into() {
        *response.status_mut() = status;
    }
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(content_type) {
        headers.insert(CONTENT_TYPE, value);
    }
    if length == Length::Known && end == End::Drop {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(total));
    }
    if let Some(seconds) = reply.retry_after {
        headers.insert("retry-after", HeaderValue::from(seconds.ceil() as u64));
        if seconds.fract() > 0.0 {
            headers.insert(
                "retry-after-ms",
                HeaderValue::from((seconds * 1000.0) as u64),
            );
        }
    }
    response
}

fn split_body(body: &Bytes, size: usize) -> Vec<Bytes> {
    (0..body.len())
        .step_by(size)
        .map(|start| body.slice(start..body.len().min(start + size)))
        .collect()
}
