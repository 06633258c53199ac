//! Tests the engine's public interface with results that a person can calculate by hand.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "what fails here fails the test"
)]

mod breaks;
mod pruning;
mod small_window;

use std::sync::Arc;

use haft_context::{SystemInput, render_system, system_entry};
use haft_types::{
    Api, CacheRule, Capabilities, ContentHash, Entry, Envelope, Message, MessageId, ModelSpec,
    Part, Role, Timestamp, TokenCounter, ToolCall, ToolProtocol, ToolResult, ToolSet, ToolSpec,
};

/// Counts one token per word, so that a person can count along.
struct Words;

impl TokenCounter for Words {
    fn count_text(&self, text: &str) -> u32 {
        text.split_whitespace().count() as u32
    }
}

/// Returns a text of `count` words.
fn words(count: usize) -> String {
    vec!["word"; count].join(" ")
}

fn id(number: usize) -> MessageId {
    MessageId::from_hash(ContentHash::from_content(&number.to_le_bytes()))
}

fn entry(message: Message) -> Arc<Entry> {
    Entry::new(message, &Words)
}

fn text(number: usize, role: Role, text: impl Into<String>) -> Arc<Entry> {
    entry(Message::from_text(
        id(number),
        role,
        text,
        Timestamp::UNIX_EPOCH,
    ))
}

/// Returns an assistant message with one call of `read_file`; the call's id contains the message
/// number.
fn call(number: usize, arguments: &str) -> Arc<Entry> {
    calls(number, 1, arguments)
}

/// Returns an assistant message with `count` calls.
fn calls(number: usize, count: usize, arguments: &str) -> Arc<Entry> {
    let call = |index| {
        let id = format!("call-{number}-{index}");
        let name = "read_file".into();
        Part::ToolCall(ToolCall {
            id,
            name,
            arguments: arguments.into(),
            signature: None,
        })
    };
    let parts = (0..count).map(call).collect();
    entry(Message::new(
        id(number),
        Role::Assistant,
        parts,
        Timestamp::UNIX_EPOCH,
    ))
}

/// Returns the result of call `index` of the assistant message `caller`.
fn result(number: usize, (caller, index): (usize, usize), envelope: Envelope) -> Arc<Entry> {
    let result = ToolResult {
        tool_call_id: format!("call-{caller}-{index}"),
        name: "read_file".into(),
        envelope,
    };
    let parts = vec![Part::ToolResult(Box::new(result))];
    entry(Message::new(
        id(number),
        Role::Tool,
        parts,
        Timestamp::UNIX_EPOCH,
    ))
}

/// Returns a block of one call and a result of `result_words` words, as messages `number` and
/// `number + 1`.
fn block(number: usize, result_words: usize) -> [Arc<Entry>; 2] {
    [
        call(number, "{}"),
        result(
            number + 1,
            (number, 0),
            Envelope::success(words(result_words)),
        ),
    ]
}

fn model(window: u32) -> ModelSpec {
    ModelSpec {
        provider: "mock".into(),
        name: "model".into(),
        api: Api::OpenaiChat,
        context_window: window,
        max_output_tokens: Some(1_000),
        price: None,
        cache: CacheRule::default(),
        tool_protocol: ToolProtocol::Native,
        capabilities: Capabilities::default(),
        tokenizer_factor: 1.0,
        profile: haft_types::ModelProfile::Full,
        bought_ttl: None,
    }
}

/// Returns tools with these names, each with a one-word description.
fn tools(names: &[&str]) -> Arc<ToolSet> {
    let spec = |name: &&str| ToolSpec {
        name: (*name).into(),
        description: "Works.".into(),
        parameters: serde_json::json!({"type": "object", "properties": {}}),
    };
    ToolSet::new(names.iter().map(spec).collect(), &Words)
}

/// Returns the default system message, filled up to `tokens` tokens.
fn system(tokens: u32) -> Arc<Entry> {
    let text = render_system(&SystemInput::default()).unwrap();
    let short = system_entry(&text, &Words).tokens;
    let filled = format!("{text}\n{}", words((tokens - short) as usize));
    let system = system_entry(filled, &Words);
    assert_eq!(system.tokens, tokens);
    system
}
