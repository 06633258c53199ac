//! Decodes replies. A reply is a list of blocks, each of which is started, filled by deltas and
//! stopped; `message_stop` ends the message.

use std::collections::BTreeMap;

use haft_types::{Part, StopReason, Thinking, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::wire::assembly::{DecodedReply, ReplyParts};
use crate::wire::{Decode, Fault, ReplyProgress, Sink, json, parse_json, require_field};

#[derive(Default)]
pub(crate) struct AnthropicDecoder {
    assembly: ReplyParts,
    open: BTreeMap<u64, AnthropicOpenBlock>,
    stop: Option<StopReason>,
    usage: Usage,
}

/// A content block whose start has been received, but not its end.
enum AnthropicOpenBlock {
    Text,
    /// A thinking block, with the index of its part in the reply.
    Thinking(usize),
    /// A tool call, with the index of its part in the reply and the input that the start of the
    /// block contained.
    Call(usize, String),
    /// A block of an unknown kind.
    Other,
}

#[derive(Deserialize)]
struct AnthropicEvent<'a> {
    r#type: &'a str,
    index: Option<u64>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    usage: Option<AnthropicUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct AnthropicBody<'a> {
    r#type: Option<&'a str>,
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    stop_reason: Option<String>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    usage: Option<AnthropicUsage>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct AnthropicBlockStart<'a> {
    r#type: &'a str,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct AnthropicDelta<'a> {
    r#type: Option<&'a str>,
    text: Option<String>,
    thinking: Option<String>,
    signature: Option<String>,
    partial_json: Option<String>,
    stop_reason: Option<String>,
}

/// The token counts that the server reports. In a stream they are running totals, and a later event
/// may omit some of them.
#[derive(Default, Deserialize)]
struct AnthropicUsage {
    #[serde(default, deserialize_with = "json::deserialize_count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_count")]
    cache_read_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_count")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    output_tokens_details: Option<AnthropicOutputDetails>,
}

#[derive(Deserialize)]
struct AnthropicOutputDetails {
    #[serde(default, deserialize_with = "json::deserialize_count")]
    thinking_tokens: Option<u64>,
}

impl Decode for AnthropicDecoder {
    fn read_event(&mut self, data: &str, sink: Sink<'_>) -> Result<ReplyProgress, Fault> {
        let event: AnthropicEvent<'_> = parse_json("an event", data)?;
        match event.r#type {
            "message_start" => {
                if let Some(message) = event.message {
                    let message: AnthropicBody<'_> = parse_json("`message_start`", message.get())?;
                    self.add_usage(message.usage);
                }
            }
            "content_block_start" => {
                let index = require_field(event.index, "index")?;
                let block = require_field(event.content_block, "content_block")?;
                self.start_block(index, block, sink)?;
            }
            "content_block_delta" => {
                let index = require_field(event.index, "index")?;
                let delta = require_field(event.delta, "delta")?;
                self.read_delta(
                    index,
                    &parse_json("`content_block_delta`", delta.get())?,
                    sink,
                )?;
            }
            "content_block_stop" => self.close_block(require_field(event.index, "index")?, sink)?,
            "message_delta" => {
                if let Some(delta) = event.delta {
                    let delta: AnthropicDelta<'_> = parse_json("`message_delta`", delta.get())?;
                    self.stop = delta
                        .stop_reason
                        .map(parse_stop_reason)
                        .or(self.stop.take());
                }
                self.add_usage(event.usage);
            }
            "message_stop" => {
                if let Some(index) = self.open.keys().next() {
                    return Err(Fault::Bad(format!(
                        "the message ended inside content block {index}"
                    )));
                }
                return Ok(ReplyProgress::Done);
            }
            "error" => return Err(Fault::Reported(serde_json::json!({ "error": event.error }))),
            // `ping` and future kinds of events.
            _ => {}
        }
        Ok(ReplyProgress::Going)
    }

    fn read_body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault> {
        let message: AnthropicBody<'_> = parse_json("the reply", body)?;
        if let Some(error) = message.error {
            return Err(Fault::Reported(serde_json::json!({ "error": error })));
        }
        if message.r#type != Some("message") {
            return Err(Fault::Bad("the reply is not a message".into()));
        }
        self.add_usage(message.usage);
        for (index, block) in (0..).zip(message.content) {
            self.start_block(index, block, sink)?;
            self.close_block(index, sink)?;
        }
        self.stop = Some(parse_stop_reason(require_field(
            message.stop_reason,
            "stop_reason",
        )?));
        Ok(())
    }

    fn finish(self: Box<Self>) -> DecodedReply {
        self.assembly.finish(self.stop, self.usage)
    }
}

impl AnthropicDecoder {
    fn start_block(&mut self, index: u64, raw: &RawValue, sink: Sink<'_>) -> Result<(), Fault> {
        let block: AnthropicBlockStart<'_> = parse_json("`content_block`", raw.get())?;
        let open = match block.r#type {
            "text" => {
                // Each block stays a separate part.
                self.assembly.push_part(Part::from_text(""));
                self.assembly
                    .push_text(block.text.as_deref().unwrap_or_default(), sink);
                AnthropicOpenBlock::Text
            }
            "thinking" => {
                let at = self.assembly.push_part(Part::Thinking(Thinking::default()));
                self.assembly
                    .push_thinking(block.thinking.as_deref().unwrap_or_default(), sink);
                self.append_signature(at, block.signature.as_deref().unwrap_or_default());
                AnthropicOpenBlock::Thinking(at)
            }
            "redacted_thinking" => {
                let kept = Thinking {
                    raw: Some(raw.get().to_owned()),
                    ..Thinking::default()
                };
                self.assembly.push_part(Part::Thinking(kept));
                AnthropicOpenBlock::Other
            }
            "tool_use" => {
                let id = require_field(block.id, "id")?;
                let name = require_field(block.name, "name")?;
                let input = block.input.map_or("{}", RawValue::get).to_owned();
                AnthropicOpenBlock::Call(self.assembly.open_call(id, name, sink), input)
            }
            _ => AnthropicOpenBlock::Other,
        };
        match self.open.insert(index, open) {
            None => Ok(()),
            Some(_) => Err(Fault::Bad(format!(
                "content block {index} was started twice"
            ))),
        }
    }

    fn read_delta(
        &mut self,
        index: u64,
        delta: &AnthropicDelta<'_>,
        sink: Sink<'_>,
    ) -> Result<(), Fault> {
        let open = self
            .open
            .get(&index)
            .ok_or_else(|| Fault::Bad(format!("a delta for content block {index}, not open")))?;
        match *open {
            AnthropicOpenBlock::Text => self
                .assembly
                .push_text(delta.text.as_deref().unwrap_or_default(), sink),
            AnthropicOpenBlock::Thinking(at) => {
                self.assembly
                    .push_thinking(delta.thinking.as_deref().unwrap_or_default(), sink);
                self.append_signature(at, delta.signature.as_deref().unwrap_or_default());
            }
            AnthropicOpenBlock::Call(at, _) => {
                if delta.r#type == Some("input_json_delta") {
                    self.assembly.push_arguments(
                        at,
                        delta.partial_json.as_deref().unwrap_or_default(),
                        sink,
                    );
                }
            }
            AnthropicOpenBlock::Other => {}
        }
        Ok(())
    }

    fn close_block(&mut self, index: u64, sink: Sink<'_>) -> Result<(), Fault> {
        let open = self.open.remove(&index);
        match open
            .ok_or_else(|| Fault::Bad(format!("the end of content block {index}, not open")))?
        {
            AnthropicOpenBlock::Call(at, input) => {
                // Without deltas, the input is the one that the block was started with.
                if matches!(self.assembly.part_mut(at), Some(Part::ToolCall(call)) if call.arguments.is_empty())
                {
                    self.assembly.push_arguments(at, &input, sink);
                }
                self.assembly.close_call(at, sink);
            }
            AnthropicOpenBlock::Text
            | AnthropicOpenBlock::Thinking(_)
            | AnthropicOpenBlock::Other => {}
        }
        Ok(())
    }

    fn append_signature(&mut self, at: usize, piece: &str) {
        if piece.is_empty() {
            return;
        }
        if let Some(Part::Thinking(thinking)) = self.assembly.part_mut(at) {
            thinking.signature.get_or_insert_default().push_str(piece);
        }
    }

    fn add_usage(&mut self, usage: Option<AnthropicUsage>) {
        let Some(usage) = usage else { return };
        let totals = [
            (&mut self.usage.input, usage.input_tokens),
            (&mut self.usage.cached_input, usage.cache_read_input_tokens),
            (
                &mut self.usage.cache_write,
                usage.cache_creation_input_tokens,
            ),
            (&mut self.usage.output, usage.output_tokens),
            (
                &mut self.usage.reasoning,
                usage
                    .output_tokens_details
                    .and_then(|details| details.thinking_tokens),
            ),
        ];
        for (total, counted) in totals {
            *total = counted.unwrap_or(*total);
        }
    }
}

fn parse_stop_reason(reason: String) -> StopReason {
    match reason.as_str() {
        "end_turn" | "stop_sequence" => StopReason::EndTurn,
        "tool_use" => StopReason::ToolUse,
        "max_tokens" | "model_context_window_exceeded" => StopReason::Length,
        "refusal" => StopReason::Refusal,
        _ => StopReason::Other(reason),
    }
}
