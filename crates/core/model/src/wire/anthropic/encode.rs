//! Requests. User and assistant turns must alternate, results stand first in a user turn, and no text block may be empty.

use std::borrow::Cow;

use haft_types::{Image, Message, Part, Request, Role, Thinking, ToolResult, ToolSpec, ToolStatus};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::json::{self, field};
use crate::wire::names::{plain_id, tool_name};
use crate::wire::{Fragment, Frame, IMAGE_OMITTED, Mark, Settings, Turn, Wire, wrapped_text};

/// `max_tokens` must be given. When neither the request nor the model's entry says how much, this is what every model of
/// the API can write.
const MOST_WITHOUT_ENTRY: u32 = 32_000;
/// The share of the window kept for the reply when nothing is known, as in `[context] output_reserve`.
const RESERVE_SHARE: f64 = 0.3;

/// Far beyond any id a provider gives.
const LONGEST_ID: usize = 64;

pub(crate) struct Anthropic(pub(crate) Settings);

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
struct CacheControl {
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Thinking {
        thinking: &'a str,
        signature: &'a str,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a RawValue,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: Content<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
struct Source<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl Wire for Anthropic {
    fn front(&self, request: &Request) -> Vec<u8> {
        let spec = &self.0.spec;
        let mut out = b"{\"model\":".to_vec();
        json::write(&mut out, &spec.name);
        if !self.0.extra.contains_key("max_tokens") {
            let unknown =
                || spec.max_output_tokens.unwrap_or(spec.output_reserve(RESERVE_SHARE).min(MOST_WITHOUT_ENTRY));
            field(&mut out, "max_tokens", &request.max_output_tokens.unwrap_or_else(unknown));
        }
        if self.0.stream {
            field(&mut out, "stream", &true);
        }
        for (key, value) in &self.0.extra {
            field(&mut out, key, value);
        }
        out
    }

    fn tools(&self, tools: &[ToolSpec], mark: Mark) -> Vec<u8> {
        let Some(last) = tools.len().checked_sub(1) else { return Vec::new() };
        let list: Vec<_> = tools
            .iter()
            .enumerate()
            .map(|(index, tool)| Tool {
                name: &tool.name,
                description: &tool.description,
                input_schema: &tool.parameters,
                cache_control: if index == last { self.cache_control(mark) } else { None },
            })
            .collect();
        let mut out = b"\"tools\":".to_vec();
        json::write(&mut out, &list);
        out
    }

    fn system_frame(&self) -> Option<Frame> {
        Some(Frame { open: "\"system\":[", between: ",", close: "]" })
    }

    fn system(&self, message: &Message, mark: Mark) -> Vec<u8> {
        let text = message.joined_text();
        let mut out = Vec::new();
        if !text.trim().is_empty() {
            json::write(&mut out, &Block::Text { text: &text, cache_control: self.cache_control(mark) });
        }
        out
    }

    fn list(&self) -> &'static str {
        "\"messages\":["
    }

    fn turn(&self, turn: Turn) -> Option<Frame> {
        let open = match turn {
            Turn::User => "{\"role\":\"user\",\"content\":[",
            Turn::Assistant => "{\"role\":\"assistant\",\"content\":[",
        };
        Some(Frame { open, between: ",", close: "]}" })
    }

    fn message(&self, message: &Message, mark: Mark) -> Fragment {
        let wrapped = wrapped_text(message);
        let turn = if message.role == Role::Assistant { Turn::Assistant } else { Turn::User };
        let mut blocks = self.blocks(message, wrapped.as_deref());
        if let Some(control) = self.cache_control(mark) {
            mark_last(&mut blocks, control);
        }
        let mut fragment = Fragment::new(turn);
        for block in &blocks {
            match block {
                Piece::Block(block @ Block::ToolResult { .. }) => json::push(&mut fragment.results, block),
                Piece::Block(block) => json::push(&mut fragment.items, block),
                Piece::Kept(raw) => json::push_raw(&mut fragment.items, raw),
            }
        }
        fragment
    }
}

/// A block of ours, or one of the provider's own that goes back as it came.
enum Piece<'a> {
    Block(Block<'a>),
    Kept(&'a str),
}

impl Anthropic {
    fn cache_control(&self, mark: Mark) -> Option<CacheControl> {
        match mark {
            Mark::None => None,
            Mark::Boundary => Some(CacheControl { ttl: (self.0.spec.cache.ttl == "1h").then_some("1h") }),
        }
    }

    fn blocks<'a>(&self, message: &'a Message, wrapped: Option<&'a str>) -> Vec<Piece<'a>> {
        if let Some(text) = wrapped {
            return vec![Piece::Block(Block::Text { text, cache_control: None })];
        }
        let mut pieces = Vec::with_capacity(message.content.len());
        for part in &message.content {
            match part {
                Part::Text { text, .. } if text.trim().is_empty() => {}
                Part::Text { text, .. } => pieces.push(Piece::Block(Block::Text { text, cache_control: None })),
                Part::Thinking(thinking) => {
                    if self.0.made(message) {
                        pieces.extend(thinking_piece(thinking));
                    }
                }
                Part::ToolCall(call) => pieces.push(Piece::Block(Block::ToolUse {
                    id: plain_id(&call.id, LONGEST_ID),
                    name: tool_name(&call.name),
                    input: json::object(&call.arguments),
                    cache_control: None,
                })),
                Part::ToolResult(result) => pieces.push(Piece::Block(tool_result(result))),
                Part::Image(image) => self.add_image(&mut pieces, image),
            }
        }
        pieces
    }

    /// A picture directly after a tool result goes into it.
    fn add_image<'a>(&self, pieces: &mut Vec<Piece<'a>>, image: &'a Image) {
        let block = if self.0.spec.capabilities.images {
            let source = Source { r#type: "base64", media_type: &image.media_type, data: &image.data };
            Block::Image { source, cache_control: None }
        } else {
            Block::Text { text: IMAGE_OMITTED, cache_control: None }
        };
        let Some(Piece::Block(Block::ToolResult { content, .. })) = pieces.last_mut() else {
            pieces.push(Piece::Block(block));
            return;
        };
        match content {
            Content::Blocks(blocks) => blocks.push(block),
            Content::Text("") => *content = Content::Blocks(vec![block]),
            Content::Text(text) => {
                *content = Content::Blocks(vec![Block::Text { text, cache_control: None }, block]);
            }
        }
    }
}

fn tool_result(result: &ToolResult) -> Block<'_> {
    let is_error = result.envelope.status == ToolStatus::Error;
    // The service refuses an error that says nothing.
    let text =
        if is_error && result.envelope.text.is_empty() { "failed without a message" } else { &result.envelope.text };
    Block::ToolResult {
        tool_use_id: plain_id(&result.tool_call_id, LONGEST_ID),
        content: Content::Text(text),
        is_error,
        cache_control: None,
    }
}

/// Thinking goes back whole or not at all: without its signature the provider refuses it.
fn thinking_piece(thinking: &Thinking) -> Option<Piece<'_>> {
    match (&thinking.raw, &thinking.signature) {
        (Some(raw), _) => json::kept_item(raw, "redacted_thinking").map(Piece::Kept),
        (None, Some(signature)) => Some(Piece::Block(Block::Thinking { thinking: &thinking.text, signature })),
        (None, None) => None,
    }
}

/// Puts the marker on the last block that may carry one.
fn mark_last(pieces: &mut [Piece<'_>], control: CacheControl) {
    for piece in pieces.iter_mut().rev() {
        match piece {
            Piece::Block(
                Block::Text { cache_control, .. }
                | Block::Image { cache_control, .. }
                | Block::ToolUse { cache_control, .. }
                | Block::ToolResult { cache_control, .. },
            ) => {
                *cache_control = Some(control);
                return;
            }
            Piece::Block(Block::Thinking { .. }) | Piece::Kept(_) => {}
        }
    }
}
