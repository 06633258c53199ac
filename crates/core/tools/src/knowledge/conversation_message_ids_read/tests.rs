use haft_types::{Role, ShortId};
use serde_json::json;

use super::*;
use crate::testing::Bench;

fn transcript_line(id: u32, role: Role, tool: &str) -> TranscriptLine {
    TranscriptLine {
        id: ShortId(id),
        role,
        tools: Some(tool.to_owned())
            .filter(|tool| !tool.is_empty())
            .into_iter()
            .collect(),
        tokens: 7,
        preview: format!("words of\n{id}"),
        marked: id == 0xa3,
    }
}

#[tokio::test]
async fn conversation_message_ids_read_lists_messages_and_totals() {
    let bench = Bench::with_store().await;
    let tool = define_tool();
    let empty = bench.ok(&tool, json!({})).await.envelope;
    assert_eq!(empty.text, "0 messages, 0 tokens, 0 marked for deletion.");
    *bench.marking.lines.lock().unwrap() = vec![
        transcript_line(0xa1, Role::User, ""),
        transcript_line(0xa2, Role::Assistant, "read_file"),
        transcript_line(0xa3, Role::Tool, "read_file"),
    ];
    let listed = bench.ok(&tool, json!({})).await.envelope;
    assert_eq!(
        listed.text,
        "000000a1 user (7 tokens) words of 161\n\
         000000a2 assistant read_file (7 tokens) words of 162\n\
         000000a3 tool read_file (7 tokens) words of 163 marked\n\
         3 messages, 21 tokens, 1 marked for deletion."
    );
    assert_eq!(
        listed.data,
        json!({"messages": 3, "tokens": 21, "marked": 1})
    );
    assert_eq!(
        bench.err(&tool, json!({"all": true})).await.0,
        "invalid_arguments"
    );
}

#[tokio::test]
async fn conversation_message_ids_read_keeps_the_output_limits() {
    let bench = Bench::with_store().await.with_limits(10, 10_000);
    *bench.marking.lines.lock().unwrap() = (0..500)
        .map(|id| transcript_line(id, Role::User, ""))
        .collect();
    let text = bench.ok(&define_tool(), json!({})).await.envelope.text;
    assert_eq!(text.lines().count(), 10, "{text}");
    assert!(
        text.contains("omitted") && text.ends_with("marked for deletion."),
        "{text}"
    );
}
