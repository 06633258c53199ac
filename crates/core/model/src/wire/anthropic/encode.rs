//! Encodes requests. User and assistant turns must alternate, results come first in a user turn,
//! and no text block may be empty.

use std::borrow::Cow;

use haft_types::{Image, Message, Part, Request, Role, Thinking, ToolResult, ToolSpec, ToolStatus};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::wire::json::{self, append_field};
use crate::wire::names::{sanitize_id, sanitize_tool_name};
use crate::wire::{
    CacheMark, Fragment, IMAGE_OMITTED, Settings, Wire, WireFrame, WireTurn, wrap_as_user_text,
};

/// The default `max_tokens`, sent if neither the request nor the model's entry sets a limit. The
/// API requires the field, and every model of the API supports this value.
const DEFAULT_MAX_TOKENS: u32 = 32_000;
/// The share of the context window that is reserved for the reply if no output limit is set. It
/// equals the default of `[context] output_reserve`.
const OUTPUT_RESERVE: f64 = 0.3;

/// The maximum length of a call id. The ids that providers generate are far shorter.
const MAX_CALL_ID_LEN: usize = 64;

pub(crate) struct AnthropicWire(pub(crate) Settings);

#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename = "ephemeral")]
struct CacheControl {
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum AnthropicBlock<'a> {
    Text {
        text: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
    Image {
        source: AnthropicImage<'a>,
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
        content: AnthropicContent<'a>,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum AnthropicContent<'a> {
    Text(&'a str),
    Blocks(Vec<AnthropicBlock<'a>>),
}

#[derive(Serialize)]
struct AnthropicImage<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

impl Wire for AnthropicWire {
    fn encode_front(&self, request: &Request) -> Vec<u8> {
        let spec = &self.0.spec;
        let mut out = json::open_body("model", &spec.name);
        if !self.0.extra.contains_key("max_tokens") {
            let unknown = || {
                spec.max_output_tokens
                    .unwrap_or(spec.output_reserve(OUTPUT_RESERVE).min(DEFAULT_MAX_TOKENS))
            };
            append_field(
                &mut out,
                "max_tokens",
                &request.max_output_tokens.unwrap_or_else(unknown),
            );
        }
        if self.0.stream {
            append_field(&mut out, "stream", &true);
        }
        json::append_fields(&mut out, &self.0.extra);
        out
    }

    fn encode_tools(&self, tools: &[ToolSpec], mark: CacheMark) -> Value {
        let declared = |tool: &ToolSpec| json!({"name": tool.name, "description": tool.description, "input_schema": tool.parameters});
        let mut tools: Vec<Value> = tools.iter().map(declared).collect();
        if let (Some(last), Some(control)) = (tools.last_mut(), self.cache_control(mark)) {
            last["cache_control"] = json!(control);
        }
        tools.into()
    }

    fn system_frame(&self) -> Option<WireFrame> {
        Some(WireFrame {
            open: "\"system\":[",
            between: ",",
            close: "]",
        })
    }

    fn encode_system(&self, message: &Message, mark: CacheMark) -> Vec<u8> {
        let text = message.joined_text();
        let mut out = Vec::new();
        if !text.trim().is_empty() {
            json::append_value(
                &mut out,
                &AnthropicBlock::Text {
                    text: &text,
                    cache_control: self.cache_control(mark),
                },
            );
        }
        out
    }

    fn list_opening(&self) -> &'static str {
        "\"messages\":["
    }

    fn turn_frame(&self, turn: WireTurn) -> Option<WireFrame> {
        let open = match turn {
            WireTurn::User => "{\"role\":\"user\",\"content\":[",
            WireTurn::Assistant => "{\"role\":\"assistant\",\"content\":[",
        };
        Some(WireFrame {
            open,
            between: ",",
            close: "]}",
        })
    }

    fn encode_message(&self, message: &Message, mark: CacheMark) -> Fragment {
        let wrapped = wrap_as_user_text(message);
        let turn = if message.role == Role::Assistant {
            WireTurn::Assistant
        } else {
            WireTurn::User
        };
        let mut blocks = self.message_blocks(message, wrapped.as_deref());
        if let Some(control) = self.cache_control(mark) {
            mark_last_block(&mut blocks, control);
        }
        let mut fragment = Fragment::new(turn);
        for block in &blocks {
            match block {
                AnthropicPiece::Block(block @ AnthropicBlock::ToolResult { .. }) => {
                    json::append_item(&mut fragment.results, block);
                }
                AnthropicPiece::Block(block) => json::append_item(&mut fragment.items, block),
                AnthropicPiece::Kept(raw) => json::append_raw_item(&mut fragment.items, raw),
            }
        }
        fragment
    }
}

/// A content block: either encoded from a part of the message, or a stored block of the provider
/// that is sent back unchanged.
enum AnthropicPiece<'a> {
    Block(AnthropicBlock<'a>),
    Kept(&'a str),
}

impl AnthropicWire {
    fn cache_control(&self, mark: CacheMark) -> Option<CacheControl> {
        match mark {
            CacheMark::None => None,
            CacheMark::Boundary => Some(CacheControl {
                ttl: (self.0.spec.ttl_in_force() == "1h").then_some("1h"),
            }),
        }
    }

    fn message_blocks<'a>(
        &self,
        message: &'a Message,
        wrapped: Option<&'a str>,
    ) -> Vec<AnthropicPiece<'a>> {
        if let Some(text) = wrapped {
            return vec![AnthropicPiece::Block(AnthropicBlock::Text {
                text,
                cache_control: None,
            })];
        }
        let mut pieces = Vec::with_capacity(message.content.len());
        for part in &message.content {
            match part {
                Part::Text { text, .. } if text.trim().is_empty() => {}
                Part::Text { text, .. } => {
                    pieces.push(AnthropicPiece::Block(AnthropicBlock::Text {
                        text,
                        cache_control: None,
                    }));
                }
                Part::Thinking(thinking) => {
                    if self.0.is_author_of(message) {
                        pieces.extend(thinking_piece(thinking));
                    }
                }
                Part::ToolCall(call) => {
                    pieces.push(AnthropicPiece::Block(AnthropicBlock::ToolUse {
                        id: sanitize_id(&call.id, MAX_CALL_ID_LEN),
                        name: sanitize_tool_name(&call.name),
                        input: json::object_or_empty(&call.arguments),
                        cache_control: None,
                    }));
                }
                Part::ToolResult(result) => {
                    pieces.push(AnthropicPiece::Block(result_block(result)));
                }
                Part::Image(image) => self.add_image(&mut pieces, image),
            }
        }
        pieces
    }

    /// Adds an image. An image directly after a tool result goes into that result.
    fn add_image<'a>(&self, pieces: &mut Vec<AnthropicPiece<'a>>, image: &'a Image) {
        let block = if self.0.spec.capabilities.images {
            let source = AnthropicImage {
                r#type: "base64",
                media_type: &image.media_type,
                data: &image.data,
            };
            AnthropicBlock::Image {
                source,
                cache_control: None,
            }
        } else {
            AnthropicBlock::Text {
                text: IMAGE_OMITTED,
                cache_control: None,
            }
        };
        let Some(AnthropicPiece::Block(AnthropicBlock::ToolResult { content, .. })) =
            pieces.last_mut()
        else {
            pieces.push(AnthropicPiece::Block(block));
            return;
        };
        match content {
            AnthropicContent::Blocks(blocks) => blocks.push(block),
            AnthropicContent::Text("") => *content = AnthropicContent::Blocks(vec![block]),
            AnthropicContent::Text(text) => {
                *content = AnthropicContent::Blocks(vec![
                    AnthropicBlock::Text {
                        text,
                        cache_control: None,
                    },
                    block,
                ]);
            }
        }
    }
}

fn result_block(result: &ToolResult) -> AnthropicBlock<'_> {
    let is_error = result.envelope.status == ToolStatus::Error;
    // The API rejects an error without text.
    let text = if is_error && result.envelope.text.is_empty() {
        "failed without a message"
    } else {
        &result.envelope.text
    };
    AnthropicBlock::ToolResult {
        tool_use_id: sanitize_id(&result.tool_call_id, MAX_CALL_ID_LEN),
        content: AnthropicContent::Text(text),
        is_error,
        cache_control: None,
    }
}

/// Returns the block for thinking, or `None` if the thinking has no signature, because the provider
/// rejects thinking without one.
fn thinking_piece(thinking: &Thinking) -> Option<AnthropicPiece<'_>> {
    match (&thinking.raw, &thinking.signature) {
        (Some(raw), _) => json::check_raw_item(raw, "redacted_thinking").map(AnthropicPiece::Kept),
        (None, Some(signature)) => Some(AnthropicPiece::Block(AnthropicBlock::Thinking {
            thinking: &thinking.text,
            signature,
        })),
        (None, None) => None,
    }
}

/// Puts the cache marker on the last block that may have one.
fn mark_last_block(pieces: &mut [AnthropicPiece<'_>], control: CacheControl) {
    for piece in pieces.iter_mut().rev() {
        match piece {
            AnthropicPiece::Block(
                AnthropicBlock::Text { cache_control, .. }
                | AnthropicBlock::Image { cache_control, .. }
                | AnthropicBlock::ToolUse { cache_control, .. }
                | AnthropicBlock::ToolResult { cache_control, .. },
            ) => {
                *cache_control = Some(control);
                return;
            }
            AnthropicPiece::Block(AnthropicBlock::Thinking { .. }) | AnthropicPiece::Kept(_) => {}
        }
    }
}
