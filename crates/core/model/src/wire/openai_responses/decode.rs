//! Decodes replies. A stream opens items, fills them and closes them; `response.completed` or
//! `response.incomplete` ends the stream.

use std::collections::BTreeMap;

use haft_types::{Part, StopReason, Thinking, ToolCall, Usage};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::reply::Delta;
use crate::wire::assembly::{CallIds, DecodedReply, ReplyParts};
use crate::wire::openai::{self, InputTokenDetails, OutputTokenDetails};
use crate::wire::{Decode, Fault, ReplyProgress, Sink, json, parse_json, require_field};

pub(crate) struct ResponsesDecoder {
    ids: CallIds,
    items: BTreeMap<u64, OutputItem>,
    /// The ids of items that arrived without a number, in order of arrival.
    unnumbered: Vec<String>,
    stop: Option<StopReason>,
    usage: Usage,
}

/// An output item that was opened, and that may already be closed.
#[derive(Default)]
struct OutputItem {
    /// The final parts of the item, once it is closed.
    closed: Option<Vec<Part>>,
    /// The tool call, once a part of the item shows that it is a call.
    call: Option<ToolCall>,
    /// The number of bytes of the item's text or reasoning that were passed to the sink.
    shown: usize,
}

#[derive(Deserialize)]
struct ResponsesEvent<'a> {
    r#type: &'a str,
    output_index: Option<u64>,
    item_id: Option<String>,
    delta: Option<String>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    code: Option<Value>,
    message: Option<String>,
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ResponsesBody<'a> {
    status: Option<&'a str>,
    #[serde(borrow, default)]
    output: Vec<&'a RawValue>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    usage: Option<ResponsesUsage>,
    error: Option<Value>,
    incomplete_details: Option<ResponsesIncomplete>,
}

#[derive(Deserialize)]
struct ResponsesIncomplete {
    reason: Option<String>,
}

#[derive(Deserialize)]
struct WireOutputItem<'a> {
    r#type: &'a str,
    id: Option<String>,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    encrypted_content: Option<String>,
    #[serde(default)]
    content: Option<Vec<ResponsesText>>,
    #[serde(default)]
    summary: Option<Vec<ResponsesText>>,
}

impl WireOutputItem<'_> {
    /// Returns the id that events use to refer to this item in `item_id`.
    fn stream_id(&self) -> Option<&String> {
        self.id.as_ref().or(self.call_id.as_ref())
    }
}

#[derive(Deserialize)]
struct ResponsesText {
    text: Option<String>,
    refusal: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ResponsesUsage {
    #[serde(default, deserialize_with = "json::deserialize_count")]
    input_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    input_tokens_details: Option<InputTokenDetails>,
    #[serde(default, deserialize_with = "json::deserialize_count")]
    output_tokens: Option<u64>,
    #[serde(default, deserialize_with = "json::deserialize_lenient")]
    output_tokens_details: Option<OutputTokenDetails>,
}

impl Decode for ResponsesDecoder {
    fn read_event(&mut self, data: &str, sink: Sink<'_>) -> Result<ReplyProgress, Fault> {
        // Some gateways end the stream with the marker of the other API. A valid reply has returned
        // before.
        if data.trim() == "[DONE]" {
            return Err(Fault::Bad(
                "the stream ended without `response.completed`".into(),
            ));
        }
        let event: ResponsesEvent<'_> = parse_json("an event", data)?;
        match event.r#type {
            "response.output_item.added" => {
                let item: WireOutputItem<'_> =
                    parse_json("`item`", require_field(event.item, "item")?.get())?;
                let index = self.item_index(
                    event.output_index,
                    event.item_id.as_ref().or(item.stream_id()),
                )?;
                self.open_item(index, item, sink)?;
            }
            "response.output_text.delta" | "response.refusal.delta" => {
                let index = self.item_index(event.output_index, event.item_id.as_ref())?;
                self.send_text(index, event.delta, Delta::Text, sink);
            }
            "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
                let index = self.item_index(event.output_index, event.item_id.as_ref())?;
                self.send_text(index, event.delta, Delta::Thinking, sink);
            }
            "response.reasoning_summary_part.added" => {
                let index = self.item_index(event.output_index, event.item_id.as_ref())?;
                if self.items.get(&index).is_some_and(|item| item.shown > 0) {
                    self.send_text(
                        index,
                        Some(PARAGRAPH_BREAK.to_owned()),
                        Delta::Thinking,
                        sink,
                    );
                }
            }
            "response.function_call_arguments.delta" => {
                let index = self.item_index(event.output_index, event.item_id.as_ref())?;
                self.push_arguments(index, event.delta, sink)?;
            }
            "response.output_item.done" => {
                let raw = require_field(event.item, "item")?;
                let item: WireOutputItem<'_> = parse_json("`item`", raw.get())?;
                let index = self.item_index(
                    event.output_index,
                    event.item_id.as_ref().or(item.stream_id()),
                )?;
                self.close_item(index, raw, sink)?;
            }
            "response.completed" | "response.incomplete" => {
                let response = require_field(event.response, "response")?;
                self.end_response(parse_json("`response`", response.get())?, sink)?;
                return Ok(ReplyProgress::Done);
            }
            "response.failed" => {
                let response: ResponsesBody<'_> = parse_json(
                    "`response`",
                    require_field(event.response, "response")?.get(),
                )?;
                return Err(Fault::Reported(
                    serde_json::json!({ "error": response.error }),
                ));
            }
            "error" => {
                let flat = serde_json::json!({ "code": event.code, "message": event.message });
                return Err(Fault::Reported(
                    serde_json::json!({ "error": event.error.unwrap_or(flat) }),
                ));
            }
            _ => {}
        }
        Ok(ReplyProgress::Going)
    }

    fn read_body(&mut self, body: &str, sink: Sink<'_>) -> Result<(), Fault> {
        let response: ResponsesBody<'_> = parse_json("the reply", body)?;
        if let Some(error) = response.error.as_ref().filter(|error| !error.is_null()) {
            return Err(Fault::Reported(serde_json::json!({ "error": error })));
        }
        self.end_response(response, sink)
    }

    fn finish(self: Box<Self>) -> DecodedReply {
        let mut assembly = ReplyParts::default();
        for part in self
            .items
            .into_values()
            .filter_map(|item| item.closed)
            .flatten()
        {
            assembly.push_part(part);
        }
        assembly.finish(self.stop, self.usage)
    }
}

/// The separator between the paragraphs of a reasoning summary.
const PARAGRAPH_BREAK: &str = "\n\n";

impl ResponsesDecoder {
    pub(crate) fn new(ids: CallIds) -> Self {
        Self {
            ids,
            items: BTreeMap::new(),
            unnumbered: Vec::new(),
            stop: None,
            usage: Usage::default(),
        }
    }

    /// Returns the number of an item. If the server sends only ids, items are numbered in order of
    /// arrival.
    fn item_index(&mut self, index: Option<u64>, id: Option<&String>) -> Result<u64, Fault> {
        if let Some(index) = index {
            return Ok(index);
        }
        let id = require_field(id, "output_index")?;
        let known = self.unnumbered.iter().position(|known| known == id);
        let place = known.unwrap_or_else(|| {
            self.unnumbered.push(id.clone());
            self.unnumbered.len() - 1
        });
        Ok(place as u64)
    }

    fn open_item(
        &mut self,
        index: u64,
        item: WireOutputItem<'_>,
        sink: Sink<'_>,
    ) -> Result<(), Fault> {
        let slot = self.items.entry(index).or_default();
        if item.r#type == "function_call" && slot.call.is_none() {
            let name = require_field(item.name, "name")?;
            let id = item
                .call_id
                .filter(|id| !id.is_empty())
                .unwrap_or_else(|| self.ids.next_id(&name));
            sink(Delta::CallStarted {
                id: id.clone(),
                name: name.clone(),
            });
            slot.call = Some(ToolCall {
                id,
                name,
                arguments: String::new(),
                signature: None,
            });
        }
        Ok(())
    }

    fn send_text(
        &mut self,
        index: u64,
        piece: Option<String>,
        kind: fn(String) -> Delta,
        sink: Sink<'_>,
    ) {
        let piece = piece.unwrap_or_default();
        if !piece.is_empty() {
            self.items.entry(index).or_default().shown += piece.len();
            sink(kind(piece));
        }
    }

    fn push_arguments(
        &mut self,
        index: u64,
        piece: Option<String>,
        sink: Sink<'_>,
    ) -> Result<(), Fault> {
        let piece = piece.unwrap_or_default();
        let call = self
            .items
            .get_mut(&index)
            .and_then(|item| item.call.as_mut());
        let call = call
            .ok_or_else(|| Fault::Bad(format!("arguments for item {index}, which is no call")))?;
        if !piece.is_empty() {
            call.arguments.push_str(&piece);
            sink(Delta::CallArguments {
                id: call.id.clone(),
                piece,
            });
        }
        Ok(())
    }

    /// Reads a closed item. The item's content replaces the pieces received before, which were only
    /// a preview.
    fn close_item(&mut self, index: u64, raw: &RawValue, sink: Sink<'_>) -> Result<(), Fault> {
        let item: WireOutputItem<'_> = parse_json("`item`", raw.get())?;
        let parts = match item.r#type {
            "message" => {
                let texts: Vec<Part> = item
                    .content
                    .into_iter()
                    .flatten()
                    .filter_map(|piece| piece.text.or(piece.refusal))
                    .map(Part::from_text)
                    .collect();
                self.send_unsent(
                    index,
                    texts.iter().map(part_text).collect(),
                    Delta::Text,
                    sink,
                );
                texts
            }
            "reasoning" => {
                let pieces = item.summary.into_iter().chain(item.content).flatten();
                let text = pieces
                    .filter_map(|piece| piece.text)
                    .collect::<Vec<_>>()
                    .join(PARAGRAPH_BREAK);
                self.send_unsent(index, text.clone(), Delta::Thinking, sink);
                let raw = Some(raw.get().to_owned());
                vec![Part::Thinking(Thinking {
                    text,
                    signature: item.encrypted_content,
                    raw,
                })]
            }
            "function_call" => {
                let arguments = item.arguments.clone();
                self.open_item(index, item, sink)?;
                let Some(mut call) = self.items.entry(index).or_default().call.take() else {
                    return Ok(());
                };
                if call.arguments.is_empty() {
                    let piece = arguments.clone().unwrap_or_default();
                    sink(Delta::CallArguments {
                        id: call.id.clone(),
                        piece,
                    });
                }
                call.arguments = arguments.unwrap_or(call.arguments);
                sink(Delta::CallFinished {
                    id: call.id.clone(),
                });
                vec![Part::ToolCall(call)]
            }
            // Built-in tools of the provider and future kinds of items.
            _ => Vec::new(),
        };
        self.items.entry(index).or_default().closed = Some(parts);
        Ok(())
    }

    /// Passes `whole` to the sink as one delta if no delta of the item arrived before.
    fn send_unsent(
        &mut self,
        index: u64,
        whole: String,
        kind: fn(String) -> Delta,
        sink: Sink<'_>,
    ) {
        if self.items.get(&index).is_none_or(|item| item.shown == 0) {
            self.send_text(index, Some(whole), kind, sink);
        }
    }

    fn end_response(&mut self, response: ResponsesBody<'_>, sink: Sink<'_>) -> Result<(), Fault> {
        // Covers gateways that stream only the end, replies that were not streamed, and items that
        // a truncation left open.
        let open: Vec<u64> = self
            .items
            .iter()
            .filter(|(_, item)| item.closed.is_none())
            .map(|(at, _)| *at)
            .collect();
        // Items of an unknown kind don't count as received.
        let nothing_came = self
            .items
            .values()
            .all(|item| item.closed.as_ref().is_some_and(Vec::is_empty));
        for (index, item) in (0..).zip(&response.output) {
            if nothing_came || open.contains(&index) {
                self.close_item(index, item, sink)?;
            }
        }
        let still_open = self.items.iter().find(|(_, item)| item.closed.is_none());
        if let (Some((index, _)), Some("completed")) = (still_open, response.status) {
            return Err(Fault::Bad(format!(
                "the response ended inside item {index}"
            )));
        }
        let reason = response
            .incomplete_details
            .as_ref()
            .and_then(|details| details.reason.as_deref());
        self.stop = match (response.status, reason) {
            (Some("completed"), _) => None,
            (_, Some("max_output_tokens")) => Some(StopReason::Length),
            (_, Some("content_filter")) => Some(StopReason::Refusal),
            (status, reason) => match reason.or(status) {
                Some(word) => Some(StopReason::Other(word.to_owned())),
                None => return Err(Fault::Bad("`status` is missing".into())),
            },
        };
        if let Some(usage) = response.usage {
            let details = usage.input_tokens_details.unwrap_or_default();
            self.usage = openai::to_neutral_usage(
                usage.input_tokens,
                details,
                usage.output_tokens,
                usage.output_tokens_details,
            );
        }
        Ok(())
    }
}

fn part_text(part: &Part) -> &str {
    match part {
        Part::Text { text, .. } => text,
        Part::Thinking(_) | Part::ToolCall(_) | Part::ToolResult(_) | Part::Image(_) => "",
    }
}
