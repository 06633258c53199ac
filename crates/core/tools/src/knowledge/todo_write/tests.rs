use serde_json::json;

use super::*;
use crate::knowledge::todo_read;
use crate::knowledge::transcript::StoredTranscript;
use crate::testing::Bench;

#[tokio::test]
async fn todo_write_stores_a_list_that_todo_read_returns() {
    let bench = Bench::with_store().await;
    let empty = bench.ok(&todo_read::define_tool(), json!({})).await;
    assert_eq!(empty.envelope.text, "The TODO list is empty.");
    let todos = json!([
        {"content": "read the code", "status": "completed"},
        {"content": "fix it", "status": "in_progress"},
        {"content": "run the tests", "status": "pending"},
    ]);
    let written = bench.ok(&define_tool(), json!({ "todos": todos })).await;
    assert_eq!(
        written.envelope.text,
        "[x] read the code\n[~] fix it\n[ ] run the tests"
    );
    let read = bench.ok(&todo_read::define_tool(), json!({})).await;
    assert_eq!(read.envelope, written.envelope);
    assert_eq!(
        read.envelope.data,
        json!({"items": todos, "pending": 1, "in_progress": 1, "completed": 1})
    );
}

#[tokio::test]
async fn todo_write_advises_against_two_items_in_progress() {
    let bench = Bench::with_store().await;
    let todos = json!([{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}]);
    let output = bench.ok(&define_tool(), json!({ "todos": todos })).await;
    assert!(
        output
            .envelope
            .text
            .contains("More than one item is in progress")
    );
    assert_eq!(bench.shared::<StoredTodo>().items().len(), 2);
}

#[tokio::test]
async fn todo_write_rejects_wrong_lists_without_a_change() {
    let bench = Bench::with_store().await;
    for todos in [
        json!([{"content": " ", "status": "pending"}]),
        json!([{"content": "a", "status": "done"}]),
        json!("a"),
    ] {
        assert_eq!(
            bench.err(&define_tool(), json!({ "todos": todos })).await.0,
            "invalid_arguments"
        );
    }
    assert_eq!(
        bench
            .err(&todo_read::define_tool(), json!({"all": true}))
            .await
            .0,
        "invalid_arguments"
    );
    assert!(bench.shared::<StoredTodo>().items().is_empty());
}

#[tokio::test]
async fn todo_write_reports_a_storage_error() {
    let bench = Bench::with_store().await;
    let transcript = bench.shared::<StoredTranscript>();
    let deleted = transcript.store.delete(&transcript.conversation).await;
    deleted.unwrap();
    let (code, message) = bench.err(&define_tool(), json!({"todos": []})).await;
    assert_eq!(code, "store");
    assert!(
        message.contains("there is no conversation `a`"),
        "{message}"
    );
}
