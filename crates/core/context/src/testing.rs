//! Builds conversations for tests from short strings or at random.
//!
//! In a string, `U` is the user's input, `a` an assistant message without calls, `A` an assistant
//! message with one call for each `T` that follows it directly, `T` a result, and `Σ` a summary.

use std::sync::{Arc, LazyLock};

use haft_types::{
    Api, CacheRule, Capabilities, ContentHash, Entry, Envelope, Message, MessageId, ModelSpec,
    Origin, Part, Role, Timestamp, TokenCounter, ToolCall, ToolProtocol, ToolResult, ToolSet,
    ToolSpec,
};
use proptest::prelude::*;

use crate::{SystemInput, render_system, system_entry};

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

pub(crate) fn calls(number: usize, ids: &[String]) -> Arc<Entry> {
    let parts = ids
        .iter()
        .map(|one| call(one, "read_file", r#"{"path":"a"}"#))
        .collect();
    entry(Message::new(id(number), Role::Assistant, parts, at(number)))
}

pub(crate) fn result(number: usize, call: &str, envelope: Envelope) -> Arc<Entry> {
    named_result(number, call, "read_file", envelope)
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

/// Builds the conversation for a string such as `UATTaU`; a leading `S` is skipped.
pub(crate) fn conversation(shape: &str) -> Vec<Arc<Entry>> {
    let letters: Vec<char> = shape.chars().filter(|letter| *letter != 'S').collect();
    let mut history = Vec::with_capacity(letters.len());
    let mut waiting = Vec::new();
    for (number, letter) in letters.iter().enumerate() {
        history.push(match letter {
            'U' => text(number, Role::User, &format!("input {number}")),
            'a' => text(number, Role::Assistant, &format!("answer {number}")),
            'Σ' => text(number, Role::Summary, &format!("summary {number}")),
            'A' => {
                let results = letters[number + 1..]
                    .iter()
                    .take_while(|next| **next == 'T')
                    .count()
                    .max(1);
                waiting = (0..results)
                    .map(|call| format!("call-{number}-{call}"))
                    .rev()
                    .collect();
                calls(number, &waiting.iter().rev().cloned().collect::<Vec<_>>())
            }
            'T' => result(
                number,
                &waiting.pop().unwrap(),
                Envelope::success(format!("result {number}")),
            ),
            other => panic!("unknown letter {other}"),
        });
    }
    history
}

/// One step of a random conversation; a result may answer an open call, an earlier one or none.
#[derive(Clone, Debug)]
enum Step {
    User,
    Joined,
    Assistant,
    Calls(usize),
    Result(usize),
    Foreign,
    Summary,
    System,
}

/// Generates conversations of any form, including broken ones.
pub(crate) fn any_conversation(longest: usize) -> impl Strategy<Value = Vec<Arc<Entry>>> {
    let step = prop_oneof![
        3 => Just(Step::User),
        1 => Just(Step::Joined),
        2 => Just(Step::Assistant),
        4 => (1_usize..4).prop_map(Step::Calls),
        8 => (0_usize..6).prop_map(Step::Result),
        1 => Just(Step::Foreign),
        1 => Just(Step::Summary),
        1 => Just(Step::System),
    ];
    prop::collection::vec(step, 1..longest).prop_map(|steps| {
        let mut made: Vec<String> = Vec::new();
        steps
            .into_iter()
            .enumerate()
            .map(|(number, step)| build(number, &step, &mut made))
            .collect()
    })
}

fn build(number: usize, step: &Step, made: &mut Vec<String>) -> Arc<Entry> {
    match step {
        Step::User => text(number, Role::User, &format!("input {number}")),
        Step::Joined => entry(
            Message::from_text(id(number), Role::User, format!("also {number}"), at(number))
                .with_origin(Origin::Joined),
        ),
        Step::Assistant => text(number, Role::Assistant, &format!("answer {number}")),
        Step::Summary => text(number, Role::Summary, &format!("summary {number}")),
        Step::System => text(number, Role::System, &format!("system {number}")),
        Step::Foreign => result(number, "nobody", Envelope::success("foreign")),
        Step::Calls(count) => {
            let ids: Vec<_> = (0..*count)
                .map(|call| format!("call-{number}-{call}"))
                .collect();
            made.extend(ids.iter().cloned());
            calls(number, &ids)
        }
        Step::Result(back) => {
            let call = made
                .iter()
                .rev()
                .nth(*back)
                .cloned()
                .unwrap_or_else(|| "early".into());
            result(
                number,
                &call,
                Envelope::success(format!("result {number} of {call}")),
            )
        }
    }
}

/// Generates conversations as a healthy engine stores them: whole blocks, an input first, no
/// foreign results.
pub(crate) fn whole_conversation(longest: usize) -> impl Strategy<Value = Vec<Arc<Entry>>> {
    let piece = prop_oneof![
        2 => Just("aU".to_owned()),
        1 => Just("a".to_owned()),
        1 => Just("U".to_owned()),
        6 => (1_usize..5).prop_map(|results| format!("A{}", "T".repeat(results))),
    ];
    prop::collection::vec(piece, 0..longest / 2)
        .prop_map(|pieces| conversation(&format!("U{}", pieces.concat())))
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

pub(crate) fn tools(names: &[&str]) -> Vec<ToolSpec> {
    let spec = |name: &&str| ToolSpec {
        name: (*name).into(),
        description: "Does something.".into(),
        parameters: serde_json::json!({"type": "object", "properties": {}}),
    };
    names.iter().map(spec).collect()
}

pub(crate) fn tool_set(names: &[&str]) -> Arc<ToolSet> {
    ToolSet::new(tools(names), &Quarter)
}

/// The default system message, rendered once for all tests.
pub(crate) fn system() -> Arc<Entry> {
    static SYSTEM: LazyLock<Arc<Entry>> =
        LazyLock::new(|| system_entry(render_system(&SystemInput::default()).unwrap(), &Quarter));
    Arc::clone(&SYSTEM)
}

/// Builds a conversation with results of 100 lines.
pub(crate) fn lengthy(shape: &str) -> Vec<Arc<Entry>> {
    let longer = |one: Arc<Entry>| {
        let mut message = one.message.clone();
        for part in &mut message.content {
            if let Part::ToolResult(result) = part {
                result.envelope.text = "a line of output\n".repeat(100);
            }
        }
        entry(message)
    };
    conversation(shape).into_iter().map(longer).collect()
}
