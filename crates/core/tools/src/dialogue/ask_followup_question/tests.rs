use serde_json::json;

use super::*;
use crate::testing::Bench;

#[tokio::test]
async fn ask_followup_question_passes_the_question_to_the_user() {
    let bench = Bench::new();
    let output = bench
        .ok(
            &define_tool(),
            json!({"question": "Which?", "options": ["a", "b"]}),
        )
        .await;
    assert_eq!(
        output.flow,
        TurnFlow::Ask {
            question: "Which?".into(),
            options: vec!["a".into(), "b".into()]
        }
    );
    let output = bench.ok(&define_tool(), json!({"question": "Why?"})).await;
    assert_eq!(
        output.flow,
        TurnFlow::Ask {
            question: "Why?".into(),
            options: vec![]
        }
    );
}

#[tokio::test]
async fn ask_followup_question_rejects_an_empty_question() {
    let bench = Bench::new();
    for arguments in [
        json!({"question": "  "}),
        json!({}),
        json!({"question": "a", "extra": 1}),
    ] {
        let output = bench.run(&define_tool(), arguments).await;
        assert_eq!(output.flow, TurnFlow::Continue);
        assert_eq!(output.envelope.error.unwrap().code, "invalid_arguments");
    }
}
