use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::part::{Image, Thinking};
use crate::tool::{ToolError, ToolStatus};

fn id() -> MessageId {
    "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap()
}

fn at() -> Timestamp {
    "2026-11-15T10:00:00.123Z".parse().unwrap()
}

fn round_trip(message: &Message) -> Message {
    serde_json::from_str(&serde_json::to_string(message).unwrap()).unwrap()
}

#[test]
fn message_with_one_text_part_serializes_as_a_string() {
    let message = Message::from_text(id(), Role::User, "hello", at());
    let value = serde_json::to_value(&message).unwrap();
    assert_eq!(
        value,
        json!({
            "message_id": "0a1b2c3d-0000-4000-8000-000000000000",
            "role": "user",
            "content": "hello",
            "created_at": "2026-11-15T10:00:00.123Z",
            "metadata": {},
            "llm_metadata": null,
        })
    );
    assert_eq!(round_trip(&message), message);
}

#[test]
fn message_with_every_kind_of_part_round_trips() {
    let call = |arguments: &str| {
        Part::ToolCall(ToolCall {
            id: "call_1".into(),
            name: "read_file".into(),
            arguments: arguments.into(),
            signature: Some("sig".into()),
        })
    };
    let mut message = Message::new(
        id(),
        Role::Assistant,
        vec![
            Part::Thinking(Thinking {
                text: "hm".into(),
                signature: Some("s".into()),
                raw: Some("{\"a\": 1}".into()),
            }),
            Part::Text {
                text: "I will look.".into(),
                signature: Some("t".into()),
            },
            call("{\"path\":  \"a\\u0062\", \"n\": 1.00}"),
            call("{\"path\": \"cut"),
            call("\"just a string\""),
            call(""),
            Part::Image(Image {
                media_type: "image/png".into(),
                data: "aGFmdA==".into(),
            }),
            Part::ToolResult(Box::new(ToolResult {
                tool_call_id: "call_1".into(),
                name: "read_file".into(),
                envelope: Envelope {
                    status: ToolStatus::Error,
                    text: "no".into(),
                    data: json!({"path": "a"}),
                    stats: json!({"ms": 3}),
                    context: json!(null),
                    error: Some(ToolError {
                        code: "not_found".into(),
                        message: "no".into(),
                    }),
                },
            })),
        ],
        at(),
    );
    message.llm_metadata = Some(Box::new(LlmMetadata {
        model_name: "mock/test".into(),
        input_tokens: 3,
        input_cost: Some(0.1),
        conversation_round: 2,
        ..LlmMetadata::default()
    }));
    assert_eq!(round_trip(&message), message);
    let text = serde_json::to_string(&message).unwrap();
    assert!(
        text.contains(r#""arguments":{"path":  "a\u0062", "n": 1.00}"#),
        "arguments keep their bytes: {text}"
    );
}

#[test]
fn opens_round_is_true_only_for_the_users_own_input() {
    let message = Message::from_text(id(), Role::User, "go on", at());
    assert!(message.opens_round());
    for origin in [Origin::Joined, Origin::Engine, Origin::Agent] {
        assert!(
            !round_trip(&message.clone().with_origin(origin)).opens_round(),
            "{origin:?}"
        );
    }
}

#[test]
fn part_of_unknown_type_is_an_error_that_lists_the_known_ones() {
    let text = r#"{"message_id":"0a1b2c3d-0000-4000-8000-000000000000","role":"user","created_at":"2026-11-15T10:00:00Z","content":[{"type":"video"}]}"#;
    let error = serde_json::from_str::<Message>(text)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("video") && error.contains("tool_result"),
        "{error}"
    );
}

#[test]
fn content_hash_ignores_id_and_time() {
    let one = Message::from_text(id(), Role::User, "hello", at());
    let mut other = one.clone();
    other.message_id = "ffffffff-0000-4000-8000-000000000000".parse().unwrap();
    other.created_at = "2027-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(one.content_hash(), other.content_hash());
    other.role = Role::Assistant;
    assert_ne!(one.content_hash(), other.content_hash());
}

proptest! {
    #[test]
    fn message_round_trips_any_arguments(arguments in ".*", text in ".*") {
        let message = Message::new(id(), Role::Assistant, vec![
            Part::from_text(text),
            Part::ToolCall(ToolCall { id: "1".into(), name: "t".into(), arguments, signature: None }),
        ], at());
        prop_assert_eq!(round_trip(&message), message);
    }
}

/// A counter for tests in which token counts are irrelevant.
struct NoCount;

impl TokenCounter for NoCount {
    fn count_text(&self, _: &str) -> u32 {
        0
    }
}

#[test]
fn entry_shrinks_all_buffers_of_a_message() {
    let roomy = |text: &str| {
        let mut roomy = String::with_capacity(1_000);
        roomy.push_str(text);
        roomy
    };
    let data = json!({"content": roomy("a line"), "list": [roomy("x")]});
    let result = ToolResult {
        tool_call_id: "c".into(),
        name: "read_file".into(),
        envelope: Envelope::success(roomy("1 a line")).with_data(data),
    };
    let mut content = Vec::with_capacity(8);
    content.extend([
        Part::ToolResult(Box::new(result)),
        Part::from_text(roomy("seen")),
    ]);
    let message = Message::new(id(), Role::Tool, content, at()).with_origin(Origin::Engine);
    let entry = Entry::new(message.clone(), &NoCount);
    assert_eq!(entry.message, message, "it says the same");
    let [Part::ToolResult(result), Part::Text { text, .. }] = entry.message.content.as_slice()
    else {
        panic!()
    };
    let envelope = &result.envelope;
    let strings = [
        Some(text),
        Some(&envelope.text),
        string(&envelope.data["content"]),
        string(&envelope.data["list"][0]),
    ];
    for text in strings {
        assert_eq!(
            text.map(String::capacity),
            text.map(String::len),
            "{text:?}"
        );
    }
    assert_eq!(entry.message.content.capacity(), 2);
    // Fields that only replies have are stored outside of the message struct.
    assert!(size_of::<Message>() <= 160, "{}", size_of::<Message>());
}

fn string(value: &Value) -> Option<&String> {
    if let Value::String(text) = value {
        Some(text)
    } else {
        None
    }
}
