//! Encodes scripted replies as the bytes each service would send.
//!
//! All fields and events that the official clients read are included, in the services' order.
//! Nothing depends on the clock or on randomness: equal scripts and requests give equal bytes.

use haft_types::{Api, Usage};
use serde::Serialize;
use serde_json::Value;

use crate::script::{ReplyPart, Script, ScriptCall, Stop};

mod anthropic;
pub(crate) mod error;
mod gemini;
mod openai_chat;
mod openai_responses;

/// The creation time that every reply reports: 2025-01-01T00:00:00Z.
const CREATED: u64 = 1_735_689_600;

/// A reply ready to be encoded for any API.
pub(crate) struct Answer<'a> {
    /// A text that makes the ids in this reply different from those in other replies of the
    /// conversation.
    pub(crate) tag: String,
    pub(crate) model: &'a str,
    pub(crate) parts: Vec<ReplyPart>,
    pub(crate) usage: Usage,
    pub(crate) stop: Stop,
    pub(crate) delta_chars: usize,
    pub(crate) wants: Wants,
}

/// The options in a request that affect the form of its reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wants {
    /// True if a Chat Completions stream must report the usage in a final chunk.
    pub(crate) usage_chunk: bool,
    /// True if Responses must send reasoning in a form that clients can send back.
    pub(crate) encrypted_reasoning: bool,
    /// True if Gemini must send server-sent events instead of a JSON list.
    pub(crate) events: bool,
}

impl Wants {
    /// Reads the options from the body of a request and from the query string of its path.
    pub(crate) fn from_request(body: &Value, query: &str) -> Self {
        let included = body.get("include").and_then(Value::as_array);
        Self {
            usage_chunk: body
                .pointer("/stream_options/include_usage")
                .and_then(Value::as_bool)
                .unwrap_or(false),
            encrypted_reasoning: included.is_some_and(|list| {
                list.iter()
                    .any(|item| item.as_str() == Some("reasoning.encrypted_content"))
            }),
            events: query.split('&').any(|pair| pair == "alt=sse"),
        }
    }

    /// All options, as our streaming clients set them. Used if the request body is not parsed.
    pub(crate) const ALL: Self = Self {
        usage_chunk: true,
        encrypted_reasoning: true,
        events: true,
    };
}

impl Answer<'_> {
    fn call_id(&self, prefix: &str, index: usize, call: &ScriptCall) -> String {
        call.id
            .clone()
            .unwrap_or_else(|| format!("{prefix}_{}_{}", self.tag, index + 1))
    }
}

/// One event of a stream, encoded as bytes.
pub(crate) struct Frame {
    pub(crate) bytes: Vec<u8>,
    /// True if the event belongs to the end of the message, which a script can omit.
    pub(crate) ends: bool,
}

/// Encodes a reply as the events of a stream.
pub(crate) fn stream_frames(api: Api, answer: &Answer<'_>) -> Vec<Frame> {
    match api {
        Api::OpenaiChat => openai_chat::stream_frames(answer),
        Api::OpenaiResponses => openai_responses::stream_frames(answer),
        Api::Anthropic => anthropic::stream_frames(answer),
        Api::Gemini => gemini::stream_frames(answer),
    }
}

/// Encodes a reply as a single body.
pub(crate) fn encode_whole_body(api: Api, answer: &Answer<'_>) -> Vec<u8> {
    match api {
        Api::OpenaiChat => json_bytes(&openai_chat::build_completion(answer)),
        Api::OpenaiResponses => json_bytes(&openai_responses::build_final_response(answer)),
        Api::Anthropic => json_bytes(&anthropic::build_message(answer)),
        Api::Gemini => json_bytes(&gemini::build_final_chunk(answer)),
    }
}

/// Encodes the reply to a request for a token count. The OpenAI APIs have no such request.
pub(crate) fn encode_token_count(api: Api, tokens: u64) -> Value {
    match api {
        Api::OpenaiChat | Api::OpenaiResponses | Api::Anthropic => {
            serde_json::json!({ "input_tokens": tokens })
        }
        Api::Gemini => serde_json::json!({
            "totalTokens": tokens,
            "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": tokens }],
        }),
    }
}

/// Encodes a list of the models that a script names.
pub(crate) fn encode_models(api: Api, script: &Script) -> Value {
    use serde_json::json;
    match api {
        Api::OpenaiChat | Api::OpenaiResponses => {
            let model = |name: &String| json!({ "id": name, "object": "model", "created": CREATED, "owned_by": "script" });
            json!({ "object": "list", "data": script.models.iter().map(model).collect::<Vec<_>>() })
        }
        Api::Anthropic => {
            let model = |name: &String| json!({ "type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z" });
            json!({
                "data": script.models.iter().map(model).collect::<Vec<_>>(),
                "has_more": false,
                "first_id": script.models.first(),
                "last_id": script.models.last(),
            })
        }
        Api::Gemini => {
            let model = |name: &String| {
                json!({
                    "name": format!("models/{name}"),
                    "version": "001",
                    "displayName": name,
                    "inputTokenLimit": 1_048_576,
                    "outputTokenLimit": 65_536,
                    "supportedGenerationMethods": ["generateContent", "countTokens"],
                })
            };
            json!({ "models": script.models.iter().map(model).collect::<Vec<_>>() })
        }
    }
}

/// Serializes a value. This can't fail for our types, which have string keys and finite numbers.
pub(crate) fn json_bytes(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// Encodes a server-sent event that has data but no name.
fn data_event(value: &impl Serialize) -> Vec<u8> {
    let mut bytes = b"data: ".to_vec();
    bytes.extend(json_bytes(value));
    bytes.extend(b"\n\n");
    bytes
}

/// Encodes a server-sent event with a name.
fn named_event(name: &str, value: &impl Serialize) -> Vec<u8> {
    let mut bytes = format!("event: {name}\n").into_bytes();
    bytes.extend(data_event(value));
    bytes
}

/// Splits a text into pieces of `characters` characters. An empty text has no pieces.
fn split_into_pieces(text: &str, characters: usize) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let end = rest
            .char_indices()
            .nth(characters)
            .map_or(rest.len(), |(end, _)| end);
        let (piece, after) = rest.split_at(end);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

#[cfg(test)]
mod tests;
