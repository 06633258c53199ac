//! Strategies that generate messages of every form, for property tests.

use haft_types::{
    Envelope, Image, LlmMetadata, Message, MessageId, Part, Role, Thinking, Timestamp, ToolCall,
    ToolError, ToolResult, ToolStatus,
};
use proptest::option;
use proptest::prelude::*;
use serde_json::Value;

/// Generates texts that include characters which need escaping.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        ".{0,40}",
        "[\\x00-\\x1f\"\\\\'%\u{2028}\u{fffd}短い🦀]{0,12}"
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        prop::num::f64::NORMAL.prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn envelope() -> impl Strategy<Value = Envelope> {
    let status = prop_oneof![
        Just(ToolStatus::Success),
        Just(ToolStatus::Partial),
        Just(ToolStatus::Error)
    ];
    let error =
        option::of((text(), text()).prop_map(|(code, message)| ToolError { code, message }));
    (status, text(), value(), value(), value(), error).prop_map(
        |(status, text, data, stats, context, error)| Envelope {
            status,
            text,
            data,
            stats,
            context,
            error,
        },
    )
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        (text(), option::of(text())).prop_map(|(text, signature)| Part::Text { text, signature }),
        (text(), option::of(text()), option::of(text())).prop_map(|(text, signature, raw)| {
            Part::Thinking(Thinking {
                text,
                signature,
                raw,
            })
        }),
        (
            text(),
            text(),
            prop_oneof![text(), value().prop_map(|value| value.to_string())],
            option::of(text())
        )
            .prop_map(|(id, name, arguments, signature)| Part::ToolCall(ToolCall {
                id,
                name,
                arguments,
                signature
            })),
        (text(), text(), envelope()).prop_map(|(tool_call_id, name, envelope)| {
            Part::ToolResult(Box::new(ToolResult {
                tool_call_id,
                name,
                envelope,
            }))
        }),
        (text(), text()).prop_map(|(media_type, data)| Part::Image(Image { media_type, data })),
    ]
}

fn llm_metadata() -> impl Strategy<Value = LlmMetadata> {
    let cost = || option::of(0.0..1e6_f64);
    (
        text(),
        any::<[u64; 5]>(),
        cost(),
        cost(),
        any::<u32>(),
        option::of(any::<u64>()),
    )
        .prop_map(
            |(model_name, tokens, input_cost, output_cost, conversation_round, duration_ms)| {
                LlmMetadata {
                    model_name,
                    input_tokens: tokens[0],
                    output_tokens: tokens[1],
                    cached_input_tokens: tokens[2],
                    cache_write_tokens: tokens[3],
                    reasoning_tokens: tokens[4],
                    input_cost,
                    output_cost,
                    cached_input_cost: input_cost,
                    cache_write_cost: output_cost,
                    conversation_round,
                    time_to_first_token_ms: duration_ms,
                    duration_ms,
                }
            },
        )
}

/// Generates messages whose short id is `n`.
pub(crate) fn message(n: u32) -> impl Strategy<Value = Message> {
    let role = prop_oneof![
        Just(Role::System),
        Just(Role::User),
        Just(Role::Assistant),
        Just(Role::Tool),
        Just(Role::Summary)
    ];
    let metadata = prop::collection::vec((text(), value()), 0..3);
    let at = (0..4_000_000_000_i64, 0..1_000_000_000_i32);
    (
        role,
        prop::collection::vec(part(), 0..4),
        at,
        metadata,
        option::of(llm_metadata()),
        any::<u64>(),
    )
        .prop_map(
            move |(role, content, (second, nanosecond), metadata, llm_metadata, tail)| Message {
                message_id: id(n, tail),
                role,
                content,
                created_at: Timestamp::new(second, nanosecond).unwrap(),
                metadata: metadata.into_iter().collect(),
                llm_metadata: llm_metadata.map(Box::new),
            },
        )
}

fn id(n: u32, tail: u64) -> MessageId {
    format!("{n:08x}-0000-4000-8000-{:012x}", tail & 0xffff_ffff_ffff)
        .parse()
        .unwrap()
}
