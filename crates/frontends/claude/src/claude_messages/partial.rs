//! Converts a reply to Anthropic's stream of content blocks while it arrives.

use haft_types::{CallPhase, EventBody};
use serde_json::{Value, json};

use crate::ToolNaming;

/// The state of a partially sent reply.
#[derive(Debug, Default)]
pub(super) struct PartialReply {
    begun: bool,
    /// The number of blocks opened so far.
    blocks: usize,
    open: Option<PartialBlock>,
    calls: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PartialBlock {
    Text,
    Thinking,
    Call(String),
}

impl PartialReply {
    /// Returns the stream events for one of haft's events.
    pub(super) fn take(&mut self, body: &EventBody, model: &str, naming: ToolNaming) -> Vec<Value> {
        let mut told = Vec::new();
        match body {
            EventBody::Text { text } => {
                self.enter(
                    PartialBlock::Text,
                    &json!({"type": "text", "text": ""}),
                    model,
                    &mut told,
                );
                told.push(self.delta(&json!({"type": "text_delta", "text": text})));
            }
            EventBody::Thinking { text } => {
                let empty = json!({"type": "thinking", "thinking": "", "signature": ""});
                self.enter(PartialBlock::Thinking, &empty, model, &mut told);
                told.push(self.delta(&json!({"type": "thinking_delta", "thinking": text})));
            }
            EventBody::ToolCall {
                id,
                name,
                phase: CallPhase::Started,
                ..
            } => {
                let empty =
                    json!({"type": "tool_use", "id": id, "name": naming.tool(name), "input": {}});
                self.enter(PartialBlock::Call(id.clone()), &empty, model, &mut told);
                self.calls = true;
            }
            // If another call has started since, the complete message contains the rest of the
            // arguments.
            EventBody::ToolCall {
                id,
                phase: CallPhase::Arguments,
                raw: Some(piece),
                ..
            } if self.open == Some(PartialBlock::Call(id.clone())) => {
                told.push(self.delta(&json!({"type": "input_json_delta", "partial_json": piece})));
            }
            EventBody::Usage { usage, .. } if self.begun => {
                self.leave(&mut told);
                let reason = if self.calls { "tool_use" } else { "end_turn" };
                told.push(json!({
                    "type": "message_delta",
                    "delta": {"stop_reason": reason, "stop_sequence": null},
                    "usage": {"output_tokens": usage.output},
                }));
                told.push(json!({"type": "message_stop"}));
                *self = Self::default();
            }
            // The rest of this reply will not arrive.
            EventBody::Retry { .. } | EventBody::Result(_) => *self = Self::default(),
            _ => {}
        }
        told
    }

    /// Closes the open block and opens one of this kind, unless such a block is open already.
    fn enter(&mut self, kind: PartialBlock, empty: &Value, model: &str, told: &mut Vec<Value>) {
        if self.open.as_ref() == Some(&kind) {
            return;
        }
        if !self.begun {
            self.begun = true;
            told.push(json!({"type": "message_start", "message": {
                "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 0, "output_tokens": 0},
            }}));
        }
        self.leave(told);
        told.push(
            json!({"type": "content_block_start", "index": self.blocks, "content_block": empty}),
        );
        self.blocks += 1;
        self.open = Some(kind);
    }

    fn leave(&mut self, told: &mut Vec<Value>) {
        if self.open.take().is_some() {
            told.push(
                json!({"type": "content_block_stop", "index": self.blocks.saturating_sub(1)}),
            );
        }
    }

    fn delta(&self, delta: &Value) -> Value {
        json!({"type": "content_block_delta", "index": self.blocks.saturating_sub(1), "delta": delta})
    }
}
