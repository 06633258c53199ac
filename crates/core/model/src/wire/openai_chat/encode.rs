//! Encodes requests. Every message is an entry in the list. A tool message takes text only, so
//! images of results follow the block in a user message.

use std::borrow::Cow;

use haft_types::{CacheKind, Image, Message, Part, Request, ToolSpec};
use serde::Serialize;
use serde_json::{Value, json};

use crate::wire::json::{self, append_field};
use crate::wire::names::{limit_id_length, sanitize_tool_name};
use crate::wire::openai::{self, OpenaiMessages};
use crate::wire::{CacheMark, Fragment, IMAGE_OMITTED, Settings, Wire, WireTurn};

/// The maximum length of a call id that OpenAI accepts.
const MAX_CALL_ID_LEN: usize = 40;

pub(crate) struct ChatWire(pub(crate) Settings);

#[derive(Serialize)]
struct ChatMessage<'a> {
    role: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<Cow<'a, str>>,
    content: Option<ChatContent<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a>>,
}

impl<'a> ChatMessage<'a> {
    fn new(role: &'static str, content: Option<ChatContent<'a>>) -> Self {
        Self {
            role,
            tool_call_id: None,
            content,
            reasoning_content: None,
            tool_calls: Vec::new(),
        }
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatContent<'a> {
    Text(&'a str),
    Pieces(Vec<ChatPiece<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ChatPiece<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Value>,
    },
    ImageUrl {
        image_url: ChatImageUrl,
        #[serde(skip_serializing_if = "Option::is_none")]
        prompt_cache_breakpoint: Option<Value>,
    },
}

#[derive(Serialize)]
struct ChatImageUrl {
    url: String,
}

#[derive(Serialize)]
struct ChatCall<'a> {
    id: Cow<'a, str>,
    r#type: &'static str,
    function: ChatFunction<'a>,
}

#[derive(Serialize)]
struct ChatFunction<'a> {
    name: Cow<'a, str>,
    arguments: &'a str,
}

impl Wire for ChatWire {
    fn encode_front(&self, request: &Request) -> Vec<u8> {
        let Settings {
            spec,
            extra,
            stream,
            is_openai,
            ..
        } = &self.0;
        let mut out = json::open_body("model", &spec.name);
        // OpenAI deprecated `max_tokens`, and its reasoning models reject it; most other servers
        // know only `max_tokens`.
        let renamed = spec.capabilities.reasoning && !spec.capabilities.max_tokens || *is_openai;
        let limit_key = if renamed {
            "max_completion_tokens"
        } else {
            "max_tokens"
        };
        let set_by_user = ["max_tokens", "max_completion_tokens"]
            .iter()
            .any(|key| extra.contains_key(*key));
        if let (Some(limit), false) = (
            request.max_output_tokens.or(spec.max_output_tokens),
            set_by_user,
        ) {
            append_field(&mut out, limit_key, &limit);
        }
        if *stream {
            append_field(&mut out, "stream", &true);
            if self.0.adds_field("stream_options") {
                append_field(&mut out, "stream_options", &json!({"include_usage": true}));
            }
        }
        // Only OpenAI's caches use this routing hint; many compatible servers reject fields they
        // don't know.
        let keyed = *is_openai || spec.cache.rule == CacheKind::OpenaiBreakpoints;
        if let (Some(key), true) = (
            &request.cache_key,
            keyed && self.0.adds_field("prompt_cache_key"),
        ) {
            append_field(&mut out, "prompt_cache_key", key);
        }
        json::append_fields(&mut out, extra);
        out
    }

    fn encode_tools(&self, tools: &[ToolSpec], _: CacheMark) -> Value {
        let function = |tool: &ToolSpec| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        };
        tools.iter().map(function).collect()
    }

    fn list_opening(&self) -> &'static str {
        "\"messages\":["
    }

    fn encode_message(&self, message: &Message, mark: CacheMark) -> Fragment {
        self.encode_by_role(message, mark)
    }
}

impl OpenaiMessages for ChatWire {
    fn encode_input(&self, role: &'static str, message: &Message, mark: CacheMark) -> Fragment {
        let pieces = openai::content_pieces(message, text_piece, |image| self.image_piece(image));
        let mut fragment = Fragment::new(WireTurn::User);
        if !pieces.is_empty() {
            json::append_item(
                &mut fragment.items,
                &ChatMessage::new(role, Some(self.message_content(pieces, mark))),
            );
        }
        fragment
    }

    fn encode_results(&self, message: &Message, mark: CacheMark) -> Fragment {
        let mut fragment = Fragment::new(WireTurn::User);
        let last = message.tool_results().count().saturating_sub(1);
        for (index, result) in message.tool_results().enumerate() {
            let mark = if index == last { mark } else { CacheMark::None };
            let content = self.message_content(vec![text_piece(&result.envelope.text)], mark);
            let tool = ChatMessage {
                tool_call_id: Some(self.wire_call_id(&result.tool_call_id)),
                ..ChatMessage::new("tool", Some(content))
            };
            json::append_item(&mut fragment.results, &tool);
        }
        let picture = |part: &Part| match part {
            Part::Image(image) => Some(self.image_piece(image)),
            Part::Text { .. } | Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) => None,
        };
        let pictures: Vec<_> = message.content.iter().filter_map(picture).collect();
        if !pictures.is_empty() {
            let user = ChatMessage::new("user", Some(ChatContent::Pieces(pictures)));
            json::append_item(&mut fragment.after_results, &user);
        }
        fragment
    }

    /// Encodes a reply. The protocol has no field for thinking. A model that needs its reasoning
    /// back gets it with every reply that called tools, even if the reasoning is empty: such a
    /// model rejects a history in which the field is missing.
    fn encode_reply(&self, message: &Message) -> Fragment {
        let mut texts = Vec::new();
        let mut reasoning = String::new();
        for part in &message.content {
            match part {
                Part::Text { text, .. } if text.trim().is_empty() => {}
                Part::Text { text, .. } => texts.push(text_piece(text)),
                Part::Thinking(thinking) if self.0.is_author_of(message) => {
                    reasoning.push_str(&thinking.text);
                }
                Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => {}
            }
        }
        let content = match texts.as_slice() {
            [] => None,
            [ChatPiece::Text { text, .. }] => Some(ChatContent::Text(text)),
            _ => Some(ChatContent::Pieces(texts)),
        };
        let tool_calls: Vec<_> = message
            .tool_calls()
            .map(|call| ChatCall {
                id: self.wire_call_id(&call.id),
                r#type: "function",
                function: ChatFunction {
                    name: sanitize_tool_name(&call.name),
                    arguments: self.0.call_arguments(call),
                },
            })
            .collect();
        let mut fragment = Fragment::new(WireTurn::Assistant);
        if content.is_some() || !tool_calls.is_empty() {
            let wants_it = self.0.spec.capabilities.reasoning_back && !tool_calls.is_empty();
            let reasoning_content = wants_it.then_some(reasoning);
            let reply = ChatMessage {
                reasoning_content,
                tool_calls,
                ..ChatMessage::new("assistant", content)
            };
            json::append_item(&mut fragment.items, &reply);
        }
        fragment
    }
}

impl ChatWire {
    fn image_piece(&self, image: &Image) -> ChatPiece<'static> {
        match openai::image_data_url(&self.0, image) {
            Some(url) => ChatPiece::ImageUrl {
                image_url: ChatImageUrl { url },
                prompt_cache_breakpoint: None,
            },
            None => text_piece(IMAGE_OMITTED),
        }
    }

    /// Returns the pieces as message content. A single text becomes a plain string, which every
    /// server accepts, unless the text must have a cache breakpoint.
    fn message_content<'a>(
        &self,
        mut pieces: Vec<ChatPiece<'a>>,
        mark: CacheMark,
    ) -> ChatContent<'a> {
        if let Some(last) = pieces.last_mut() {
            let (ChatPiece::Text {
                prompt_cache_breakpoint,
                ..
            }
            | ChatPiece::ImageUrl {
                prompt_cache_breakpoint,
                ..
            }) = last;
            *prompt_cache_breakpoint = openai::cache_breakpoint(&self.0, mark);
        }
        match pieces.as_slice() {
            [
                ChatPiece::Text {
                    text,
                    prompt_cache_breakpoint: None,
                },
            ] => ChatContent::Text(text),
            _ => ChatContent::Pieces(pieces),
        }
    }

    /// Returns a call id that the server accepts. OpenAI limits the length; other servers generate
    /// ids of any form and expect them back unchanged.
    fn wire_call_id<'a>(&self, id: &'a str) -> Cow<'a, str> {
        limit_id_length(
            id,
            if self.0.is_openai {
                MAX_CALL_ID_LEN
            } else {
                usize::MAX
            },
        )
    }
}

fn text_piece(text: &str) -> ChatPiece<'_> {
    ChatPiece::Text {
        text,
        prompt_cache_breakpoint: None,
    }
}
