use serde_json::json;

use super::*;
use crate::LimitsConfig;
use crate::running::session_start;
use crate::testing::{Bench, running};

#[tokio::test]
async fn session_interactive_without_input_waits_and_reads() {
    let running = running(LimitsConfig::default());
    let start = session_start::define_tool(Arc::clone(&running));
    let interact = define_tool(running);
    let bench = Bench::new();
    let line = "while [ ! -e go ]; do sleep 0.01; done; echo went; read x";
    let text = bench
        .ok(&start, json!({"command": line, "timeout": 0}))
        .await
        .envelope
        .text;
    assert_eq!(
        text,
        "Session s1 is still running after 0 s. No new output."
    );
    bench.write("go", "");
    let text = bench
        .ok(&interact, json!({"session_id": "s1", "timeout": 120}))
        .await
        .envelope
        .text;
    assert_eq!(
        text,
        "Session s1 waits for a line of input.\n--- output ---\nwent"
    );
}

#[tokio::test]
async fn session_interactive_rejects_input_that_cannot_be_typed() {
    let running = running(LimitsConfig::default());
    let start = session_start::define_tool(Arc::clone(&running));
    let interact = define_tool(running);
    let bench = Bench::new();
    bench
        .ok(&start, json!({"command": "cat", "timeout": 120}))
        .await;
    for wrong in [
        json!({"session_id": "s1", "input": "x".repeat(5_000)}),
        json!({"session_id": "s1", "keys": ["hyper-x"]}),
        json!({"session_id": "s1", "timeout": 601}),
        json!({"input": "x"}),
    ] {
        assert_eq!(bench.err(&interact, wrong).await.0, "invalid_arguments");
    }
    let (code, message) = bench
        .err(&interact, json!({"session_id": "1", "input": "x"}))
        .await;
    assert_eq!(
        (code.as_str(), message.contains("open: s1")),
        ("not_found", true),
        "{message}"
    );
}

#[tokio::test]
async fn session_interactive_cancel_ends_the_wait_but_not_the_session() {
    let running = running(LimitsConfig::default());
    let start = session_start::define_tool(Arc::clone(&running));
    let interact = define_tool(Arc::clone(&running));
    let bench = Bench::new();
    bench
        .ok(&start, json!({"command": "sleep 1000", "timeout": 0}))
        .await;
    bench.context.cancel.cancel();
    bench
        .ok(&interact, json!({"session_id": "s1", "timeout": 600}))
        .await;
    assert!(
        running
            .sessions
            .find_session("s1")
            .unwrap()
            .terminal
            .ending()
            .is_none()
    );
}
