use haft_types::{Message, Part, Role, Timestamp, ToolResult};
use serde_json::json;

use super::*;
use crate::files::read_file;
use crate::testing::Bench;

async fn put(bench: &Bench, text: &str) {
    let result = ToolResult {
        tool_call_id: "c".into(),
        name: "read_file".into(),
        envelope: Envelope::success(text),
    };
    let message = Message::new(
        "0a1b2c3d-0000-4000-8000-000000000000".parse().unwrap(),
        Role::Tool,
        vec![Part::ToolResult(Box::new(result))],
        Timestamp::UNIX_EPOCH,
    );
    let transcript = bench.shared::<StoredTranscript>();
    let stored = transcript
        .store
        .append_message(&transcript.conversation, &message)
        .await;
    stored.unwrap();
}

#[tokio::test]
async fn recall_returns_the_message_unchanged() {
    let bench = Bench::with_store().await;
    put(&bench, "1\tone\n2\ttwo").await;
    let recalled = bench
        .ok(&define_tool(), json!({"message_id": "0a1b2c3d"}))
        .await
        .envelope;
    assert_eq!(
        recalled.text,
        "[Message 0a1b2c3d: the result of read_file]\n1\tone\n2\ttwo"
    );
    assert_eq!(
        recalled.data,
        json!({"message_id": "0a1b2c3d", "role": "tool", "tools": ["read_file"]})
    );
}

#[tokio::test]
async fn recall_writes_a_long_message_to_a_file() {
    let bench = Bench::with_store().await.with_limits(10, 10_000);
    let lines: Vec<_> = (1..=100).map(|line| format!("line {line}")).collect();
    let whole = lines.join("\n");
    put(&bench, &whole).await;
    let recalled = bench
        .ok(&define_tool(), json!({"message_id": "0a1b2c3d"}))
        .await
        .envelope;
    assert!(recalled.text.lines().count() <= 10, "{}", recalled.text);
    assert!(
        recalled.text.contains("The whole message has 100 lines"),
        "{}",
        recalled.text
    );
    let path = recalled.data["spill"][0].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(path).unwrap(), whole);
    let read = bench
        .ok(
            &read_file::define_tool(),
            json!({"path": path, "start_line": 50, "end_line": 50}),
        )
        .await
        .envelope;
    assert!(read.text.starts_with("50\tline 50"), "{}", read.text);
    // Recalling it again leaves one file and nothing half-written.
    bench
        .ok(&define_tool(), json!({"message_id": "0a1b2c3d"}))
        .await;
    assert_eq!(
        std::fs::read_dir(&bench.workspace().spill).unwrap().count(),
        1
    );
}

#[tokio::test]
async fn recall_of_an_unknown_message_says_where_ids_are_listed() {
    let bench = Bench::with_store().await;
    let (code, message) = bench
        .err(&define_tool(), json!({"message_id": "nonsense"}))
        .await;
    assert_eq!(code, "not_found");
    assert_eq!(
        message,
        "there is no message `nonsense`; `conversation_message_ids_read` lists the messages"
    );
}
