//! Encodes requests. The input is a flat list of items: messages, calls, outputs, and unchanged
//! reasoning items.

use std::borrow::Cow;

use haft_types::{Image, Message, Part, Request, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};

use crate::wire::json::{self, append_field};
use crate::wire::names::{limit_id_length, sanitize_tool_name};
use crate::wire::openai::{self, OpenaiMessages};
use crate::wire::{CacheMark, Fragment, IMAGE_OMITTED, Settings, Wire, WireFrame, WireTurn};

/// The maximum length of a call id that the API accepts.
const MAX_CALL_ID_LEN: usize = 64;
/// Model families without reasoning. These models reject a request for encrypted reasoning.
const NON_REASONING_FAMILIES: [&str; 3] = ["gpt-3", "gpt-4", "chatgpt-4"];

pub(crate) struct ResponsesWire(pub(crate) Settings);

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesItem<'a> {
    Message {
        role: &'static str,
        content: Vec<ResponsesPiece<'a>>,
    },
    FunctionCall {
        call_id: Cow<'a, str>,
        name: Cow<'a, str>,
        arguments: &'a str,
    },
    FunctionCallOutput {
        call_id: Cow<'a, str>,
        output: ResponsesOutput<'a>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesOutput<'a> {
    Text(&'a str),
    Pieces(Vec<ResponsesPiece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ResponsesPiece<'a> {
    InputText {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Value>,
    },
    InputImage {
        image_url: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Value>,
    },
    OutputText {
        text: &'a str,
    },
}

impl Wire for ResponsesWire {
    fn encode_front(&self, request: &Request) -> Vec<u8> {
        let Settings {
            spec,
            extra,
            stream,
            ..
        } = &self.0;
        let mut out = json::open_body("model", &spec.name);
        if let (Some(limit), false) = (
            request.max_output_tokens.or(spec.max_output_tokens),
            extra.contains_key("max_output_tokens"),
        ) {
            append_field(&mut out, "max_output_tokens", &limit);
        }
        if *stream {
            append_field(&mut out, "stream", &true);
        }
        // Nothing is stored on the server, so the reasoning must be returned in encrypted form.
        if !extra.contains_key("store") {
            append_field(&mut out, "store", &false);
        }
        let reasons = !NON_REASONING_FAMILIES
            .iter()
            .any(|family| spec.name.starts_with(family));
        if reasons && self.0.adds_field("include") {
            append_field(&mut out, "include", &["reasoning.encrypted_content"]);
        }
        if let (Some(key), true) = (&request.cache_key, self.0.adds_field("prompt_cache_key")) {
            append_field(&mut out, "prompt_cache_key", key);
        }
        json::append_fields(&mut out, extra);
        out
    }

    fn encode_tools(&self, tools: &[ToolSpec], _: CacheMark) -> Value {
        let function = |tool: &ToolSpec| {
            json!({
                "type": "function", "name": tool.name, "description": tool.description, "parameters": tool.parameters,
                // Strict mode requires schemas in which every property is required.
                "strict": false,
            })
        };
        tools.iter().map(function).collect()
    }

    fn system_frame(&self) -> Option<WireFrame> {
        Some(WireFrame {
            open: "\"instructions\":\"",
            between: "\\n\\n",
            close: "\"",
        })
    }

    /// Returns the system text as the content of a JSON string, without the quotes: they are part
    /// of the frame around the text.
    fn encode_system(&self, message: &Message, _: CacheMark) -> Vec<u8> {
        let mut out = Vec::new();
        json::append_value(&mut out, &message.joined_text());
        out.pop();
        out.drain(..out.len().min(1));
        out
    }

    fn list_opening(&self) -> &'static str {
        "\"input\":["
    }

    fn encode_message(&self, message: &Message, mark: CacheMark) -> Fragment {
        self.encode_by_role(message, mark)
    }
}

impl OpenaiMessages for ResponsesWire {
    fn encode_input(&self, role: &'static str, message: &Message, mark: CacheMark) -> Fragment {
        let mut content =
            openai::content_pieces(message, input_text, |image| self.image_piece(image));
        self.mark_last_piece(&mut content, mark);
        let mut fragment = Fragment::new(WireTurn::User);
        if !content.is_empty() {
            json::append_item(
                &mut fragment.items,
                &ResponsesItem::Message { role, content },
            );
        }
        fragment
    }

    /// Encodes a reply. Reasoning at the end is left out, because the API rejects a reasoning item
    /// without the item to which the reasoning led.
    fn encode_reply(&self, message: &Message) -> Fragment {
        let made_here = self.0.is_author_of(message);
        let mut fragment = Fragment::new(WireTurn::Assistant);
        let mut reasoning: Vec<&str> = Vec::new();
        for part in &message.content {
            let item = match part {
                Part::Text { text, .. } if text.trim().is_empty() => continue,
                Part::Text { text, .. } => ResponsesItem::Message {
                    role: "assistant",
                    content: vec![ResponsesPiece::OutputText { text }],
                },
                Part::ToolCall(call) => ResponsesItem::FunctionCall {
                    call_id: limit_id_length(&call.id, MAX_CALL_ID_LEN),
                    name: sanitize_tool_name(&call.name),
                    arguments: self.0.call_arguments(call),
                },
                Part::Thinking(thinking) => {
                    // The server stored nothing, so it cannot find an item without its encrypted
                    // content.
                    let raw = thinking
                        .raw
                        .as_deref()
                        .filter(|_| made_here && thinking.signature.is_some());
                    reasoning.extend(raw.and_then(|raw| json::check_raw_item(raw, "reasoning")));
                    continue;
                }
                Part::ToolResult(_) | Part::Image(_) => continue,
            };
            for raw in reasoning.drain(..) {
                json::append_raw_item(&mut fragment.items, raw);
            }
            json::append_item(&mut fragment.items, &item);
        }
        fragment
    }

    fn encode_results(&self, message: &Message, mark: CacheMark) -> Fragment {
        let mut items: Vec<(Cow<'_, str>, Vec<ResponsesPiece<'_>>)> = Vec::new();
        for part in &message.content {
            match part {
                Part::ToolResult(result) => {
                    items.push((
                        limit_id_length(&result.tool_call_id, MAX_CALL_ID_LEN),
                        vec![input_text(&result.envelope.text)],
                    ));
                }
                Part::Image(image) => {
                    if let Some((_, pieces)) = items.last_mut() {
                        pieces.push(self.image_piece(image));
                    }
                }
                Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) => {}
            }
        }
        if let Some((_, pieces)) = items.last_mut() {
            self.mark_last_piece(pieces, mark);
        }
        let mut fragment = Fragment::new(WireTurn::User);
        for (call_id, pieces) in items {
            let output = match pieces.as_slice() {
                [
                    ResponsesPiece::InputText {
                        text,
                        prompt_cache_breakpoint: None,
                    },
                ] => ResponsesOutput::Text(text),
                _ => ResponsesOutput::Pieces(pieces),
            };
            json::append_item(
                &mut fragment.results,
                &ResponsesItem::FunctionCallOutput { call_id, output },
            );
        }
        fragment
    }
}

impl ResponsesWire {
    fn image_piece(&self, image: &Image) -> ResponsesPiece<'static> {
        match openai::image_data_url(&self.0, image) {
            Some(image_url) => ResponsesPiece::InputImage {
                image_url,
                prompt_cache_breakpoint: None,
            },
            None => input_text(IMAGE_OMITTED),
        }
    }

    /// Adds a cache breakpoint to the last input piece, but not to output of the model, which
    /// cannot have one.
    fn mark_last_piece(&self, pieces: &mut [ResponsesPiece<'_>], mark: CacheMark) {
        match pieces.last_mut() {
            Some(
                ResponsesPiece::InputText {
                    prompt_cache_breakpoint,
                    ..
                }
                | ResponsesPiece::InputImage {
                    prompt_cache_breakpoint,
                    ..
                },
            ) => *prompt_cache_breakpoint = openai::cache_breakpoint(&self.0, mark),
            Some(ResponsesPiece::OutputText { .. }) | None => {}
        }
    }
}

fn input_text(text: &str) -> ResponsesPiece<'_> {
    ResponsesPiece::InputText {
        text,
        prompt_cache_breakpoint: None,
    }
}
