//! Reads events of `OpenHands` since 1.0, which have a `kind`. A conversation is a folder of
//! events; the state file beside them contains the token counts of each reply, by its id.

use std::collections::HashMap;

use haft_types::{Origin, Part, Role, Thinking, ToolCall};
use serde_json::Value;

use super::{EventReader, build_result_envelope};
use crate::conversation_builder::{ReportedUsage, build_reply_metadata, get_text};
use crate::{chat, time};

/// The state that the reader of the SDK's events keeps from one event to the next.
pub(super) struct SdkState {
    /// The model and usage of each reply, by the reply's id.
    counted: HashMap<String, (Option<String>, ReportedUsage)>,
    /// The id of the reply that was read last.
    reply: Option<String>,
}

impl SdkState {
    pub(super) fn new(file: &Value) -> Self {
        let metrics = file
            .pointer("/stats/usage_to_metrics")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let all = metrics
            .filter_map(|(_, metrics)| metrics.get("token_usages")?.as_array())
            .flatten();
        let one = |usage: &Value| {
            let id = get_text(usage, "response_id")?.to_owned();
            Some((
                id,
                (
                    get_text(usage, "model").map(str::to_owned),
                    chat::read_usage(usage),
                ),
            ))
        };
        Self {
            counted: all.filter_map(one).collect(),
            reply: None,
        }
    }

    pub(super) fn read_event(&mut self, reader: &mut EventReader, event: &Value, kind: &str) {
        let at = event.get("timestamp").and_then(time::parse_timestamp);
        let text = |key: &str| get_text(event, key).unwrap_or_default();
        let added = || collect_texts(event.get("extended_content"));
        match kind {
            "SystemPromptEvent" => {
                let parts = ["system_prompt", "dynamic_context"]
                    .iter()
                    .filter_map(|key| get_text(event.get(key)?, "text"));
                reader.push_instructions(parts.map(Part::from_text).collect(), at);
            }
            "MessageEvent" => {
                let said = event.get("llm_message").unwrap_or(&Value::Null);
                let parts = collect_texts(said.get("content"))
                    .chain(added())
                    .map(Part::from_text)
                    .collect();
                match (get_text(said, "role"), text("source")) {
                    (Some("system"), _) => reader.push_instructions(parts, at),
                    (Some("assistant"), _) | (_, "agent") => {
                        let reply = get_text(event, "llm_response_id").map(str::to_owned);
                        self.push_reply(reader, reply, [read_thinking(said), parts].concat(), at);
                    }
                    (_, "user") => reader.push_message(Role::User, None, parts, at),
                    _ => reader.push_message(Role::User, Some(Origin::Engine), parts, at),
                }
            }
            "ActionEvent" => {
                let Some(call) = read_call(event) else {
                    return reader.builder.skipped += 1;
                };
                reader.open.push(call.id.clone());
                let thought = collect_texts(event.get("thought"))
                    .map(Part::from_text)
                    .collect();
                let parts = [read_thinking(event), thought, vec![Part::ToolCall(call)]].concat();
                self.push_reply(
                    reader,
                    get_text(event, "llm_response_id").map(str::to_owned),
                    parts,
                    at,
                );
            }
            "ObservationEvent" => {
                let observed = event.get("observation").unwrap_or(&Value::Null);
                let mut said: Vec<_> = collect_texts(observed.get("content")).collect();
                if said.is_empty() {
                    said.extend(
                        ["output", "error"]
                            .iter()
                            .filter_map(|key| get_text(observed, key))
                            .map(str::to_owned),
                    );
                }
                let failed = observed.get("is_error") == Some(&true.into());
                let done = build_result_envelope(
                    &said
                        .into_iter()
                        .chain(added())
                        .collect::<Vec<_>>()
                        .join("\n"),
                    failed,
                    Some(observed),
                );
                reader.push_result(text("tool_call_id"), done, at);
            }
            "AgentErrorEvent" => {
                reader.push_result(
                    text("tool_call_id"),
                    build_result_envelope(text("error"), true, None),
                    at,
                );
            }
            "UserRejectObservation" => {
                let why = format!("Action rejected: {}", text("rejection_reason"));
                reader.push_result(
                    text("tool_call_id"),
                    build_result_envelope(&why, true, None),
                    at,
                );
            }
            "Condensation" => reader.push_summary(get_text(event, "summary"), at),
            // These events describe internal state of the program.
            "ConversationStateUpdateEvent"
            | "CondensationRequest"
            | "PauseEvent"
            | "TokenEvent"
            | "LLMCompletionLogEvent"
            | "StreamingDeltaEvent" => {}
            _ => reader.builder.skipped += 1,
        }
    }

    /// Adds parts of a model's reply: as a new message, or to the last message if it belongs to
    /// that reply, because each tool call of a reply is an event of its own.
    fn push_reply(
        &mut self,
        reader: &mut EventReader,
        reply: Option<String>,
        parts: Vec<Part>,
        at: Option<haft_types::Timestamp>,
    ) {
        reader.is_begun = true;
        if reply.is_some() && reply == self.reply {
            return parts
                .into_iter()
                .for_each(|part| reader.builder.extend_reply(part));
        }
        let mut message = reader.builder.new_message(Role::Assistant, parts, at);
        if let Some((model, usage)) = reply.as_ref().and_then(|id| self.counted.get(id)) {
            message.llm_metadata = build_reply_metadata(model.as_deref(), Some(*usage));
        }
        self.reply = reply;
        reader.builder.push(message);
    }
}

/// Returns the texts in a message content, which is either a single text or a list of parts.
fn collect_texts(content: Option<&Value>) -> impl Iterator<Item = String> {
    let pieces = content.and_then(Value::as_array).into_iter().flatten();
    let texts = pieces
        .filter_map(|piece| get_text(piece, "text"))
        .chain(content.and_then(Value::as_str));
    texts
        .filter(|text| !text.trim().is_empty())
        .map(str::to_owned)
}

fn read_thinking(said: &Value) -> Vec<Part> {
    let blocks = said
        .get("thinking_blocks")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let block = |block: &Value| {
        let signature = get_text(block, "signature").map(str::to_owned);
        Some(Thinking {
            text: get_text(block, "thinking")?.to_owned(),
            signature,
            raw: None,
        })
    };
    let mut thoughts: Vec<_> = blocks.filter_map(block).collect();
    if thoughts.is_empty() {
        let text = get_text(said, "reasoning_content")
            .filter(|text| !text.is_empty())
            .map(str::to_owned);
        thoughts.extend(text.map(|text| Thinking {
            text,
            ..Thinking::default()
        }));
    }
    thoughts.into_iter().map(Part::Thinking).collect()
}

/// Returns the tool call that an event contains: as the model made it, if recorded, else as it was
/// executed. Returns `None` if the event contains no call.
fn read_call(event: &Value) -> Option<ToolCall> {
    let made = event.get("tool_call").unwrap_or(&Value::Null);
    let id = get_text(made, "id")
        .or_else(|| get_text(event, "tool_call_id"))?
        .to_owned();
    let name = get_text(made, "name")
        .or_else(|| get_text(event, "tool_name"))?
        .to_owned();
    let arguments = get_text(made, "arguments").map(str::to_owned);
    let arguments = arguments.or_else(|| {
        event
            .get("action")
            .filter(|one| one.is_object())
            .map(Value::to_string)
    });
    Some(ToolCall {
        id,
        name,
        arguments: arguments.unwrap_or_else(|| "{}".to_owned()),
        signature: None,
    })
}
