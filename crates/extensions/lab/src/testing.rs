//! Messages, tools and a model for tests.

use std::sync::Arc;

use haft_context::{SystemInput, render_system, system_entry};
use haft_types::{
    Api, CacheRule, Capabilities, ContentHash, Entry, Envelope, Message, MessageId, ModelSpec,
    Part, Role, Timestamp, TokenCounter, ToolCall, ToolProtocol, ToolResult, ToolSet, ToolSpec,
};

/// Counts one token per four bytes: easy to calculate in tests.
pub(crate) struct Quarter;

impl TokenCounter for Quarter {
    fn count_text(&self, text: &str) -> u32 {
        text.len().div_ceil(4) as u32
    }
}

pub(crate) fn id(number: usize) -> MessageId {
    MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()))
}

pub(crate) fn at(number: usize) -> Timestamp {
    Timestamp::from_second(1_763_200_000 + number.cast_signed() as i64).unwrap()
}

pub(crate) fn entry(message: Message) -> Arc<Entry> {
    Entry::new(message, &Quarter)
}

pub(crate) fn text(number: usize, role: Role, text: &str) -> Arc<Entry> {
    entry(Message::from_text(id(number), role, text, at(number)))
}

pub(crate) fn call(call: &str, name: &str, arguments: &str) -> Part {
    Part::ToolCall(ToolCall {
        id: call.into(),
        name: name.into(),
        arguments: arguments.into(),
        signature: None,
    })
}

pub(crate) fn named_result(
    number: usize,
    call: &str,
    name: &str,
    envelope: Envelope,
) -> Arc<Entry> {
    let result = ToolResult {
        tool_call_id: call.into(),
        name: name.into(),
        envelope,
    };
    entry(Message::new(
        id(number),
        Role::Tool,
        vec![Part::ToolResult(Box::new(result))],
        at(number),
    ))
}

pub(crate) fn model() -> ModelSpec {
    ModelSpec {
        provider: "mock".into(),
        name: "test-model".into(),
        api: Api::OpenaiChat,
        context_window: 200_000,
        max_output_tokens: Some(8_192),
        price: None,
        cache: CacheRule::default(),
        tool_protocol: ToolProtocol::Native,
        capabilities: Capabilities::default(),
        tokenizer_factor: 1.0,
        profile: haft_types::ModelProfile::Full,
        bought_ttl: None,
    }
}

pub(crate) fn tool_set(names: &[&str]) -> Arc<ToolSet> {
    let spec = |name: &&str| ToolSpec {
        name: (*name).into(),
        description: "Does something.".into(),
        parameters: serde_json::json!({"type": "object", "properties": {}}),
    };
    ToolSet::new(names.iter().map(spec).collect(), &Quarter)
}

pub(crate) fn system() -> Arc<Entry> {
    system_entry(render_system(&SystemInput::default()).unwrap(), &Quarter)
}
