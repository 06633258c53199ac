//! Converts a reply to Anthropic's stream of content blocks while it arrives.

use haft_types::{CallPhase, EventBody};
use serde_json::{Value, json};

use crate::ToolNaming;

/// The state of a model's reply that is being sent to the client piece by piece.
#[derive(Debug, Default)]
pub(super) struct PartialReply {
    started: bool,
    /// The number of content blocks that were opened so far.
    block_count: usize,
    open: Option<PartialBlock>,
    has_calls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PartialBlock {
    Text,
    Thinking,
    Call(String),
}

impl PartialReply {
    /// Converts one of haft's events to stream events in the client's format.
    pub(super) fn convert_event(
        &mut self,
        body: &EventBody,
        model: &str,
        naming: ToolNaming,
    ) -> Vec<Value> {
        let mut events = Vec::new();
        match body {
            EventBody::Text { text } => {
                self.open_block(
                    PartialBlock::Text,
                    &json!({"type": "text", "text": ""}),
                    model,
                    &mut events,
                );
                events.push(self.delta_event(&json!({"type": "text_delta", "text": text})));
            }
            EventBody::Thinking { text } => {
                let empty = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.open_block(PartialBlock::Thinking, &empty, model, &mut events);
                events.push(self.delta_event(&json!({"type": "thinking_delta", "thinking": text})));
            }
            EventBody::ToolCall {
                id,
                name,
                phase: CallPhase::Started,
                ..
            } => {
                let empty = json!({"type": "tool_use", "id": id, "name": naming.tool_name(name), "input": {}});
                self.open_block(PartialBlock::Call(id.clone()), &empty, model, &mut events);
                self.has_calls = true;
            }
            // If another call has started since, the complete message contains the rest of the
            // arguments.
            EventBody::ToolCall {
                id,
                phase: CallPhase::Arguments,
                raw: Some(piece),
                ..
            } if self.open == Some(PartialBlock::Call(id.clone())) => {
                events.push(
                    self.delta_event(&json!({"type": "input_json_delta", "partial_json": piece})),
                );
            }
            EventBody::Usage { usage, .. } if self.started => {
                self.close_block(&mut events);
                let reason = if self.has_calls {
                    "tool_use"
                } else {
                    "end_turn"
                };
                events.push(json!({
                    "type": "message_delta",
                    "delta": {"stop_reason": reason, "stop_sequence": null},
                    "usage": {"output_tokens": usage.output},
                }));
                events.push(json!({"type": "message_stop"}));
                *self = Self::default();
            }
            // The rest of this reply will not arrive.
            EventBody::Retry { .. } | EventBody::Result(_) => *self = Self::default(),
            _ => {}
        }
        events
    }

    /// Opens a content block of `kind`, after closing the currently open block. Does nothing if the
    /// open block is of that kind.
    fn open_block(
        &mut self,
        kind: PartialBlock,
        empty: &Value,
        model: &str,
        events: &mut Vec<Value>,
    ) {
        if self.open.as_ref() == Some(&kind) {
            return;
        }
        if !self.started {
            self.started = true;
            events.push(json!({"type": "message_start", "message": {
                "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0},
            }}));
        }
        self.close_block(events);
        events.push(
            json!({"type": "content_block_start", "index": self.block_count, "content_block": empty}),
        );
        self.block_count += 1;
        self.open = Some(kind);
    }

    fn close_block(&mut self, events: &mut Vec<Value>) {
        if self.open.take().is_some() {
            events.push(
                json!({"type": "content_block_stop", "index": self.block_count.saturating_sub(1)}),
            );
        }
    }

    fn delta_event(&self, delta: &Value) -> Value {
        json!({"type": "content_block_delta", "index": self.block_count.saturating_sub(1), "delta": delta})
    }
}
