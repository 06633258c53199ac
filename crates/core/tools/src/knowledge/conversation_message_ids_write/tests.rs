use serde_json::json;

use super::*;
use crate::testing::Bench;

#[tokio::test]
async fn conversation_message_ids_write_reports_the_counts() {
    let bench = Bench::with_store().await;
    let tool = define_tool();
    *bench.marking.report.lock().unwrap() = MarkReport {
        changed: 2,
        unchanged: 1,
        marked: 3,
        ..MarkReport::default()
    };
    let done = bench
        .ok(
            &tool,
            json!({"message_ids": "0a1b2c3d, 4e5f6071", "action": "append"}),
        )
        .await
        .envelope;
    assert_eq!(
        done.text,
        "2 marked, 1 already marked, 0 unknown.\nMarked now: 3. This acts from the next request on."
    );
    let done = bench
        .ok(
            &tool,
            json!({"message_ids": "0a1b2c3d", "action": "delete"}),
        )
        .await
        .envelope;
    assert!(
        done.text
            .starts_with("2 taken off the list, 1 not on the list, 0 unknown."),
        "{}",
        done.text
    );
    let asked = bench.marking.asked.lock().unwrap().clone();
    assert_eq!(
        asked,
        [
            (MarkAction::Append, "0a1b2c3d, 4e5f6071".into()),
            (MarkAction::Delete, "0a1b2c3d".to_owned())
        ]
    );
}

#[tokio::test]
async fn conversation_message_ids_write_names_ids_it_could_not_mark() {
    let bench = Bench::with_store().await;
    *bench.marking.report.lock().unwrap() = MarkReport {
        unknown: vec!["deadbeef".into(), "x\ny".into()],
        refused: vec!["0a1b2c3d".into()],
        ..MarkReport::default()
    };
    let arguments = json!({"message_ids": "deadbeef,x\ny,0a1b2c3d", "action": "create"});
    let done = bench.run(&define_tool(), arguments).await.envelope;
    assert_eq!(done.status, ToolStatus::Partial);
    assert!(
        done.text
            .contains("No message of this conversation: deadbeef, x y."),
        "{}",
        done.text
    );
    assert!(
        done.text
            .contains("Cannot be marked (system, summary or current request): 0a1b2c3d."),
        "{}",
        done.text
    );
}

#[tokio::test]
async fn conversation_message_ids_write_with_no_ids_only_clears() {
    let bench = Bench::with_store().await;
    let tool = define_tool();
    for action in ["append", "delete"] {
        let (code, _) = bench
            .err(&tool, json!({"message_ids": " , ", "action": action}))
            .await;
        assert_eq!(code, "invalid_arguments");
    }
    bench
        .ok(&tool, json!({"message_ids": "", "action": "create"}))
        .await;
    assert_eq!(
        bench
            .err(&tool, json!({"message_ids": "a", "action": "clear"}))
            .await
            .0,
        "invalid_arguments"
    );
    assert_eq!(bench.marking.asked.lock().unwrap().len(), 1);
}
