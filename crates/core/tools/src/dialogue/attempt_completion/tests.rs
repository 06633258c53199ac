use serde_json::json;

use super::*;
use crate::testing::Bench;

#[tokio::test]
async fn attempt_completion_completes_the_task() {
    let bench = Bench::new();
    let output = bench
        .ok(
            &define_tool(),
            json!({"result": "Done.", "command": "make run"}),
        )
        .await;
    assert_eq!(
        output.flow,
        TurnFlow::Complete {
            result: "Done.".into(),
            command: Some("make run".into())
        }
    );
    assert_eq!(
        output.envelope.data,
        json!({"result": "Done.", "command": "make run"})
    );
    let output = bench.ok(&define_tool(), json!({"result": "Done."})).await;
    assert_eq!(
        output.flow,
        TurnFlow::Complete {
            result: "Done.".into(),
            command: None
        }
    );
}

#[tokio::test]
async fn attempt_completion_rejects_an_empty_result() {
    let bench = Bench::new();
    let output = bench.run(&define_tool(), json!({"result": "\n"})).await;
    assert_eq!(output.flow, TurnFlow::Continue);
    assert_eq!(output.envelope.error.unwrap().code, "invalid_arguments");
}
