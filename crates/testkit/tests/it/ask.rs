//! Requests in the format of each API, and a parser of replies that is independent of haft.

#![expect(clippy::unwrap_used, reason = "what helps tests fails as tests do")]

use haft_testkit::support::{RawClient, RawReply};
use haft_testkit::{Reply, Script, ScriptedServer};
use haft_types::{Api, Usage};
use serde_json::{Value, json};

pub(crate) const HEADERS: [(&str, &str); 2] = [
    ("content-type", "application/json"),
    ("anthropic-version", "2023-06-01"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    Whole,
    Stream,
}

pub(crate) const MODES: [Mode; 2] = [Mode::Whole, Mode::Stream];

/// The path and body of a first request.
pub(crate) fn first_request(api: Api, mode: Mode) -> (&'static str, Value) {
    let stream = mode == Mode::Stream;
    let user = json!([{ "role": "user", "content": "Hi." }]);
    match api {
        Api::OpenaiChat if stream => (
            "/v1/chat/completions",
            json!({ "model": "m", "stream": true, "stream_options": { "include_usage": true }, "messages": user }),
        ),
        Api::OpenaiChat => (
            "/v1/chat/completions",
            json!({ "model": "m", "messages": user }),
        ),
        Api::OpenaiResponses => (
            "/v1/responses",
            json!({
                "model": "m", "stream": stream, "store": false,
                "include": ["reasoning.encrypted_content"], "input": user,
            }),
        ),
        Api::Anthropic => (
            "/v1/messages",
            json!({ "model": "m", "max_tokens": 9, "stream": stream, "messages": user }),
        ),
        Api::Gemini => (
            if stream {
                "/v1beta/models/m:streamGenerateContent?alt=sse"
            } else {
                "/v1beta/models/m:generateContent"
            },
            json!({ "contents": [{ "role": "user", "parts": [{ "text": "Hi." }] }] }),
        ),
    }
}

pub(crate) async fn serve(replies: impl IntoIterator<Item = Reply>) -> ScriptedServer {
    ScriptedServer::start(Script::replies(replies).unwrap())
        .await
        .unwrap()
}

pub(crate) async fn ask(server: &ScriptedServer, api: Api, mode: Mode) -> RawReply {
    let (path, body) = first_request(api, mode);
    RawClient::connect(server.address())
        .await
        .unwrap()
        .post(path, &HEADERS, &body)
        .await
        .unwrap()
}

/// A parsed reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ParsedReply {
    pub(crate) text: String,
    pub(crate) thinking: String,
    pub(crate) signature: String,
    /// Id (where the API sends one), name, arguments.
    pub(crate) calls: Vec<(String, String, String)>,
    pub(crate) stop: String,
    pub(crate) usage: Usage,
}

fn string_or_empty(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn number_or_zero(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

pub(crate) fn parse_reply(api: Api, mode: Mode, reply: &RawReply) -> ParsedReply {
    assert!(reply.complete, "{api} {mode:?}: cut off");
    let values: Vec<Value> = match mode {
        Mode::Whole => vec![reply.json()],
        Mode::Stream => reply
            .events()
            .into_iter()
            .filter(|(_, data)| data != "[DONE]")
            .map(|(name, data)| {
                let value: Value = serde_json::from_str(&data).unwrap();
                // Where events have names, they repeat the type of the data.
                assert!(
                    name.is_empty() || value["type"] == name.as_str(),
                    "{name}: {value}"
                );
                value
            })
            .collect(),
    };
    let mut found = ParsedReply::default();
    for value in &values {
        match api {
            Api::OpenaiChat => parse_chat(value, &mut found),
            Api::OpenaiResponses => parse_responses(value, &mut found),
            Api::Anthropic => parse_anthropic(value, &mut found),
            Api::Gemini => parse_gemini(value, &mut found),
        }
    }
    found
}

fn parse_chat(value: &Value, found: &mut ParsedReply) {
    if let Some(choice) = value["choices"].get(0) {
        let said = if choice["delta"].is_object() {
            &choice["delta"]
        } else {
            &choice["message"]
        };
        found.text += &string_or_empty(&said["content"]);
        found.thinking += &string_or_empty(&said["reasoning_content"]);
        for (position, call) in said["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
        {
            let index = call["index"]
                .as_u64()
                .map_or(position, |index| usize::try_from(index).unwrap());
            if index == found.calls.len() {
                found.calls.push((
                    string_or_empty(&call["id"]),
                    string_or_empty(&call["function"]["name"]),
                    String::new(),
                ));
            }
            found.calls[index].2 += &string_or_empty(&call["function"]["arguments"]);
        }
        found.stop += &string_or_empty(&choice["finish_reason"]);
    }
    if value["usage"].is_object() {
        let usage = &value["usage"];
        let read = number_or_zero(&usage["prompt_tokens_details"]["cached_tokens"]);
        let written = number_or_zero(&usage["prompt_tokens_details"]["cache_write_tokens"]);
        found.usage = Usage {
            input: number_or_zero(&usage["prompt_tokens"]) - read - written,
            cached_input: read,
            cache_write: written,
            output: number_or_zero(&usage["completion_tokens"]),
            reasoning: number_or_zero(&usage["completion_tokens_details"]["reasoning_tokens"]),
        };
    }
}

fn parse_responses(value: &Value, found: &mut ParsedReply) {
    match value["type"].as_str().unwrap_or("whole") {
        "response.output_text.delta" => found.text += &string_or_empty(&value["delta"]),
        "response.reasoning_summary_text.delta" => {
            found.thinking += &string_or_empty(&value["delta"]);
        }
        "response.output_item.added" if value["item"]["type"] == "function_call" => {
            found.calls.push((
                string_or_empty(&value["item"]["call_id"]),
                string_or_empty(&value["item"]["name"]),
                String::new(),
            ));
        }
        "response.function_call_arguments.delta" => {
            found.calls.last_mut().unwrap().2 += &string_or_empty(&value["delta"]);
        }
        "response.output_item.done" if value["item"]["type"] == "reasoning" => {
            found.signature += &string_or_empty(&value["item"]["encrypted_content"]);
        }
        "response.completed" | "response.incomplete" => {
            let mut whole = ParsedReply::default();
            parse_responses(&value["response"], &mut whole);
            (found.stop, found.usage) = (whole.stop.clone(), whole.usage);
            assert_eq!(&whole, found, "the deltas and the whole response");
        }
        "whole" => {
            for item in value["output"].as_array().unwrap() {
                match item["type"].as_str().unwrap() {
                    "message" => found.text += &string_or_empty(&item["content"][0]["text"]),
                    "reasoning" => {
                        found.thinking += &string_or_empty(&item["summary"][0]["text"]);
                        found.signature += &string_or_empty(&item["encrypted_content"]);
                    }
                    _ => {
                        found.calls.push((
                            string_or_empty(&item["call_id"]),
                            string_or_empty(&item["name"]),
                            string_or_empty(&item["arguments"]),
                        ));
                    }
                }
            }
            found.stop = match value["incomplete_details"]["reason"].as_str() {
                Some(reason) => reason.to_owned(),
                None => string_or_empty(&value["status"]),
            };
            let usage = &value["usage"];
            let read = number_or_zero(&usage["input_tokens_details"]["cached_tokens"]);
            let written = number_or_zero(&usage["input_tokens_details"]["cache_write_tokens"]);
            found.usage = Usage {
                input: number_or_zero(&usage["input_tokens"]) - read - written,
                cached_input: read,
                cache_write: written,
                output: number_or_zero(&usage["output_tokens"]),
                reasoning: number_or_zero(&usage["output_tokens_details"]["reasoning_tokens"]),
            };
        }
        _ => {}
    }
}

fn parse_anthropic(value: &Value, found: &mut ParsedReply) {
    let count = |usage: &Value| Usage {
        input: number_or_zero(&usage["input_tokens"]),
        cached_input: number_or_zero(&usage["cache_read_input_tokens"]),
        cache_write: number_or_zero(&usage["cache_creation_input_tokens"]),
        output: number_or_zero(&usage["output_tokens"]),
        reasoning: 0,
    };
    match value["type"].as_str().unwrap() {
        "message" => {
            for block in value["content"].as_array().unwrap() {
                found.text += &string_or_empty(&block["text"]);
                found.thinking += &string_or_empty(&block["thinking"]);
                found.signature += &string_or_empty(&block["signature"]);
                if block["type"] == "tool_use" {
                    found.calls.push((
                        string_or_empty(&block["id"]),
                        string_or_empty(&block["name"]),
                        block["input"].to_string(),
                    ));
                }
            }
            found.stop = string_or_empty(&value["stop_reason"]);
            found.usage = count(&value["usage"]);
        }
        "content_block_start" if value["content_block"]["type"] == "tool_use" => {
            let block = &value["content_block"];
            found.calls.push((
                string_or_empty(&block["id"]),
                string_or_empty(&block["name"]),
                String::new(),
            ));
        }
        "content_block_delta" => {
            let delta = &value["delta"];
            found.text += &string_or_empty(&delta["text"]);
            found.thinking += &string_or_empty(&delta["thinking"]);
            found.signature += &string_or_empty(&delta["signature"]);
            if delta["type"] == "input_json_delta" {
                found.calls.last_mut().unwrap().2 += &string_or_empty(&delta["partial_json"]);
            }
        }
        "message_delta" => {
            found.stop = string_or_empty(&value["delta"]["stop_reason"]);
            found.usage = count(&value["usage"]);
        }
        _ => {}
    }
}

fn parse_gemini(value: &Value, found: &mut ParsedReply) {
    let candidate = &value["candidates"][0];
    for part in candidate["content"]["parts"].as_array().unwrap() {
        let into = if part["thought"] == true {
            &mut found.thinking
        } else {
            &mut found.text
        };
        *into += &string_or_empty(&part["text"]);
        found.signature += &string_or_empty(&part["thoughtSignature"]);
        if let Some(call) = part.get("functionCall") {
            found.calls.push((
                string_or_empty(&call["id"]),
                string_or_empty(&call["name"]),
                call["args"].to_string(),
            ));
        }
    }
    found.stop += &string_or_empty(&candidate["finishReason"]);
    let usage = &value["usageMetadata"];
    let read = number_or_zero(&usage["cachedContentTokenCount"]);
    let thought = number_or_zero(&usage["thoughtsTokenCount"]);
    found.usage = Usage {
        input: number_or_zero(&usage["promptTokenCount"]) - read,
        cached_input: read,
        cache_write: 0,
        output: number_or_zero(&usage["candidatesTokenCount"]) + thought,
        reasoning: thought,
    };
}
